"""What batch normalization with weights asks of its input, and what it says when refused."""

import math
import sys
import warnings
from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch._subclasses import FakeTensor

from wbn.divisors import Divisors, Value

Correction = Literal["frequency", "reliability", "none"]
CORRECTIONS = get_args(Correction)


def check_correction(correction: str) -> None:
    """Refuse a correction that is not one of the three."""
    if correction not in CORRECTIONS:
        raise ValueError(f"correction is {correction!r}; choose one of {CORRECTIONS}")


def check_input(x: Tensor) -> None:
    """Refuse inputs that are not floating point, or not of shape (N, C, \\*positions)."""
    if not x.is_floating_point():
        raise ValueError(f"the input is {x.dtype}; batch norm needs floating point: use x.float()")
    if x.dim() < 2 or x.shape[1] == 0:
        raise ValueError(
            f"the input has shape {tuple(x.shape)}; expected (N, C) or (N, C, *), C at least 1"
        )


def check_count(x: Tensor) -> None:
    """Refuse inputs with fewer than two values per channel."""
    count = x.numel() // x.shape[1]
    if count < 2:
        raise ValueError(
            f"batch statistics need at least two values per channel, but the input of shape "
            f"{tuple(x.shape)} has {count}: use larger batches (drop_last=True for the last one "
            "of a DataLoader), or eval mode"
        )


def warn_if_called_by(function: str, message: str) -> None:
    """Warn where the caller of this was called by a function of this name."""
    if sys._getframe(2).f_code.co_name == function:
        warnings.warn(f"{function} {message}", stacklevel=4)


def check_alone(group: object | None, what: str) -> None:
    """Refuse what works in one process only."""
    if group is not None:
        raise ValueError(
            f"{what} don't work where processes share a batch: leave process_group out for them"
        )


def check_channels(x: Tensor, **per_channel: Tensor | None) -> None:
    """Refuse parameters and statistics that don't have one entry per channel of x."""
    for name, tensor in per_channel.items():
        if tensor is not None and tensor.shape != x.shape[1:2]:
            raise ValueError(
                f"the input of shape {tuple(x.shape)} has {x.shape[1]} channels (dimension 1), "
                f"but {name} has shape {tuple(tensor.shape)}"
            )


def broadcast_weight(x: Tensor, sample_weight: Tensor) -> Tensor:
    """Weights of shape (N,) or (N, \\*positions), shaped to multiply x of (N, C, \\*positions).

    They keep their range: their precision is at least single, that of x, and their own.
    """
    w = checked_weight(x, sample_weight)
    positions = x.shape[2:] if w.dim() > 1 else (1 for _ in x.shape[2:])
    return w.reshape(len(x), 1, *positions)


def checked_weight(x: Tensor, sample_weight: Tensor) -> Tensor:
    """Weights of shape (N,) or (N, \\*positions) for x, refused if they are not."""
    if not isinstance(sample_weight, Tensor):
        raise ValueError(
            f"sample_weight is a {type(sample_weight).__name__}; make it a tensor with "
            "torch.as_tensor"
        )
    if sample_weight.requires_grad:
        raise ValueError("sample_weight requires a gradient, but weights are constants: detach it")
    if sample_weight.is_complex():
        raise ValueError(f"sample_weight is {sample_weight.dtype}; weights are real: use its .real")
    if not sample_weight.is_floating_point() and sample_weight.dtype != torch.bool:
        raise ValueError(
            f"sample_weight is {sample_weight.dtype}, as labels are; weights are floating point or "
            "a boolean mask: look those of labels up with wbn.per_sample, and use .float() for "
            "weights that are whole numbers"
        )
    batch, _, *positions = x.shape
    if sample_weight.shape not in ((batch,), (batch, *positions)):
        each = f" or {(batch, *positions)}" if positions else ""
        raise ValueError(
            f"sample_weight (an argument, or from the surrounding sample_weights) has shape "
            f"{tuple(sample_weight.shape)}, but the input of shape {tuple(x.shape)} needs "
            f"{(batch,)}{each}: for layers and losses at other resolutions, or of other batches, "
            "give sample_weights a resize"
        )
    if sample_weight.device != x.device:
        raise ValueError(
            f"sample_weight is on {sample_weight.device} and the input on {x.device}: move the "
            "weights with .to(x.device)"
        )
    wide = sample_weight.dtype == torch.float64
    return sample_weight if wide else cast(sample_weight, precision_of(x))


