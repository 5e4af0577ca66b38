r"""The mathematics of `wbn.core` for ordinary tensors on the CPU, as fast as torch's own.

Weights are read once and checked as numbers, whole batches pass through torch's kernel of the
affine map, and what is left is done in blocks that stay in the processor's cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from wbn.checks import (
    Correction,
    broadcast_weight,
    cast,
    check_enough,
    check_not_negative,
    precision_of,
)
from wbn.core import divided, normalize_backward, plain_eager, reduced, weighted_sum
from wbn.divisors import Divisors, pairs, scaled

sums_of_torch = torch.ops.aten.native_batch_norm_backward.default
BLOCK = 2**18  # values of a thread: 1 MB in single precision, as much as a core's own cache


def works_in_blocks(x: Tensor) -> bool:
    """Whether x is an ordinary tensor on the CPU, outside of torch.compile and torch.func."""
    return type(x) in (Tensor, nn.Parameter) and x.device.type == "cpu" and plain_eager()


class Shares(NamedTuple):
    r"""Weights as they enter sums: :math:`w_i / Z`, and numbers that belong to them."""

    of: Tensor  # broadcasts against the input; sums to 1 over all positions
    smallest: float  # of the weights
    corrected: float  # Z / D, from the variance of "none" to the one normalized with
    stored: float  # from there to the variance for inference


def shares(x: Tensor, sample_weight: Tensor, correction: Correction) -> Shares:
    """Read the weights of a batch, and refuse them if they must be.

    Examples
    --------
    >>> import torch
    >>> from wbn.blocks import shares
    >>> shares(torch.zeros(2, 1), torch.tensor([1.0, 3.0]), "frequency")
    Shares(of=tensor([[0.2500],
            [0.7500]]), smallest=1.0, corrected=1.3333333333333333, stored=1.0)
    """
    w, scale = broadcast_weight(x, sample_weight), 1.0
    low, high = w.aminmax()
    smallest, largest = low.item(), high.item()
    if not 1e-15 < largest < 1e15:  # where sums of squares could leave the float range
        w, power = scaled(w, w.dtype)
        scale = power.item()
    w = cast(w, precision_of(x))
    copies = x.numel() // (x.shape[1] * w.numel())
    each, flat = w.sum().item(), w.view(-1)
    total = each * copies
    check_not_negative(smallest, scale * total)
    spread = 1 - flat.dot(flat).item() / (each * total or math.nan)
    if spread < 0.5:  # and its digits are lost in the difference
        spread = 2 * pairs(flat).item() / (each * total)
    check_enough(scale * total, 1 - spread, correction, torch.finfo(w.dtype).eps)
    ratio = total / (total - 1 / scale) if correction == "frequency" else 1 / spread
    ratios = (1.0, ratio) if correction == "none" else (ratio, 1.0)
    return Shares(w / total, smallest, *ratios)


def contiguous(x: Tensor) -> Tensor:
    """x with channels first or last, copied only if it is neither."""
    return x if x.dim() > 2 and x.movedim(1, -1).is_contiguous() else x.contiguous()


def dense(x: Tensor) -> Tensor:
    """A view of shape (N, C), which images with channels last have too, or (N, C, positions)."""
    if x.dim() == 2:
        return x
    rows = x.movedim(1, -1)
    return rows.flatten(0, -2) if rows.is_contiguous() else x.flatten(2)


def dense_share(share: Tensor, x: Tensor) -> Tensor:
    """Shares that broadcast against x, as such that broadcast against its dense view."""
    if x.dim() == 2:
        return share
    rows = x.movedim(1, -1)
    if rows.is_contiguous():
        return share.expand(-1, -1, *x.shape[2:]).reshape(-1, 1)
    return share.flatten(2)


def blocks(x: Tensor, *others: Tensor) -> Iterable[tuple[Tensor, ...]]:
    """Views of x and of others with as many rows, one after the other, of a block of values each.

    Examples
    --------
    >>> import torch
    >>> from wbn.blocks import blocks
    >>> x, w = torch.zeros(5, 2**20), torch.zeros(5, 1)
    >>> [part.shape == (1, 2**20) for part, of_w in blocks(x, w)]
    [True, True, True, True, True]
    """
    rows = max(1, BLOCK * torch.get_num_threads() * x.shape[0] // x.numel())
    if rows >= x.shape[0]:
        return [(x, *others)]
    return zip(*(t.split(rows) for t in (x, *others)), strict=True)


def moments_in_blocks(x: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    r"""Weighted mean and variance of each channel, of shape (C,); the variance without correction.

    .. math::
        a = \sum_i p_i x_i, \qquad s = \sum_i p_i (x_i - a), \qquad
        m = a + s, \qquad v = \sum_i p_i (x_i - a)^2 - s^2, \qquad p_i = \frac{w_i}{Z}

    In exact arithmetic s is zero. It is what rounding takes from the first sum, and much where the
    mean is large.

    Examples
    --------
    >>> import torch
    >>> from wbn.blocks import moments_in_blocks
    >>> moments_in_blocks(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.25], [0.75]]))
    (tensor([0.7500]), tensor([0.1875]))
    """
    x, share = dense(x), dense_share(share, x)
    dims, first, second = reduced(x), [], []
    about = _total([_about(cast(part, p.dtype), p, dims) for part, p in blocks(x, share)])
    centered = weighted = None
    for part, p in blocks(x, share):
        centered = torch.sub(cast(part, p.dtype), about, out=_again(centered, part))
        weighted = torch.mul(centered, p, out=_again(weighted, part))
        first.append(weighted.sum(dims, keepdim=True))
        second.append(weighted.mul_(centered).sum(dims, keepdim=True))
    shift = _total(first)
    var = _total(second) - shift * shift
    return (about + shift).view(-1), var.view(-1).relu_()  # rounding may leave less than zero


def _about(part: Tensor, p: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The first sum, whose rounding doesn't matter."""
    return p.mT @ part if part.dim() == 2 else weighted_sum(part, p, dims)


