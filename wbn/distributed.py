r"""Batches that several processes share: the sums of each, and what they give together.

Each process holds a part of the mini-batch, of any size, with weights of its own or none. The
moments are those of the whole: one collective in the forward pass brings every process the total
weight, mean and scatter of each part (`wbn.core.merge`), and one in the backward pass adds up the
two sums of the closed form (`wbn.core.normalize_backward`). Both have fixed shapes.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import torch
import torch.distributed as dist
from torch import Tensor

from wbn.core import Moments, Sums, merge

Group: TypeAlias = "dist.ProcessGroup"  # which torch does not have on every system
ProcessGroup: TypeAlias = "Group | Literal['world']"


def sharing(process_group: ProcessGroup | None) -> Group | None:
    """The group that shares a batch: None if there is none, or but one process in it.

    ``"world"`` is the group of all processes, or this one where torch.distributed was not
    started. The name can be given before the start, and is copied and pickled with a layer.

    Examples
    --------
    >>> from wbn.distributed import sharing
    >>> sharing("world") is None  # nobody else
    True
    """
    if process_group == "world":
        started = dist.is_available() and dist.is_initialized()
        process_group = dist.group.WORLD if started else None
    if process_group is None or process_group.size() == 1:
        return None
    return process_group


class Gathered(NamedTuple):
    """What `gather_moments` returns."""

    sums: Sums  # of the whole batch, of shapes (1,) and (C,), on its scale
    scale: Tensor  # what all weights are to be divided by
    smallest: Tensor  # of all weights
    share: Tensor  # what the weights of this process are still to be multiplied by


def gather_moments(local: Moments, scale: Tensor, smallest: Tensor, group: Group) -> Gathered:
    r"""Sums of the whole batch from the moments that each process has of its part.

    Parts come on scales of their own (`wbn.divisors.scaled`), powers of two, and are brought
    to the largest of those that have weight. A part without weight changes nothing.

    Parameters
    ----------
    local
        Moments without correction, whose mean and variance are NaN where there is no weight.
    scale, smallest
        What the weights were divided by, and the smallest before that.
    group
        Who has the other parts.
    """
    total, dtype = local.total, local.total.dtype
    _, exponent = torch.frexp(scale)  # of 2 ** (exponent - 1)
    fields = [
        total,
        total * local.unbiased,
        torch.where(total > 0, exponent.to(dtype) - 1, -2000),  # less than any
        smallest.to(dtype),
        local.mean,
        total * local.var,
    ]
    row = torch.cat([torch.where(total == 0, f.nan_to_num(), f).flatten() for f in fields])
    rows = [torch.empty_like(row) for _ in range(group.size())]
    dist.all_gather(rows, row, group=group)
    table = torch.stack(rows)
    exponents = table[:, 2:3]
    largest = exponents.amax()
    factor = torch.exp2(exponents - largest)
    mean, scatter = table[:, 4:].chunk(2, dim=1)
    parts = Sums(factor * table[:, :1], mean, factor * scatter, factor.square() * table[:, 1:2])
    return Gathered(
        merge_all(parts),
        torch.exp2(largest.to(scale.dtype)),
        table[:, 3].amin(),
        factor[group.rank()],
    )


def merge_all(parts: Sums) -> Sums:
    """All parts, stacked along the first dimension, taken as one: merged in pairs, and so on.

    Examples
    --------
    >>> import torch
    >>> from wbn.core import Sums
    >>> from wbn.distributed import merge_all
    >>> numbers = torch.tensor([0.0, 1.0, 5.0])  # each a batch of its own
    >>> [s.item() for s in merge_all(Sums(torch.ones(3), numbers, torch.zeros(3), torch.zeros(3)))]
    [3.0, 2.0, 14.0, 6.0]
    """
    while len(parts.total) > 1:
        half = len(parts.total) // 2
        pairs = merge(*(Sums(*(s[at : at + half] for s in parts)) for at in (0, half)))
        odd = (s[2 * half :] for s in parts)
        parts = Sums(*(torch.cat(both) for both in zip(pairs, odd, strict=True)))
    return Sums(*(s[0] for s in parts))


def sum_over_processes(group: Group, *parts: Tensor) -> tuple[Tensor, ...]:
    """Each tensor summed over the processes, with one collective for all of them."""
    flat = torch.cat([part.flatten() for part in parts])
    dist.all_reduce(flat, group=group)
    sums = flat.split([part.numel() for part in parts])
    return tuple(s.view_as(part) for s, part in zip(sums, parts, strict=True))


def mean_over_processes(value: Tensor, process_group: ProcessGroup | None) -> Tensor:
    r"""The mean :math:`\frac{1}{P} \sum_p Z_p` over the P processes, for a loss's divisor.

    DistributedDataParallel averages gradients over processes. With losses :math:`L_p =
    \frac{1}{\bar Z} \sum_{\mu \in B_p} w_\mu f_\mu`, all divided by this mean of the divisors,
    the average is the gradient of the loss of the whole batch, :math:`\frac{1}{\sum_p Z_p}
    \sum_p \sum_{\mu \in B_p} w_\mu f_\mu`.

    Examples
    --------
    >>> import torch
    >>> from wbn.distributed import mean_over_processes
    >>> mean_over_processes(torch.tensor(3.0), "world")  # of the only one
    tensor(3.)
    """
    group = sharing(process_group)
    if group is None:
        return value
    (total,) = sum_over_processes(group, value)
    return total / group.size()
