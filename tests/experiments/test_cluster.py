"""Units on a real cluster of two worker processes, one of which is killed."""

import os
import signal

import pandas as pd
import pytest
from dask.distributed import Client, LocalCluster

from wbn.experiments import Protocol
from wbn.experiments.sweep import sweep
from wbn.experiments.training import run

PROTOCOLS = [Protocol.paper("i", m, hidden=3, epochs=1) for m in ("lf_sbn", "wlf_wbn")]


@pytest.fixture
def client():
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, Client(cluster) as client:
        yield client


def test_cluster_gives_the_local_bits_also_when_a_worker_dies(client, tmp_path, monkeypatch):
    from wbn.experiments import store

    write, killed = store.Store.write, []

    def write_and_kill(self, *arguments):
        write(self, *arguments)
        if not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(store.Store, "write", write_and_kill)
    table = sweep(PROTOCOLS, range(30), tmp_path, client, progress=False)
    assert killed
    expected = [run(p, range(30), progress=False) for p in PROTOCOLS]
    pd.testing.assert_frame_equal(table, pd.concat(expected, ignore_index=True))
