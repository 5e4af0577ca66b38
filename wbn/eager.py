r"""The mathematics of `wbn.core` for ordinary tensors on the CPU in eager mode, in few calls.

Weights and channels, which are few, are worked on as NumPy arrays, and so are small batches
(`wbn.small`): there a call costs more than the work it does, and calls of NumPy cost the least.
Larger batches pass through torch's own kernels.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn
from torch._C import _len_torch_dispatch_stack
from torch._C._functorch import is_legacy_batchedtensor

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
from wbn.small import Made, Shares, gradients_small, is_small, normalize_small

sums_of_torch = torch.ops.aten.native_batch_norm_backward.default
FEW = 16  # positions: below it, torch's kernels for images are slow
quietly = np.errstate(all="ignore")  # what is not finite is refused or told elsewhere, as in torch


def is_ordinary(x: Tensor) -> bool:
    """Whether x is an ordinary tensor on the CPU, and nobody traces what is done with it."""
    plain = type(x) in (Tensor, nn.Parameter) and x.is_cpu and plain_eager()
    return plain and torch._C._get_tracing_state() is None and not _len_torch_dispatch_stack()


def shares(x: Tensor, sample_weight: Tensor, correction: Correction) -> Shares:
    """Read the weights of a batch, and refuse them if they must be.

    Examples
    --------
    >>> import torch
    >>> from wbn.eager import shares
    >>> shares(torch.zeros(2, 1), torch.tensor([1.0, 3.0]), "frequency")
    Shares(of=array([[0.25],
           [0.75]], dtype=float32), smallest=0.25, corrected=1.3333333333333333, stored=1.0)
    """
    given, dtype, scale = broadcast_weight(x, sample_weight), precision_of(x), 1.0
    w = given.numpy()
    smallest, each = float(w.min()), float(w.sum())
    if given.dtype != dtype or not 1e-12 < each < 1e12:  # where squares could leave the range
        given, power = scaled(given, dtype)
        w, scale = given.numpy(), power.item()
        each = float(w.sum())
    flat = w.reshape(-1)
    copies = x.numel() // (x.shape[1] * flat.size)
    total = each * copies
    check_not_negative(smallest, scale * total)
    spread = 1 - float(flat.dot(flat)) / (each * total or math.nan)
    if spread < 0.5:  # and its digits are lost in the difference
        spread = 1 - 1 / copies + 2 * pairs(given.reshape(-1)).item() / (each * total)
    check_enough(scale * total, 1 - spread, correction, torch.finfo(dtype).eps)
    ratio = total / (total - 1 / scale) if correction == "frequency" else 1 / spread
    ratios = (1.0, ratio) if correction == "none" else (ratio, 1.0)
    return Shares(w / total, smallest / (scale * total), *ratios)


def contiguous(x: Tensor) -> Tensor:
    """x with channels first or last, copied only if it is neither."""
    return x if x.is_contiguous() or x.movedim(1, -1).is_contiguous() else x.contiguous()


def dense(x: Tensor, share: np.ndarray) -> Tensor:
    """A view of x that torch has fast kernels for.

    Its shape is (samples, columns), in which a channel has one column or with few positions as
    many as these; or (samples, channels, positions). Where channels are last, a sample is a row
    of channels.
    """
    if x.dim() == 2:
        return x
    if not x.is_contiguous():
        return x.movedim(1, -1).flatten(0, -2)
    positions = x.numel() // (x.shape[0] * x.shape[1])
    of_samples = share.size == x.shape[0]
    flat = positions == 1 or (positions <= FEW and of_samples)
    return x.view(len(x), -1) if flat else x.flatten(2)


def dense_share(share: np.ndarray, x: Tensor) -> Tensor:
    """Shares of x, as such that broadcast against its dense view."""
    p = torch.from_numpy(share)
    if x.dim() == 2:
        return p
    if x.is_contiguous():
        return p.view(len(x), 1) if p.numel() == len(x) else p.flatten(2)
    return p.expand(-1, -1, *x.shape[2:]).reshape(-1, 1)


def of_columns(values: np.ndarray, length: int) -> Tensor:
    """Values of channels, for each of the columns that a channel has."""
    return torch.from_numpy(values if length == 1 else values.repeat(length))


def of_channels(sums: Tensor, length: int) -> np.ndarray:
    """Sums of columns, added up for each channel."""
    return sums.numpy() if length == 1 else sums.view(-1, length).sum(1).numpy()


def moments_by_torch(
    x: Tensor, p: Tensor, length: int, scratch: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    r"""Weighted mean and variance of each channel, of shape (C,); the variance without correction.

    .. math::
        a = \sum_i p_i x_i, \qquad s = \sum_i p_i (x_i - a), \qquad
        m = a + s, \qquad v = \sum_i p_i (x_i - a)^2 - s^2, \qquad p_i = \frac{w_i}{Z}

    In exact arithmetic s is zero. It is what rounding takes from the first sum, and much where the
    mean is large.

    Parameters
    ----------
    x, p
        A `dense` view in at least single precision, and its shares.
    length
        Columns of a channel.
    scratch
        Memory of the shape and type of x; what it holds is lost.

    Examples
    --------
    >>> import torch
    >>> from wbn.eager import moments_by_torch
    >>> x = torch.tensor([[0.0], [1.0]])
    >>> moments_by_torch(x, torch.tensor([[0.25], [0.75]]), 1, torch.empty_like(x))
    (array([0.75], dtype=float32), array([0.1875], dtype=float32))
    """
    about = of_channels(_first_sum(x, p, scratch), length)
    center = of_columns(about, length)
    centered = torch.sub(x, _along(center, x), out=scratch)
    if x.dim() == 3 and p.dim() == 2:  # positions first, then samples
        shift = centered.sum(2).mul_(p).sum(0)
        squares = centered.mul_(centered).sum(2).mul_(p).sum(0)
    else:  # torch's sums of g and g (x - m), for weighted distances in the place of g
        statistics = center, torch.ones_like(center), None, None, False, 0.0
        asked = [False, True, True]
        _, squares, shift = sums_of_torch(centered.mul_(p), x, None, *statistics, asked)
    first, second = of_channels(shift, length), of_channels(squares, length)
    return about + first, np.maximum(second - first * first, 0)  # rounding may leave less


def _first_sum(x: Tensor, p: Tensor, scratch: Tensor) -> Tensor:
    """The sum whose rounding doesn't matter, and neither does what torch makes of products."""
    if p.dim() == 3:
        return torch.mul(x, p, out=scratch).sum((0, 2))
    return torch.mv((x.sum(2) if x.dim() == 3 else x).mT, p.view(-1))