def _total(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)


def _again(buffer: Tensor | None, part: Tensor) -> Tensor | None:
    """The memory of the last block for this one: new memory costs more than what is done there."""
    return None if buffer is None else buffer.resize_as_(part)


class NormalizeInBlocks(torch.autograd.Function):
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b` for moments that are given.

    The gradient is the one of `normalize_backward`, which holds what goes through the moments.
    Where it is differentiated again, autograd is to see how they depend on x.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, share, mean, var, corrected, eps):
        ctx.save_for_backward(x, weight, share, mean, var)
        ctx.corrected, ctx.eps = corrected, eps
        weight = None if weight is None else cast(weight, mean.dtype)
        bias = None if bias is None else cast(bias, mean.dtype)
        return torch.native_batch_norm(x, weight, bias, mean, var, False, 0.0, eps)[0]

    @staticmethod
    def backward(ctx, grad):
        compute = _gradients if torch.is_grad_enabled() else gradients_in_blocks
        grad_x, grad_weight, grad_bias = compute(grad, *ctx.saved_tensors, ctx.corrected, ctx.eps)
        _, of_weight, of_bias, *_ = ctx.needs_input_grad
        parameters = grad_weight if of_weight else None, grad_bias if of_bias else None
        return grad_x, *parameters, None, None, None, None, None


def gradients_in_blocks(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    share: Tensor,
    mean: Tensor,
    var: Tensor,
    corrected: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias: the sums by torch's kernel, the rest block by block."""
    if grad.stride() != x.stride():
        grad = torch.empty_like(x).copy_(grad)
    statistics = mean, var, None, None, False, eps  # not those of the batch, to that kernel
    _, grad_weight, grad_bias = sums_of_torch(grad, x, None, *statistics, [False, True, True])
    inverse_std = (var + eps).rsqrt()
    scale = inverse_std if weight is None else inverse_std * weight
    negative = scale.neg()
    offset, slope = negative * grad_bias, negative * inverse_std * grad_weight
    if corrected != 1:
        slope.mul_(corrected)
    grad_x, through_moments = torch.empty_like(x), None
    whole = dense(x), dense(grad), dense_share(share, x), dense(grad_x)
    if whole[0].dim() == 3:
        mean, scale, offset, slope = (t.unsqueeze(1) for t in (mean, scale, offset, slope))
    for part, g, p, out in blocks(*whole):
        through_moments = torch.sub(cast(part, p.dtype), mean, out=_again(through_moments, part))
        through_moments.mul_(slope).add_(offset).mul_(p)
        torch.addcmul(through_moments, cast(g, p.dtype), scale, out=out)
    return grad_x, grad_weight, grad_bias


def _gradients(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    share: Tensor,
    mean: Tensor,
    var: Tensor,
    corrected: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    by = Divisors(1.0, math.nan, math.nan, 1 / corrected)
    m = divided(x.to(mean.dtype), share, reduced(x), by, refine=True)
    weight = None if weight is None else weight.view_as(m.mean)
    grads = normalize_backward(grad.to(mean.dtype), m, share, weight, eps, reduced(x))
    return grads[0], grads[1].flatten(), grads[2].flatten()
