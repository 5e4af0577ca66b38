r"""The mathematics of `wbn.core` for ordinary tensors on the CPU in eager mode, compiled.

The compiled part is wbn/native, which is built where wbn is installed and a C++ compiler is there;
without it the core's own formulas are used, which cost more passes over memory and more calls. It
reads and writes memory at addresses, so all that it asks of tensors is seen to here.
"""

from __future__ import annotations

import math
from importlib import import_module
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch._C import _get_tracing_state, _len_torch_dispatch_stack
from torch._C._functorch import is_legacy_batchedtensor

from wbn.checks import (
    Correction,
    check_enough,
    check_not_negative,
    checked_weight,
    precision_of,
)
from wbn.core import counted, counts, divided, normalize_backward, plain_eager, reduced
from wbn.divisors import Divisors

try:
    native = import_module("wbn._native")
except ImportError:  # there was no compiler
    native = None

BYTES = {torch.float32: 4, torch.float64: 8, torch.bfloat16: 2}  # the types that it knows
PRECISIONS = (torch.float32, torch.float64)
ORDINARY = (Tensor, nn.Parameter)


def is_ordinary(x: Tensor) -> bool:
    """Whether x is an ordinary tensor on the CPU, and nobody traces what is done with it."""
    return plain_eager() and _is_ordinary(x)


def _is_ordinary(x: Tensor) -> bool:
    """`is_ordinary` where `plain_eager` holds."""
    on_cpu = type(x) in ORDINARY and x.is_cpu
    return on_cpu and _get_tracing_state() is None and not _len_torch_dispatch_stack()


def has_address(x: Tensor) -> bool:
    """Whether the values of x are in the CPU's memory, where is_ordinary holds for another."""
    return type(x) in ORDINARY and x.is_cpu and x.data_ptr() != 0


def is_for_kernels(
    x: Tensor, sample_weight: Tensor | None, weight: Tensor | None, bias: Tensor | None
) -> bool:
    """Whether compiled code could read these; where not, the core tells what is wrong."""
    return (
        is_ordinary(x)
        and x.dtype in BYTES
        and x.data_ptr() != 0
        and (sample_weight is None or has_address(sample_weight))
        and _fits(weight, x)
        and _fits(bias, x)
    )


def _fits(parameter: Tensor | None, x: Tensor) -> bool:
    return parameter is None or (has_address(parameter) and parameter.numel() == x.shape[1])


class Shares(NamedTuple):
    r"""Weights as they enter sums: :math:`w_i / Z`, and numbers that belong to them."""

    of: Tensor  # a vector, one for each sample or for each of its positions
    corrected: float  # Z / D, from the variance of "none" to the one normalized with
    stored: float  # from there to the variance for inference


class Made(NamedTuple):
    """What an output was made with."""

    share: Shares
    mean: Tensor
    rest: Tensor  # of the mean, what its precision leaves of it
    var: Tensor
    eps: float


def shares(w: Tensor, copies: int, dtype: torch.dtype, correction: Correction) -> Shares:
    """Read the weights of a batch, and refuse them if they must be.

    Parameters
    ----------
    w
        Of `checked_weight`.
    copies
        How many positions share each of them.
    dtype
        Of the shares: single or double precision.
    correction
        "frequency", "reliability" or "none".

    Examples
    --------
    >>> import torch
    >>> from wbn.kernels import shares
    >>> shares(torch.tensor([1.0, 3.0]), 1, torch.float32, "frequency")
    Shares(of=tensor([0.2500, 0.7500]), corrected=1.3333333333333333, stored=1.0)
    """
    w = in_memory(w)
    share = w.new_empty(w.numel(), dtype=dtype)
    smallest, total, spread = (_read_by_numpy if native is None else _read)(w, share, copies)
    check_not_negative(smallest, total)
    check_enough(total, 1 - spread, correction, torch.finfo(dtype).eps)
    ratio = total / (total - 1) if correction == "frequency" else 1 / spread
    return Shares(share, *((1.0, ratio) if correction == "none" else (ratio, 1.0)))


def _read(w: Tensor, share: Tensor, copies: int) -> tuple[float, float, float]:
    r"""Write shares; the smallest weight, Z and :math:`1 - \sum_i w_i^2 / Z^2`."""
    sizes = w.element_size(), share.element_size()
    return native.shares(*sizes, w.data_ptr(), share.data_ptr(), w.numel(), copies)


def _read_by_numpy(w: Tensor, share: Tensor, copies: int) -> tuple[float, float, float]:
    """What `_read` does, without compiled code."""
    given = w.numpy().reshape(-1).astype(float)
    largest = given.max()
    _, power = math.frexp(largest) if 0 < largest < math.inf else (1, 0)
    with np.errstate(all="ignore"):  # what is not finite is refused
        w_scaled = np.ldexp(given, -power)  # no square of them leaves the range of numbers
        total = w_scaled.sum()
        share.numpy()[:] = w_scaled / (total * copies)
        heaviest = w_scaled.argmax()
        one, w_scaled[heaviest] = w_scaled[heaviest], 0
        others = w_scaled.sum()
        pairs = one * others + (others * others - w_scaled.dot(w_scaled)) / 2  # as `divisors.pairs`
        spread = 1 - 1 / copies + 2 * pairs / (total * total * copies)
        return float(given.min()), float(np.ldexp(total * copies, power)), float(spread)


