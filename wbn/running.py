"""Running statistics, which take no batch that would leave them infinite, NaN or negative."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.autograd.graph import increment_version

import wbn.kernels as kernels
from wbn.checks import cast, check_count
from wbn.core import plain_eager
from wbn.kernels import place_of


def update_running(
    running_mean: Tensor,
    running_var: Tensor,
    mean: Tensor,
    var: Tensor,
    momentum: float | None,
    num_batches_tracked: Tensor | None = None,
) -> None:
    r"""Update :math:`m \leftarrow (1 - \alpha) m + \alpha m_r`, and :math:`v` alike, in place.

    With a momentum :math:`\alpha` of None it is one over the number of batches, which makes
    the cumulative average. A batch that would leave a statistic that is not finite, or a negative
    variance (whose root is NaN), changes nothing and is not counted.
    """
    running = running_mean, running_var
    batch = cast(mean, running_mean.dtype), cast(var, running_var.dtype)
    plain = plain_eager() and not any(t.is_neg() or t.requires_grad for t in (*running, *batch))
    place = place_of(*running) if plain else None
    of_batch = None if place is None else place_of(*batch)
    if of_batch is not None and of_batch[::3] == place[::3]:
        if momentum is None:
            momentum = 1 / (1 + num_batches_tracked.item())
        if kernels.native.update(*place, *of_batch[1:3], momentum):
            increment_version(running)
            if num_batches_tracked is not None:
                num_batches_tracked.add_(1)
        return
    alpha: float | Tensor | None = momentum
    if alpha is None:
        alpha = (num_batches_tracked + 1).to(running_mean.dtype).reciprocal()
    new = batch
    if momentum != 1:
        new = running_mean.lerp(batch[0], alpha), running_var.lerp(batch[1], alpha)
    _replace(running, new, num_batches_tracked)


def _replace(
    running: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor], num_batches_tracked: Tensor | None
) -> None:
    """Take new running statistics and count their batch, without waiting for a device."""
    taken = (new[0].isfinite() & new[1].sqrt().isfinite()).all()
    for old, of_batch in zip(running, new, strict=True):
        old.copy_(torch.where(taken, of_batch, old))
    if num_batches_tracked is not None:
        num_batches_tracked.add_(taken)


def normalize_as_torch(
    x: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    momentum: float | None,
    eps: float,
    num_batches_tracked: Tensor | None = None,
) -> Tensor:
    """The output of nn.BatchNorm in training to the last bit, and its running statistics."""
    if x.shape[0] < 2:
        check_count(x)
    if running_mean is None:
        cudnn = torch.backends.cudnn.enabled
        return torch.batch_norm(x, weight, bias, None, None, True, 0.0, eps, cudnn)
    if momentum is None:
        momentum = 1 / (1 + num_batches_tracked.item())
    running = running_mean, running_var
    place = None if torch.compiler.is_compiling() else place_of(*running)
    if place is None:
        new, cudnn = (running_mean.clone(), running_var.clone()), torch.backends.cudnn.enabled
        y = torch.batch_norm(x, weight, bias, *new, True, momentum, eps, cudnn)
        update_running(*running, *new, 1.0, num_batches_tracked)
        return y
    before, kept = kernels.native.copy(*place), False
    if num_batches_tracked is not None:
        num_batches_tracked.add_(1)  # after the large kernel, caches have lost what it needs
    try:
        y = torch.batch_norm(x, weight, bias, *running, True, momentum, eps, False)
        kept = kernels.native.keep_or_restore(*place, before)
    finally:
        if not kept and num_batches_tracked is not None:
            num_batches_tracked.sub_(1)
    return y
