"""Statistics of many batches, from one after the other."""

from __future__ import annotations

from functools import reduce
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from wbn.arrays import precise
from wbn.checks import (
    Correction,
    broadcast_weight,
    check_enough,
    check_not_negative,
    check_poolable,
)
from wbn.core import Sums, merge, moments, reduced
from wbn.distributed import Group
from wbn.divisors import denominator
from wbn.normalization import checked_moments


class Average:
    """Averages of mini-batch statistics, each batch counted once or by its total weight.

    Examples
    --------
    >>> import torch
    >>> from wbn.accumulation import Average
    >>> average = Average("none", None, by_weight=True)
    >>> average.add(torch.tensor([[0.0], [1.0]]), None)
    >>> average.add(torch.tensor([[2.0], [3.0]]), torch.tensor([1.0, 3.0]))
    >>> average.result()
    (tensor([2.], dtype=torch.float64), tensor([0.5000], dtype=torch.float64), 2)
    """

    mean: Any  # the number 0 until the first batch is added, then a tensor
    var: Any

    def __init__(self, correction: Correction, group: Group | None, by_weight: bool) -> None:
        self.correction, self.group, self.by_weight = correction, group, by_weight
        self.calls, self.total, self.mean, self.var = 0, 0.0, 0.0, 0.0

    def add(self, x: Tensor, sample_weight: Tensor | None) -> None:
        """Take a batch of shape (N, C, \\*positions), or this process's part of one."""
        m, stored, _, scale, _ = checked_moments(x, sample_weight, self.correction, self.group)
        share = m.total.item() * float(scale) if self.by_weight else 1.0
        self.calls += 1
        self.total += share
        self.mean += share * _exact(m.mean)
        self.var += share * _exact(stored)

    def result(self) -> tuple[Tensor, Tensor, int]:
        """Mean, variance and the number of batches."""
        return self.mean / self.total, self.var / self.total, self.calls


class Pool:
    """Moments of all batches together.

    Examples
    --------
    >>> import torch
    >>> from wbn.accumulation import Pool
    >>> pool = Pool("frequency", None)
    >>> pool.add(torch.tensor([[0.0], [1.0]]), None)
    >>> pool.add(torch.tensor([[2.0], [3.0]]), torch.tensor([1.0, 3.0]))
    >>> pool.result()
    (tensor([2.], dtype=torch.float64), tensor([1.6000], dtype=torch.float64), 2)
    """

    def __init__(self, correction: Correction, group: Group | None) -> None:
        self.correction, self.group, self.calls = correction, group, 0
        self.sums = Sums(*torch.zeros(4, 1, dtype=torch.float64))

    def add(self, x: Tensor, sample_weight: Tensor | None) -> None:
        """Take a batch of shape (N, C, \\*positions)."""
        self.calls += 1
        if x.numel() == 0:
            return
        x = precise(x)
        w = None if sample_weight is None else broadcast_weight(x, sample_weight)
        if w is not None:
            x = x.masked_fill(w == 0, 0)
        m = moments(x, w, reduced(x), "none")
        if w is not None:
            check_not_negative(w.min().item(), m.total.item())
            check_poolable(m.total.item())
        parts = m.total, m.mean, m.total * m.var, m.total * m.unbiased
        self.sums = merge(self.sums, Sums(*map(_exact, parts)))

    def result(self) -> tuple[Tensor, Tensor, int]:
        """Mean, variance and the number of batches."""
        total, mean, scatter, pairs = self._of_all_processes()
        concentration = 1 - pairs / total.square()
        precision = torch.finfo(torch.float32).eps
        check_enough(total.item(), concentration.item(), self.correction, precision)
        stored = "reliability" if self.correction == "none" else self.correction
        return mean, scatter / denominator(total, concentration, stored), self.calls

    def _of_all_processes(self) -> Sums:
        if self.group is None:
            return self.sums
        parts: list[Any] = [None] * self.group.size()
        dist.all_gather_object(parts, self.sums, group=self.group)
        return reduce(merge, parts)


def _exact(statistic: Tensor) -> Tensor:
    return statistic.flatten().cpu().double()
