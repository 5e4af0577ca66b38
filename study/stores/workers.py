"""Local processes that run functions. A process that dies is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from typing import TypeVar

T = TypeVar("T")
ATTEMPTS = 3  # for a call whose process dies
SPAWN = multiprocessing.get_context("spawn")


class WorkerDied(RuntimeError):
    """The process of a call died in each attempt."""


class LocalProcesses(ThreadPoolExecutor):
    """A context manager: threads that each make their calls in a process of their own.

    A process that dies is replaced and its call is tried again; other calls are not affected. On
    leaving, processes finish their calls, or end at once after an error such as Ctrl-C. They also
    end if this process dies.

    Parameters
    ----------
    number
        Number of processes.
    """

    def __init__(self, number: int) -> None:
        self.end, self.lifeline = SPAWN.Pipe(duplex=False)
        self.own = threading.local()
        self.pools: list[ProcessPoolExecutor] = []
        resource_tracker.ensure_running()  # if started later, it would unblock Ctrl-C
        super().__init__(number, initializer=self._enter_thread)

    def submit(self, function: Callable[..., T], /, *args: object) -> Future[T]:
        """Let one of the processes call the function. Everything must be picklable."""
        return super().submit(self._call, function, *args)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.lifeline.close()
        self.shutdown(cancel_futures=kind is not None)
        for pool in self.pools:
            pool.shutdown()
        self.lifeline.close()

    def _enter_thread(self) -> None:
        """Block Ctrl-C in this thread and in the processes that it starts."""
        if hasattr(signal, "pthread_sigmask"):  # not on Windows
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        self._start_process()

    def _start_process(self) -> None:
        self.own.pool = ProcessPoolExecutor(1, SPAWN, _enter_process, (self.end,))
        self.pools.append(self.own.pool)

    def _call(self, function: Callable[..., T], *args: object) -> T:
        for _ in range(ATTEMPTS):
            try:
                return self.own.pool.submit(function, *args).result()
            except BrokenProcessPool as error:
                cause = error
                if self.lifeline.closed:
                    break
                self._start_process()
        raise WorkerDied(f"{ATTEMPTS} processes that ran it died: {cause}") from cause


def _enter_process(end: Connection) -> None:
    """Ignore Ctrl-C, and end this process when the other end of the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_await, args=(end,), daemon=True).start()


def _await(end: Connection) -> None:
    with suppress(EOFError, OSError):
        end.recv()
    os._exit(1)