def in_memory(x: Tensor) -> Tensor:
    """x as its values, one after the other."""
    return x if x.is_contiguous() and not x.is_neg() else x.contiguous().resolve_neg()


def place_of(mean: Tensor, var: Tensor) -> tuple[int, int, int, int] | None:
    """Bytes of a value, two addresses and a length, if compiled code can read and write there.

    To be asked where `plain_eager` holds.
    """
    if native is None or not _is_ordinary(mean) or type(var) not in ORDINARY or not var.is_cpu:
        return None
    dtype, size, addresses = mean.dtype, mean.numel(), (mean.data_ptr(), var.data_ptr())
    if var.dtype != dtype or var.numel() != size or dtype not in PRECISIONS or 0 in addresses:
        return None
    contiguous = mean.is_contiguous() and var.is_contiguous()
    return (BYTES[dtype], *addresses, size) if contiguous else None


def laid_out(x: Tensor) -> Tensor:
    """x with channels first or last, copied only if it is neither."""
    if not x.is_neg() and (x.is_contiguous() or x.movedim(1, -1).is_contiguous()):
        return x
    return x.contiguous().resolve_neg()


def read_shares(x: Tensor, sample_weight: Tensor | None, correction: Correction) -> Shares:
    """Weights of x, all 1 for None."""
    w = x.new_ones(len(x)) if sample_weight is None else sample_weight
    w = checked_weight(x, w)
    copies = x.numel() // (x.shape[1] * w.numel())
    return shares(w, copies, precision_of(x), correction)


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


def _constant(parameter: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """A parameter as its values, in a precision."""
    if parameter is None:
        return None
    return in_memory(parameter if parameter.dtype == dtype else parameter.detach().to(dtype))


class NormalizeByKernels(torch.autograd.Function):
    """The output of a batch, with the gradient of `normalize_backward`.

    It holds what goes through the moments. Where it is differentiated again, autograd is to see
    how they depend on x; a batch of gradients takes the same formulas.
    """

    @staticmethod
    def forward(ctx, x, weight, bias, output):
        y, ctx.made = output
        ctx.save_for_backward(x, weight)
        # torch.compile, which comes here if it gave up on the callers, takes y for an input.
        return y.clone() if torch.compiler.is_compiling() else y

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        compute = gradients if _are_for_kernels(grad, x, weight) else _gradients
        grad_x, grad_weight, grad_bias = compute(grad, x, weight, ctx.made)
        _, of_weight, of_bias, _ = ctx.needs_input_grad
        return grad_x, grad_weight if of_weight else None, grad_bias if of_bias else None, None


def _are_for_kernels(grad: Tensor, x: Tensor, weight: Tensor | None) -> bool:
    """Whether a gradient is, and what was saved, which hooks of autograd may have changed."""
    once = not torch.is_grad_enabled() and is_ordinary(grad) and not is_legacy_batchedtensor(grad)
    as_saved = once and grad.shape == x.shape and grad.dtype == x.dtype and _fits(weight, x)
    return as_saved and grad.data_ptr() != 0 and has_address(x)


def normalize_by_kernels(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, share: Shares, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, mean, and variance to store."""
    x, eps, dtype = laid_out(x), float(eps), share.of.dtype
    y, channels = torch.empty_like(x), x.shape[1]
    mean, rest, var, stored = (x.new_empty(channels, dtype=dtype) for _ in range(4))
    parameters = _constant(weight, dtype), _constant(bias, dtype)
    tensors = x, None, y, share.of, *parameters, mean, rest, var, stored, None, None
    _batch_norm(x, share.of, tensors, eps, *share[1:])
    made = Made(share, mean, rest, var, eps)
    y = NormalizeByKernels.apply(x, weight, bias, (y, made))  # in a tuple: it is no input
    return y, mean, stored


def gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias."""
    (share, corrected, _), mean, rest, var, eps = made
    x = laid_out(x)  # as it was, unless a hook of autograd has saved it in another way
    if grad.stride() != x.stride() or grad.is_neg():
        grad = torch.empty_like(x).copy_(grad)
    grad_x, weight = torch.empty_like(x), _constant(weight, share.dtype)
    of_weight, of_bias = torch.empty_like(mean), torch.empty_like(mean)
    tensors = x, grad, grad_x, share, weight, None, mean, rest, var, None, of_weight, of_bias
    _batch_norm(x, share, tensors, eps, corrected, 1.0)
    return grad_x, of_weight, of_bias


def _batch_norm(
    x: Tensor, share: Tensor, tensors: tuple[Tensor | None, ...], *numbers: float
) -> None:
    addresses = (0 if tensor is None else tensor.data_ptr() for tensor in tensors)
    threads = torch.get_num_threads()
    native.batch_norm(BYTES[x.dtype], *addresses, *geometry(x, share), threads, *numbers)


def _gradients(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients by formulas that autograd can see through."""
    (share, corrected, _), *_, eps = made
    positions = x.shape[2:] if share.numel() > len(x) else (1 for _ in x.shape[2:])
    p, by = share.view(len(x), 1, *positions), Divisors(1.0, math.nan, math.nan, 1 / corrected)
    m = divided(counted(x.to(p.dtype), p), p, reduced(x), by, refine=True)
    weight = None if weight is None else weight.view_as(m.mean)
    grads = normalize_backward(grad.to(p.dtype), m, p, weight, eps, reduced(x))
    return grads[0].where(counts(x, p), 0), grads[1].reshape(-1), grads[2].reshape(-1)