def cast(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x.to(dtype)``, which takes its time even where there is nothing to do."""
    return x if x.dtype == dtype else x.to(dtype)


def precision_of(x: Tensor) -> torch.dtype:
    """The type that sums over x are taken in: single precision at least."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def values_checkable(tensor: Tensor) -> bool:
    """Whether values can be read without a graph break, a synchronization or a vmap error."""
    if torch.compiler.is_compiling() or tensor.device.type != "cpu":
        return False
    if isinstance(tensor, FakeTensor):
        return False
    while torch._C._functorch.is_functorch_wrapped_tensor(tensor):
        if torch._C._functorch.is_batchedtensor(tensor):
            return False
        tensor = torch._C._functorch.get_unwrapped(tensor)
    return True


def check_not_negative(smallest: float, total: float) -> None:
    """Refuse weights that are negative, NaN or infinite."""
    if not (smallest >= 0 and total < math.inf):
        raise ValueError(
            f"sample_weight has negative, NaN or infinite values (smallest {smallest:g}, sum "
            f"{total:g}); weights are finite and not negative"
        )


def check_weights(
    smallest: Tensor, scale: Tensor, by: Divisors, correction: Correction
) -> Tensor | Literal[True]:
    """Refuse weights, or where their values can't be read, say whether they should not be.

    Parameters
    ----------
    smallest
        Of the weights as they were given.
    scale, by
        What they were divided by, and their sums after that.
    correction
        As in `weighted_moments`.
    """
    if not values_checkable(by.total):
        return are_usable(smallest, scale, by, correction)
    total, precision = scale.item() * by.total.item(), torch.finfo(by.total.dtype).eps
    check_not_negative(smallest.item(), total)
    check_enough(total, by.concentration.item(), correction, precision)
    return True


def are_usable(smallest: Tensor, scale: Tensor, by: Divisors, correction: Correction) -> Tensor:
    """Whether `check_weights` would not refuse weights."""
    spread = spread_out(by.concentration, torch.finfo(by.total.dtype).eps)
    return (smallest >= 0) & spread & heavy_enough(scale * by.total, correction)


def check_poolable(total: float) -> None:
    """Refuse a total weight whose square leaves the float range."""
    if total != 0 and not 1e-150 < total < 1e150:
        raise ValueError(
            f"sample_weight sums to {total:g}, too far from 1 to be pooled over batches: divide "
            "all weights by the largest"
        )


def check_enough(total: float, concentration: float, correction: str, precision: float) -> None:
    r"""Refuse a total weight Z, or a concentration :math:`\sum w^2 / Z^2`, that gives no variance.

    A concentration of 1, up to the precision of the sums, means one position has all weight.
    """
    if total == 0:
        raise ValueError("sample_weight is all zero: leave out batches without weight")
    if not spread_out(concentration, precision):
        raise ValueError(
            "all the weight lies on one position, and a variance needs at least two positions "
            "with positive weight: use larger batches, or leave this one out"
        )
    if not heavy_enough(total, correction):
        raise ValueError(
            f"the weights of this batch sum to {total:g}, but correction='frequency' counts them "
            "as copies and divides by their sum minus 1, so they must sum to at least 2: use "
            "larger batches or larger weights, or correction='none' or 'reliability', which do "
            "not depend on the scale of the weights"
        )


def spread_out(concentration: Value, precision: float) -> Any:
    """Whether at least two positions have weight; False for NaN, which zeros give."""
    # 8 is room for the rounding of weights, squares and sums. A second weight of d times the
    # first gives about 1 - 2d: it counts from four times the precision on.
    return concentration <= 1 - 8 * precision


def heavy_enough(total: Value, correction: str) -> Any:
    """Whether the total weight is one that the correction can divide by."""
    return total >= (2 * (1 - 1e-6) if correction == "frequency" else 0)
