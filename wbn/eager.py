r"""The mathematics of `wbn.core` for ordinary tensors on the CPU in eager mode, in few calls.

Weights and channels, which are few, are worked on as NumPy arrays, and so are small batches
(`wbn.small`): there a call costs more than the work it does, and calls of NumPy cost the least.
Larger batches pass through torch's own kernels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
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
from wbn.core import divided, normalize_backward, plain_eager, reduced
from wbn.divisors import Divisors, pairs, scaled
from wbn.small import is_small, small_gradients, small_moments, small_normalize

sums_of_torch = torch.ops.aten.native_batch_norm_backward.default
quietly = np.errstate(all="ignore")  # what is not finite is refused or told elsewhere, as in torch


def is_ordinary(x: Tensor) -> bool:
    """Whether x is an ordinary tensor on the CPU, outside of torch.compile and torch.func."""
    return type(x) in (Tensor, nn.Parameter) and x.is_cpu and plain_eager()


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
    >>> from wbn.eager import shares
    >>> shares(torch.zeros(2, 1), torch.tensor([1.0, 3.0]), "frequency")
    Shares(of=tensor([[0.2500],
            [0.7500]]), smallest=1.0, corrected=1.3333333333333333, stored=1.0)
    """
    given, dtype, scale = broadcast_weight(x, sample_weight), precision_of(x), 1.0
    w = given.numpy()
    smallest, each = float(w.min()), float(w.sum())
    if given.dtype != dtype or not 1e-12 < each < 1e12:  # where squares could leave the range
        given, power = scaled(given, dtype)
        w, scale = given.numpy(), power.item()
        each = float(w.sum())
    flat = w.reshape(-1)
    total = each * (x.numel() // (x.shape[1] * flat.size))
    check_not_negative(smallest, scale * total)
    spread = 1 - float(flat.dot(flat)) / (each * total or math.nan)
    if spread < 0.5:  # and its digits are lost in the difference
        spread = 2 * pairs(given.reshape(-1)).item() / (each * total)
    check_enough(scale * total, 1 - spread, correction, torch.finfo(dtype).eps)
    ratio = total / (total - 1 / scale) if correction == "frequency" else 1 / spread
    ratios = (1.0, ratio) if correction == "none" else (ratio, 1.0)
    return Shares(torch.from_numpy(w / total), smallest, *ratios)


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


def per_sample(p: Tensor) -> bool:
    """Whether these are shares of samples, for x of shape (N, C, positions)."""
    return p.dim() == 3 and p.shape[2] == 1


def moments_by_torch(x: Tensor, share: Tensor, scratch: Tensor) -> tuple[np.ndarray, np.ndarray]:
    r"""Weighted mean and variance of each channel, of shape (C,); the variance without correction.

    .. math::
        a = \sum_i p_i x_i, \qquad s = \sum_i p_i (x_i - a), \qquad
        m = a + s, \qquad v = \sum_i p_i (x_i - a)^2 - s^2, \qquad p_i = \frac{w_i}{Z}

    In exact arithmetic s is zero. It is what rounding takes from the first sum, and much where the
    mean is large. What scratch, of the shape and type of x, holds is lost.

    Examples
    --------
    >>> import torch
    >>> from wbn.eager import moments_by_torch
    >>> x = torch.tensor([[0.0], [1.0]])
    >>> moments_by_torch(x, torch.tensor([[0.25], [0.75]]), torch.empty_like(x))
    (array([0.75], dtype=float32), array([0.1875], dtype=float32))
    """
    values, p = cast(dense(x), share.dtype), dense_share(share, x)
    about = _first_sum(values, p)
    memory = values if per_sample(p) and values.dtype != x.dtype else dense(scratch)
    centered = _centered(values, about, memory)
    if per_sample(p):  # positions first, then samples
        shift = _over_samples(centered.sum(2), p)
        squares = _over_samples(centered.mul_(centered).sum(2), p)
    else:  # torch's sums of g and g (x - m), for weighted distances in the place of g
        weighted, statistics = centered.mul_(p), (about, torch.ones_like(about), None, None)
        asked = False, 0.0, [False, True, True]
        _, squares, shift = sums_of_torch(weighted, values, None, *statistics, *asked)
    mean = about.numpy() + shift.numpy()
    return mean, np.maximum(squares.numpy() - shift.numpy() ** 2, 0)  # rounding may leave less


def _first_sum(values: Tensor, p: Tensor) -> Tensor:
    """The sum whose rounding doesn't matter, and neither does what torch makes of products."""
    if p.dim() == 3 and not per_sample(p):
        return torch.bmm(values, p.mT).sum((0, 2))
    return torch.mv((values.sum(2) if p.dim() == 3 else values).mT, p.view(-1))


def _over_samples(sums: Tensor, p: Tensor) -> Tensor:
    return sums.mul_(p.view(-1, 1)).sum(0)


def _per_channel(values: Tensor, like: Tensor) -> Tensor:
    return values if like.dim() == 2 else values.unsqueeze(1)


def _centered(values: Tensor, mean: Tensor, memory: Tensor) -> Tensor:
    """x - m, in the memory if it is of the same type."""
    out = memory if memory.dtype == values.dtype else None
    return torch.sub(values, _per_channel(mean, values), out=out)


def _affine(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    mean: Tensor,
    var: Tensor,
    eps: float,
    memory: Tensor,
) -> Tensor:
    """What torch does in eval mode, in the memory if it can."""
    arguments = x, weight, bias, mean, var, False, 0.0, eps
    if x.dtype != mean.dtype:
        return torch.native_batch_norm(*arguments)[0]
    nothing = mean.new_empty(0), mean.new_empty(0)
    return torch.native_batch_norm(*arguments, out=(memory, *nothing))[0]


class Batch(NamedTuple):
    """An output, and the weights and moments that it was made with."""

    y: Tensor
    share: Tensor
    mean: Tensor
    var: Tensor
    corrected: float
    eps: float


class NormalizeEagerly(torch.autograd.Function):
    """The output of a batch, with the gradient of `normalize_backward`.

    It holds what goes through the moments. Where it is differentiated again, autograd is to see
    how they depend on x.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, batch):
        y, share, mean, var, ctx.corrected, ctx.eps = batch
        ctx.save_for_backward(x, weight, share, mean, var)
        return y

    @staticmethod
    def backward(ctx, grad):
        compute = _gradients if torch.is_grad_enabled() else eager_gradients
        grad_x, grad_weight, grad_bias = compute(grad, *ctx.saved_tensors, ctx.corrected, ctx.eps)
        _, of_weight, of_bias, _ = ctx.needs_input_grad
        return grad_x, grad_weight if of_weight else None, grad_bias if of_bias else None, None


def normalize_eagerly(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, share: Shares, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, mean, and variance to store."""
    values, p, small = x.detach(), share.of, is_small(x)
    if small:
        mean, var = small_moments(values.numpy(), p.numpy().reshape(-1))
    else:
        y = torch.empty_like(values)
        mean, var = moments_by_torch(values, p, scratch=y)
    if share.corrected != 1:
        var *= share.corrected
    parameters = _constant(weight, p.dtype), _constant(bias, p.dtype)
    moments = torch.from_numpy(mean), torch.from_numpy(var)
    if small:
        gamma, beta = (None if t is None else t.numpy() for t in parameters)
        y = torch.from_numpy(small_normalize(values.numpy(), gamma, beta, mean, var, eps))
    else:
        y = _affine(values, *parameters, *moments, eps, memory=y)
    y = NormalizeEagerly.apply(x, weight, bias, Batch(y, p, *moments, share.corrected, eps))
    stored = moments[1] if share.stored == 1 else torch.from_numpy(var * share.stored)
    return y, moments[0], stored


def _constant(parameter: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    return None if parameter is None else cast(parameter.detach(), dtype)


@quietly
def eager_gradients(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    share: Tensor,
    mean: Tensor,
    var: Tensor,
    corrected: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias."""
    gamma = 1.0 if weight is None else _constant(weight, mean.dtype).numpy()
    if is_small(x):
        arrays = grad.numpy(), x.detach().numpy(), gamma, share.numpy().reshape(-1)
        dx, dw, db = small_gradients(*arrays, mean.numpy(), var.numpy(), corrected, eps)
        return torch.from_numpy(dx), torch.from_numpy(dw), torch.from_numpy(db)
    if grad.stride() != x.stride():
        grad = torch.empty_like(x).copy_(grad)
    statistics = mean, var, None, None, False, eps  # not those of the batch, to that kernel
    _, grad_weight, grad_bias = sums_of_torch(grad, x, None, *statistics, [False, True, True])
    inverse_std = 1 / np.sqrt(var.numpy() + eps)
    factor = inverse_std * gamma
    of_x, of_one = factor * inverse_std * grad_weight.numpy(), factor * grad_bias.numpy()
    scale, slope, offset = map(torch.from_numpy, (factor, -corrected * of_x, -of_one))
    grad_x, values = torch.empty_like(x), cast(dense(x), mean.dtype)
    centered = _centered(values, mean, dense(grad_x) if values.dtype == x.dtype else values)
    through_moments = _weighted_affine(centered, dense_share(share, x), slope, offset)
    g, scale = cast(dense(grad), mean.dtype), _per_channel(scale, values)
    torch.addcmul(through_moments, g, scale, out=dense(grad_x))
    return grad_x, grad_weight, grad_bias


def _weighted_affine(x: Tensor, p: Tensor, slope: Tensor, offset: Tensor) -> Tensor:
    """p (slope x + offset), in the memory of x."""
    if per_sample(p):  # to torch's affine map each row of positions is a channel
        rows = x.view(1, x.shape[0] * x.shape[1], -1)
        slope, offset = ((p.view(-1, 1) * each).view(-1) for each in (slope, offset))
        moments = torch.zeros_like(slope), torch.ones_like(slope)
        return _affine(rows, slope, offset, *moments, 0.0, memory=rows).view_as(x)
    return torch.addcmul(_per_channel(offset, x), x, _per_channel(slope, x), out=x).mul_(p)


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
