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

from wbn.checks import Correction, broadcast_weight, check_enough, check_not_negative
from wbn.core import divided, normalize_backward, plain_eager, reduced, weighted_sum
from wbn.divisors import Divisors, pairs

sums_of_torch = torch.ops.aten.native_batch_norm_backward.default
BLOCK = 2**16  # values: 256 kB in single precision, where a core's own cache has 1 MB or so


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
    given = broadcast_weight(x, sample_weight)
    smallest, largest = (extreme.item() for extreme in given.aminmax())
    mantissa, _ = math.frexp(largest)
    scale = largest / (2 * mantissa) if 0 < largest < math.inf else 1.0  # as `scaled` does
    w = (given / scale).to(torch.promote_types(x.dtype, torch.float32))
    each, flat = w.sum().item(), w.view(-1)
    total = each * (x.numel() // (x.shape[1] * w.numel()))
    check_not_negative(smallest, scale * total)
    spread = 1 - flat.dot(flat).item() / (each * total) if total else 0.0
    if spread < 0.5:  # and its digits are lost in the difference
        spread = 2 * pairs(flat).item() / (each * total) if total else 0.0
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
    >>> x, w = torch.zeros(200, 1000), torch.zeros(200, 1)
    >>> [(len(part), len(of_w)) for part, of_w in blocks(x, w)]
    [(65, 65), (65, 65), (65, 65), (5, 5)]
    """
    rows = max(1, BLOCK * len(x) // x.numel())
    if rows >= len(x):
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
    about = _total([weighted_sum(part.to(p.dtype), p, dims) for part, p in blocks(x, share)])
    for part, p in blocks(x, share):
        centered = part - about
        weighted = centered * p
        first.append(weighted.sum(dims, keepdim=True))
        second.append(weighted.mul_(centered).sum(dims, keepdim=True))
    shift = _total(first)
    var = torch.addcmul(_total(second), shift, shift, value=-1)
    return (about + shift).view(-1), var.view(-1).relu_()  # rounding may leave less than zero


def _total(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)


class NormalizeInBlocks(torch.autograd.Function):
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b` for moments that are given.

    The gradient is the one of `normalize_backward`, which holds what goes through the moments.
    Where it is differentiated again, autograd is to see how they depend on x.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, share, mean, var, corrected, eps):
        ctx.save_for_backward(x, weight, share, mean, var)
        ctx.corrected, ctx.eps = corrected, eps
        parameters = (None if p is None else p.to(mean.dtype) for p in (weight, bias))
        return torch.native_batch_norm(x, *parameters, mean, var, False, 0.0, eps)[0]

    @staticmethod
    def backward(ctx, grad):
        compute = _gradients if torch.is_grad_enabled() else gradients_in_blocks
        gradients = compute(grad, *ctx.saved_tensors, ctx.corrected, ctx.eps)
        needed = ctx.needs_input_grad
        return *(g if n else None for g, n in zip(gradients, needed, strict=False)), *(None,) * 5


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
    offset = (scale * grad_bias).neg_()
    slope = (scale * inverse_std).mul_(grad_weight).mul_(-corrected)
    grad_x = torch.empty_like(x)
    whole = dense(grad), dense(x), dense_share(share, x), dense(grad_x)
    if whole[0].dim() == 3:
        mean, scale, offset, slope = (t.unsqueeze(1) for t in (mean, scale, offset, slope))
    for g, part, p, out in blocks(*whole):
        through_moments = (part - mean).mul_(slope).add_(offset).mul_(p)
        torch.addcmul(through_moments, g.to(mean.dtype), scale, out=out)
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