def _along(values: Tensor, x: Tensor) -> Tensor:
    """Values of columns, or for x of three dimensions of channels, to broadcast against it."""
    return values if x.dim() == 2 else values.unsqueeze(1)


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


class NormalizeEagerly(torch.autograd.Function):
    """The output of a batch, with the gradient of `normalize_backward`.

    It holds what goes through the moments. Where it is differentiated again, autograd is to see
    how they depend on x; a batch of gradients takes the same formulas.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, output):
        y, ctx.made = output
        ctx.save_for_backward(x, weight)
        return y

    @staticmethod
    def backward(ctx, grad):
        again = torch.is_grad_enabled() or is_legacy_batchedtensor(grad)
        compute = _gradients if again else eager_gradients
        grad_x, grad_weight, grad_bias = compute(grad, *ctx.saved_tensors, ctx.made)
        _, of_weight, of_bias, _ = ctx.needs_input_grad
        return grad_x, grad_weight if of_weight else None, grad_bias if of_bias else None, None


def normalize_eagerly(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, share: Shares, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, mean, and variance to store."""
    parameters = _constant(weight, x), _constant(bias, x)
    compute = normalize_small if is_small(x) else normalize_by_torch
    y, made = compute(x.detach(), *parameters, share, float(eps))
    y = NormalizeEagerly.apply(x, weight, bias, (y, made))  # in a tuple: it is no input
    stored = made.var if share.stored == 1 else made.var * share.stored
    return y, torch.from_numpy(made.mean), torch.from_numpy(stored)


