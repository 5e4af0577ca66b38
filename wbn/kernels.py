r"""The mathematics of `wbn.core` for ordinary tensors on the CPU in eager mode, compiled.

The compiled part is wbn/native, which is built where wbn is installed and a C++ compiler is there;
without it the core's own formulas are used, which cost more passes over memory and more calls. It
reads and writes memory at addresses, so all that it asks of tensors is seen to here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch._C import _len_torch_dispatch_stack
from torch._C._functorch import is_legacy_batchedtensor

from wbn.checks import (
    Correction,
    check_enough,
    check_not_negative,
    checked_weight,
    precision_of,
)
from wbn.core import counted, divided, normalize_backward, plain_eager, reduced
from wbn.divisors import Divisors

try:
    import wbn._native as native
except ImportError:  # there was no compiler
    native = None

BYTES = {torch.float32: 4, torch.float64: 8, torch.bfloat16: 2}  # the types that it knows
PRECISIONS = (torch.float32, torch.float64)


def is_ordinary(x: Tensor) -> bool:
    """Whether x is an ordinary tensor on the CPU, and nobody traces what is done with it."""
    plain = type(x) in (Tensor, nn.Parameter) and x.is_cpu and plain_eager()
    return plain and torch._C._get_tracing_state() is None and not _len_torch_dispatch_stack()


def is_for_kernels(x: Tensor) -> bool:
    """Whether the compiled code is there, and for x."""
    return native is not None and x.dtype in BYTES and is_ordinary(x)


class Shares(NamedTuple):
    r"""Weights as they enter sums: :math:`w_i / Z`, and numbers that belong to them."""

    of: Tensor  # a vector, one for each sample or for each of its positions
    corrected: float  # Z / D, from the variance of "none" to the one normalized with
    stored: float  # from there to the variance for inference


class Made(NamedTuple):
    """What an output was made with."""

    share: Shares
    mean: Tensor
    var: Tensor
    eps: float


def shares(x: Tensor, sample_weight: Tensor, correction: Correction) -> Shares:
    """Read the weights of a batch, and refuse them if they must be.

    Examples
    --------
    >>> import torch
    >>> from wbn.kernels import shares
    >>> shares(torch.zeros(2, 1), torch.tensor([1.0, 3.0]), "frequency")
    Shares(of=tensor([0.2500, 0.7500]), corrected=1.3333333333333333, stored=1.0)
    """
    w, dtype = in_memory(checked_weight(x, sample_weight)), precision_of(x)
    count = w.numel()
    copies = x.numel() // (x.shape[1] * count)
    share = torch.empty(count, dtype=dtype)
    sizes = w.element_size(), share.element_size()
    smallest, total, spread = native.shares(*sizes, w.data_ptr(), share.data_ptr(), count, copies)
    check_not_negative(smallest, total)
    check_enough(total, 1 - spread, correction, torch.finfo(dtype).eps)
    ratio = total / (total - 1) if correction == "frequency" else 1 / spread
    return Shares(share, *((1.0, ratio) if correction == "none" else (ratio, 1.0)))


def in_memory(x: Tensor) -> Tensor:
    """x as its values, one after the other."""
    return x if x.is_contiguous() and not x.is_neg() else x.contiguous().resolve_neg()


def are_in_memory(*tensors: Tensor) -> bool:
    """Whether they are vectors in one precision that the compiled code can read and write."""
    first = tensors[0]
    return (
        native is not None
        and first.dtype in PRECISIONS
        and is_ordinary(first)
        and all(t.dtype == first.dtype and t.is_contiguous() and not t.is_neg() for t in tensors)
    )


def update_in_memory(
    running_mean: Tensor, running_var: Tensor, mean: Tensor, var: Tensor, momentum: float
) -> bool:
    """Update statistics that `are_in_memory`, if they stay finite and not negative: did they?"""
    return native.update(
        *_running(running_mean, running_var), mean.data_ptr(), var.data_ptr(), momentum
    )


def copy_in_memory(running_mean: Tensor, running_var: Tensor) -> bytes:
    """What the statistics are, for `keep_or_restore`."""
    return native.copy(*_running(running_mean, running_var))


def keep_or_restore(running_mean: Tensor, running_var: Tensor, before: bytes) -> bool:
    """Put statistics that are not finite, or negative, back to what they were: were they fine?"""
    return native.keep_or_restore(*_running(running_mean, running_var), before)


def _running(mean: Tensor, var: Tensor) -> tuple[int, ...]:
    return mean.element_size(), mean.data_ptr(), var.data_ptr(), mean.numel()


def laid_out(x: Tensor) -> Tensor:
    """x with channels first or last, copied only if it is neither."""
    if not x.is_neg() and (x.is_contiguous() or x.movedim(1, -1).is_contiguous()):
        return x
    return x.contiguous().resolve_neg()


def geometry(x: Tensor, share: Tensor) -> tuple[int, ...]:
    """Samples, channels, positions, rows that have one share, and if each position has its own.

    Where channels are last, a sample is a row of channels.
    """
    samples, channels = x.shape[:2]
    positions = x.numel() // (samples * channels)
    of_samples = share.numel() == samples
    if positions == 1 or x.is_contiguous():
        return samples, channels, positions, 1, 0 if of_samples else 1
    return samples * positions, channels, 1, positions if of_samples else 1, 0


def address(x: Tensor | None) -> int:
    """Where the values of x are, 0 for None."""
    return 0 if x is None else x.data_ptr()


def _constant(parameter: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A parameter as its values, in a precision."""
    if parameter is None or (parameter.dtype == dtype and parameter.is_contiguous()):
        return parameter
    return in_memory(parameter.detach().to(dtype))


