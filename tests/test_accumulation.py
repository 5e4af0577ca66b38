"""Statistics of many batches; `tests/test_population.py` tests them inside models."""

import torch
from torch.testing import assert_close

from wbn import accumulation
from wbn.accumulation import Pool
from wbn.functional import weighted_moments


class Group:
    """Two processes, of which the test is one."""

    def size(self):
        return 2


def test_a_pool_is_of_all_processes(monkeypatch):
    torch.manual_seed(0)
    x, w = torch.randn(7, 3, dtype=torch.float64), torch.rand(7, dtype=torch.float64)
    pools = [Pool("none", Group()) for _ in range(2)]
    for pool, part in zip(pools, (slice(2), slice(2, 7)), strict=True):
        pool.add(x[part], w[part])

    def gather(parts, own, group):
        parts[:] = [pool.sums for pool in pools]

    monkeypatch.setattr(accumulation.dist, "all_gather_object", gather)
    for pool in pools:
        assert_close(pool.result()[:2], weighted_moments(x, w, "reliability"))
