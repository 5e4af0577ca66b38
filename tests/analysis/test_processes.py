"""Costs on paper: bytes against what is really sent, times against cases done by hand."""

import pytest
import torch

from wbn import distributed
from wbn.analysis.processes import gather_time, gathered_bytes, step_times, sum_time, summed_bytes
from wbn.checks import broadcast_weight
from wbn.core import normalize_backward
from wbn.normalization import checked_moments


class Alone:
    """A group of one, which counts the bytes that it is given."""

    def __init__(self, monkeypatch):
        self.sent = 0
        monkeypatch.setattr(distributed.dist, "all_gather", self.all_gather)
        monkeypatch.setattr(distributed.dist, "all_reduce", self.all_reduce)

    def size(self):
        return 1

    def rank(self):
        return 0

    def all_gather(self, rows, row, group):
        self.sent += row.nbytes
        rows[0].copy_(row)

    def all_reduce(self, flat, group):
        self.sent += flat.nbytes


@pytest.mark.parametrize("channels", [1, 64])
def test_bytes_are_those_that_are_sent(monkeypatch, channels):
    group = Alone(monkeypatch)
    x, w = torch.randn(8, channels, 3, 3), torch.rand(8)
    m = checked_moments(x, w, "none", group).moments
    assert group.sent == gathered_bytes(channels)
    group.sent = 0
    normalize_backward(
        torch.ones_like(x), m, broadcast_weight(x, w), None, 1e-5, (0, 2, 3),
        lambda *sums: distributed.sum_over_processes(group, *sums),
    )  # fmt: skip
    assert group.sent == summed_bytes(channels)


def test_times_by_hand():
    assert gather_time(100, 8, latency=1.0, bandwidth=10.0) == 3 + 70
    assert sum_time(100, 4, latency=1.0, bandwidth=10.0) == 2 * (2 + 7.5)
    assert gather_time(100, 1, latency=1.0, bandwidth=10.0) == 0


def test_step_adds_up_its_layers():
    table = step_times([1, 3], 10, [2, 4], latency=1.0, bandwidth=8.0)
    assert table.loc[2].tolist() == [1000 * (2 + (24 + 40) / 8), 1000 * (4 + 4.0), 1000 * (2 + 5)]
    assert list(table.index) == [2, 4]