class NormalizeByKernels(torch.autograd.Function):
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
        compute = _gradients if again else gradients
        grad_x, grad_weight, grad_bias = compute(grad, *ctx.saved_tensors, ctx.made)
        _, of_weight, of_bias, _ = ctx.needs_input_grad
        return grad_x, grad_weight if of_weight else None, grad_bias if of_bias else None, None


def normalize_by_kernels(
    x: Tensor,
    sample_weight: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    correction: Correction,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, mean, and variance to store."""
    share = shares(x, sample_weight, correction)
    x, dtype, eps = laid_out(x), share.of.dtype, float(eps)
    y, channels = torch.empty_like(x), x.shape[1]
    mean, var, stored = (torch.empty(channels, dtype=dtype) for _ in range(3))
    parameters = _constant(weight, dtype), _constant(bias, dtype)
    tensors = x, None, y, share.of, *parameters, mean, var, stored, None, None
    native.batch_norm(
        BYTES[x.dtype], *map(address, tensors), *geometry(x, share.of), eps, *share[1:]
    )
    made = Made(share, mean, var, eps)
    y = NormalizeByKernels.apply(x, weight, bias, (y, made))  # in a tuple: it is no input
    return y, mean, stored


def gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias."""
    (share, corrected, _), mean, var, eps = made
    x = laid_out(x)  # as it was, unless a hook of autograd has saved it in another way
    if grad.stride() != x.stride() or grad.is_neg():
        grad = torch.empty_like(x).copy_(grad)
    grad_x, weight = torch.empty_like(x), _constant(weight, share.dtype)
    grad_weight, grad_bias = torch.empty_like(mean), torch.empty_like(mean)
    tensors = x, grad, grad_x, share, weight, None, mean, var, None, grad_weight, grad_bias
    native.batch_norm(
        BYTES[x.dtype], *map(address, tensors), *geometry(x, share), eps, corrected, 1.0
    )
    return grad_x, grad_weight, grad_bias


def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by formulas that autograd can see through."""
    (share, corrected, _), _, _, eps = made
    positions = x.shape[2:] if share.numel() > len(x) else (1 for _ in x.shape[2:])
    p, by = share.view(len(x), 1, *positions), Divisors(1.0, math.nan, math.nan, 1 / corrected)
    m = divided(counted(x.to(p.dtype), p), p, reduced(x), by, refine=True)
    weight = None if weight is None else weight.view_as(m.mean)
    grads = normalize_backward(grad.to(p.dtype), m, p, weight, eps, reduced(x))
    return grads[0], grads[1].reshape(-1), grads[2].reshape(-1)
