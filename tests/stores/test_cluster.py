"""Units on a real cluster of two worker processes, one of which is killed."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster

from study.engine import Protocol
from study.engine.training import run
from study.stores.store import Store
from study.stores.sweep import SweepError, plan_units, sweep

PROTOCOLS = [Protocol.paper("i", m, hidden=3, epochs=1) for m in ("lf_sbn", "wlf_wbn")]


@pytest.fixture
def client(request):
    workers = getattr(request, "param", 2)
    cluster = LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=50
    )
    with cluster, Client(cluster) as client:
        yield client


def test_cluster_gives_the_local_bits_also_when_a_worker_dies(client, tmp_path, monkeypatch):
    write, killed = Store.write, []

    def write_and_kill(self, *arguments):
        record = write(self, *arguments)
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
        return record

    monkeypatch.setattr(Store, "write", write_and_kill)
    table = sweep(PROTOCOLS, range(30), tmp_path, client, progress=False)
    assert killed
    expected = [run(p, range(30), progress=False) for p in PROTOCOLS]
    pd.testing.assert_frame_equal(table, pd.concat(expected, ignore_index=True))


@pytest.mark.parametrize("client", [4], indirect=True)
def test_a_unit_that_loses_four_workers_is_reported_and_the_others_are_stored(client, tmp_path):
    endless = Protocol.paper("i", "lf_sbn", hidden=3, epochs=10**6)
    quick, killed = PROTOCOLS[0], set()
    with ThreadPoolExecutor(1) as thread:
        job = thread.submit(sweep, [endless, quick], [0], tmp_path, client, progress=False)
        while not Store(tmp_path).units():
            assert not job.done()
        while not job.done():
            pids = client.run(os.getpid, on_error="ignore")
            running = [worker for worker, keys in client.processing().items() if keys]
            busy = {pids[worker] for worker in running if worker in pids}
            for pid in busy - killed:
                os.kill(pid, signal.SIGKILL)
            killed |= busy
        message = rf"(?s)1 of 2 units failed.*{endless.hash}.*KilledWorker.*, 3\)"  # 3 more tries
        with pytest.raises(SweepError, match=message):
            job.result()
    assert len(killed) >= 4  # some may have died between two units
    assert [unit for unit, _ in Store(tmp_path).units()] == plan_units([quick], [0])
