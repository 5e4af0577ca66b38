"""Running statistics, which take no batch that would leave them infinite, NaN or negative."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.autograd.graph import increment_version

from wbn.checks import cast, check_count
from wbn.eager import is_ordinary, quietly
from wbn.small import PRECISIONS


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
    if _readable(running_mean, running_var):
        _update_arrays(running, batch, momentum, num_batches_tracked)
        return
    alpha: float | Tensor | None = momentum
    if alpha is None:
        alpha = (num_batches_tracked + 1).to(running_mean.dtype).reciprocal()
    new = running_mean.lerp(batch[0], alpha), running_var.lerp(batch[1], alpha)
    _replace(running, new, num_batches_tracked)


def _readable(mean: Tensor, var: Tensor) -> bool:
    """Whether NumPy can read them, in eager mode on the CPU."""
    return is_ordinary(mean) and mean.dtype in PRECISIONS and var.dtype in PRECISIONS


@quietly
def _update_arrays(
    running: tuple[Tensor, Tensor],
    batch: tuple[Tensor, Tensor],
    momentum: float | None,
    num_batches_tracked: Tensor | None,
) -> None:
    """`update_running`, for arrays: where calls cost the least."""
    if momentum is None:
        momentum = 1 / (1 + num_batches_tracked.item())
    mean, var = running[0].numpy(), running[1].numpy()
    new_mean = _between(mean, batch[0].numpy(), momentum)
    new_var = _between(var, batch[1].numpy(), momentum)
    if _storable(new_mean, new_var):
        mean[...], var[...] = new_mean, new_var
        increment_version(running[0])
        increment_version(running[1])
        if num_batches_tracked is not None:
            num_batches_tracked.add_(1)


def _between(old: np.ndarray, new: np.ndarray, momentum: float) -> np.ndarray:
    step = new - old
    return old + momentum * step if momentum < 0.5 else new - (1 - momentum) * step


def _storable(mean: np.ndarray, var: np.ndarray) -> bool:
    root = np.sqrt(var)
    if math.isfinite(mean.dot(root)):  # a finite sum has no infinite or NaN part
        return True
    return bool(np.isfinite(mean).all() and np.isfinite(root).all())


def _replace(
    running: tuple[Tensor, Tensor], new: tuple[Tensor, Tensor], num_batches_tracked: Tensor | None
) -> None:
    """Take new running statistics and count their batch, without waiting for a device."""
    taken = _all_storable(*new)
    for old, of_batch in zip(running, new, strict=True):
        old.copy_(torch.where(taken, of_batch, old))
    if num_batches_tracked is not None:
        num_batches_tracked.add_(taken)


def _all_storable(mean: Tensor, var: Tensor) -> Tensor:
    return (mean.isfinite() & var.sqrt().isfinite()).all()


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
    check_count(x)
    cudnn = torch.backends.cudnn.enabled
    if running_mean is None:
        return torch.batch_norm(x, weight, bias, None, None, True, 0.0, eps, cudnn)
    if momentum is None:
        momentum = 1 / (1 + num_batches_tracked.item())
    running, spare = (running_mean, running_var), (running_mean.clone(), running_var.clone())
    ordinary = is_ordinary(running_mean)
    into = running if ordinary else spare
    y = torch.batch_norm(x, weight, bias, *into, True, momentum, eps, cudnn)
    if not ordinary:
        _replace(running, spare, num_batches_tracked)
        return y
    # By a momentum up to 1 no variance becomes negative, and NaN and infinity are in the sum.
    finite = momentum <= 1 and math.isfinite(running_mean.dot(running_var).item())
    if not finite and not _all_storable(*running):
        for old, before in zip(running, spare, strict=True):
            old.data.copy_(before)  # torch keeps them for the gradient, and does not look at them
    elif num_batches_tracked is not None:
        num_batches_tracked.add_(1)
    return y
