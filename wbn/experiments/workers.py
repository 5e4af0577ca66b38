"""Processes on this machine that run functions, and are replaced when they die."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection

ATTEMPTS = 3  # at a call whose process dies


class WorkerDied(RuntimeError):
    """The process that ran a call ended, each time that it was tried."""


class LocalProcesses(concurrent.futures.Executor):
    """Some processes, each served by a thread; a context that ends them when it is left.

    Left by an error, such as Ctrl-C, it ends them at once.

    A call whose process is killed is tried again in a new one, and after the last attempt fails
    with the cause; the other calls don't notice. Ctrl-C is left to this process.

    Parameters
    ----------
    number
        How many.
    """

    def __init__(self, number: int) -> None:
        self.waiting: queue.SimpleQueue = queue.SimpleQueue()
        self.processes: set[multiprocessing.Process] = set()
        self.closed = threading.Event()
        self.threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(number)]
        for thread in self.threads:
            thread.start()

    def submit(self, function: Callable, /, *args: object) -> concurrent.futures.Future:
        """Have one of the processes call the function; everything must be picklable."""
        future: concurrent.futures.Future = concurrent.futures.Future()
        self.waiting.put((future, (function, args)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the processes finish what they do, or with `cancel_futures` end them at once."""
        self.closed.set()
        if cancel_futures:
            for process in list(self.processes):
                process.terminate()
        for thread in self.threads:
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)

    def _serve(self) -> None:
        """Have one process at a time make the calls that wait."""
        process, connection = None, None
        while not self.closed.is_set():
            try:
                future, call = self.waiting.get(timeout=0.1)
            except queue.Empty:
                continue
            causes: list[str] = []
            while len(causes) < ATTEMPTS and not self.closed.is_set():
                try:
                    if process is None:
                        process, connection = self._start()
                    connection.send(call)
                    answered, answer = connection.recv()
                except (EOFError, OSError) as error:
                    causes.append(self._ended(process) if process else str(error))
                    process = None
                except Exception as error:  # of pickling, or a script without its guard
                    future.set_exception(error)
                    break
                else:
                    (future.set_result if answered else future.set_exception)(answer)
                    break
            else:
                tries = f"{ATTEMPTS} processes that ran it ended: {', '.join(causes)}"
                future.set_exception(WorkerDied(tries))
        if process is not None:
            connection.close()  # which ends it
            process.join()

    def _ended(self, process: multiprocessing.Process) -> str:
        """Take leave of a process that ended, and tell how."""
        process.join()
        self.processes.discard(process)
        return _cause(process.exitcode)

    def _start(self) -> tuple[multiprocessing.Process, Connection]:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_answer, args=(theirs,), daemon=True)
        resource_tracker.ensure_running()  # which would let Ctrl-C through again
        with _interrupts_held_back():  # the process inherits it, and imports undisturbed
            process.start()
        theirs.close()  # so that ours ends when the process does
        self.processes.add(process)
        if self.closed.is_set():
            process.terminate()
        return process, ours


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Let Ctrl-C wait meanwhile, in this thread and for good in processes that start here."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        yield
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _cause(exitcode: int | None) -> str:
    """How a process ended, in a word."""
    if exitcode is not None and exitcode < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-exitcode).name}"
    return f"exit code {exitcode}"


def _answer(connection: Connection) -> None:
    """Make the calls that come and send what they return or raise, until the parent ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
    while True:
        try:
            function, args = connection.recv()
        except EOFError:
            return
        try:
            answer = True, function(*args)
        except Exception as error:
            answer = False, error
        try:
            connection.send(answer)
        except Exception as error:  # what can't be pickled
            connection.send((False, RuntimeError(f"cannot send {answer[1]!r:.500}: {error}")))