def normalize_by_torch(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, share: Shares, eps: float
) -> tuple[Tensor, Made]:
    """What `wbn.small.normalize_small` does, for batches of any size and shape."""
    y, p = torch.empty_like(x), dense_share(share.of, x)
    values, scratch = cast(dense(x, share.of), p.dtype), dense(y, share.of)
    if scratch.dtype != p.dtype:
        scratch = torch.empty_like(values)
    mean, var = moments_by_torch(values, p, values.shape[1] // x.shape[1], scratch)
    if share.corrected != 1:
        var *= share.corrected
    moments = torch.from_numpy(mean), torch.from_numpy(var)
    y = _affine(x, weight, bias, *moments, eps, memory=y)
    return y, Made(share, mean, var, eps)


def _constant(parameter: Tensor | None, x: Tensor) -> Tensor | None:
    """A parameter without its gradient, in the precision for x."""
    return None if parameter is None else cast(parameter.detach(), precision_of(x))


@quietly
def eager_gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias."""
    x = contiguous(x)  # as it was, unless a hook of autograd has saved it in another way
    if grad.stride() != x.stride():
        grad = torch.empty_like(x).copy_(grad)
    compute = gradients_small if is_small(x) else gradients_by_torch
    return compute(grad, x.detach(), _constant(weight, x), made)


def gradients_by_torch(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """What `wbn.small.gradients_small` does, for batches of any size and shape."""
    (share, _, corrected, _), mean, var, eps = made
    values, g, p = dense(x, share), dense(grad, share), dense_share(share, x)
    length = values.shape[1] // x.shape[1]
    of_mean, of_var = (of_columns(each, length) for each in (mean, var))
    statistics = of_mean, of_var, None, None, False, eps  # not those of the batch, to that kernel
    _, *sums = sums_of_torch(g, values, None, *statistics, [False, True, True])
    grad_weight, grad_bias = (of_channels(each, length) for each in sums)
    factor = inverse_std = 1 / np.sqrt(var + eps)
    if weight is not None:
        factor = factor * weight.numpy()
    slopes, offsets = -corrected * factor * inverse_std * grad_weight, -factor * grad_bias
    scale, slope, offset = (of_columns(each, length) for each in (factor, slopes, offsets))
    grad_x, precise = torch.empty_like(x), cast(values, p.dtype)
    out = dense(grad_x, share)
    memory = out if out.dtype == precise.dtype else precise
    centered = torch.sub(precise, _along(of_mean, precise), out=memory)
    through_moments = _weighted_affine(centered, p, slope, offset)
    torch.addcmul(through_moments, cast(g, p.dtype), _along(scale, precise), out=out)
    return grad_x, torch.from_numpy(grad_weight), torch.from_numpy(grad_bias)


def _weighted_affine(x: Tensor, p: Tensor, slope: Tensor, offset: Tensor) -> Tensor:
    """p (slope x + offset), in the memory of x."""
    if x.dim() == 3 and p.dim() == 2:  # to torch's affine map each row of positions is a channel
        rows = x.view(1, x.shape[0] * x.shape[1], -1)
        slope, offset = ((p * each).view(-1) for each in (slope, offset))
        moments = torch.zeros_like(slope), torch.ones_like(slope)
        _affine(rows, slope, offset, *moments, 0.0, memory=rows)
        return x
    return torch.addcmul(_along(offset, x), x, _along(slope, x), out=x).mul_(p)


def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by formulas that autograd can see through."""
    p, corrected = torch.from_numpy(made.share.of), made.share.corrected
    by = Divisors(1.0, math.nan, math.nan, 1 / corrected)
    m = divided(x.to(p.dtype), p, reduced(x), by, refine=True)
    weight = None if weight is None else weight.view_as(m.mean)
    grads = normalize_backward(grad.to(p.dtype), m, p, weight, made.eps, reduced(x))
    return grads[0], grads[1].reshape(-1), grads[2].reshape(-1)
