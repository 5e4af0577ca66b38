"""Local processes that answer, raise, die and are replaced."""

import os
import pickle
import signal

import psutil
import pytest

from study.stores.workers import ATTEMPTS, LocalProcesses, WorkerDied

PATIENCE = 600  # seconds: a guard against hanging, which a busy machine must not reach


@pytest.fixture(scope="module")
def processes():
    with LocalProcesses(2) as processes:
        yield processes


def test_answers_and_errors_come_back(processes):
    assert processes.submit(int, "12").result() == 12
    with pytest.raises(ValueError, match="invalid literal"):
        processes.submit(int, "twelve").result()


def test_calls_run_elsewhere_and_side_by_side(processes):
    pids = {processes.submit(os.getpid).result() for _ in range(8)}
    assert os.getpid() not in pids
    assert 1 <= len(pids) <= 2


def test_a_call_that_ends_its_process_fails_with_the_cause_and_the_others_do_not(processes):
    others = [processes.submit(int, "1") for _ in range(4)]
    deadly = processes.submit(signal.raise_signal, signal.SIGKILL)
    others += [processes.submit(int, "1") for _ in range(4)]
    with pytest.raises(WorkerDied, match=f"{ATTEMPTS} processes that ran it died"):
        deadly.result()
    assert [other.result() for other in others] == [1] * 8


def test_a_call_whose_process_dies_once_is_tried_again(processes, tmp_path):
    mark = tmp_path / "was here"
    code = f"import os, pathlib\np = pathlib.Path({str(mark)!r})\n" + (
        "if not p.exists():\n    p.touch()\n    os._exit(1)"
    )
    assert processes.submit(exec, code).result() is None
    assert mark.exists()


def test_what_cannot_be_sent_is_told(processes):
    with pytest.raises((AttributeError, pickle.PicklingError), match="pickle"):
        processes.submit(eval, "lambda: 1").result(timeout=PATIENCE)


def test_a_call_that_cannot_be_sent_is_told(processes):
    with pytest.raises(AttributeError, match="local object"):
        processes.submit(lambda: 1).result(timeout=PATIENCE)
    assert processes.submit(int, "1").result() == 1


def test_an_error_that_cannot_be_received_is_told(processes):
    code = "import urllib.error; raise urllib.error.ContentTooShortError('short', b'')"
    with pytest.raises(WorkerDied):  # it pickles, and does not unpickle
        processes.submit(exec, code).result(timeout=PATIENCE)
    assert processes.submit(int, "1").result() == 1


def test_a_process_that_cannot_be_started_is_told(monkeypatch):
    def fail(self):
        raise OSError("no more processes")

    monkeypatch.setattr("multiprocessing.context.SpawnProcess.start", fail)
    with LocalProcesses(1) as processes, pytest.raises(OSError, match="no more processes"):
        processes.submit(int, "1").result(timeout=PATIENCE)


def test_an_error_ends_the_processes_whatever_they_do():
    processes = LocalProcesses(2)
    pids = {processes.submit(os.getpid).result() for _ in range(4)}
    endless = [processes.submit(exec, "while True: pass") for _ in range(8)]
    processes.__exit__(KeyboardInterrupt)
    assert all(future.done() for future in endless)
    assert not any(psutil.pid_exists(pid) for pid in pids)
