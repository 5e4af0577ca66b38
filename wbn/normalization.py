"""A mini-batch normalized with its weighted moments, which are checked first.

What happens to a batch without usable weight: one where weights are negative or not finite, fewer
than two positions have weight, or with the correction "frequency" the weights sum to less than 2.

- In eager mode on the CPU it is refused, before anything is changed.
- Where values can't be read (under torch.compile, torch.vmap and fake tensors; on other devices,
  which would have to be waited for) it gives the output b, no gradient, and leaves the running
  statistics alone.
- Where processes share a batch, this is about the whole; a part may be without weight, or empty.

An empty batch passes as in torch. Running statistics take no batch that would leave them infinite,
NaN or a negative variance. Values under a weight of zero have no part in the moments; those that
are not finite, or too large to be squared, are taken for zeros, without a gradient.
"""

from __future__ import annotations

import inspect
import math
from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd import forward_ad

import wbn.kernels as kernels
from wbn.checks import (
    Correction,
    are_usable,
    broadcast_weight,
    check_alone,
    check_correction,
    check_count,
    check_weights,
    checked_weight,
    precision_of,
    values_checkable,
)
from wbn.core import (
    Moments,
    counted,
    divided,
    largest_counted,
    normalize,
    normalize_backward,
    reduced,
)
from wbn.distributed import Group, gather_moments, sum_over_processes
from wbn.divisors import Divisors, corrected, divisors, pair_divisors, scaled
from wbn.kernels import Shares, is_for_kernels, normalize_by_kernels, read_shares


class _Normalize(torch.autograd.Function):
    """`normalize` after `moments`, with `normalize_backward` as its gradient.

    Where the gradient is to be differentiated again, the backward pass computes the moments
    anew, so that autograd sees how they depend on x; otherwise it uses the saved ones.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x, weight, bias, w, eps, group, mean, var, centered, *sums):
        weight, bias = _per_channel(weight, mean), _per_channel(bias, mean)
        return normalize(centered, var, weight, bias, eps).to(x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _, w, ctx.eps, ctx.group, mean, var, _, *ctx.by = inputs
        sums = (each if isinstance(each, Tensor) else None for each in ctx.by)
        ctx.save_for_backward(x, weight, w, mean, var, *sums)
        ctx.by = [None if isinstance(each, Tensor) else each for each in ctx.by]

    @staticmethod
    def backward(ctx, grad):
        x, weight, w, mean, var, *sums = ctx.saved_tensors
        sums = [b if a is None else a for a, b in zip(sums, ctx.by, strict=True)]
        across = None if ctx.group is None else partial(sum_over_processes, ctx.group)
        if torch.is_grad_enabled():
            check_alone(ctx.group, "second derivatives")
            m = divided(x.to(mean.dtype), w, reduced(x), Divisors(*sums), refine=True)
        else:
            m = Moments(mean, var, x - mean, *sums)
        weight = _per_channel(weight, mean)
        grad_x, *others = normalize_backward(
            grad.to(mean.dtype), m, w, weight, ctx.eps, reduced(x), across
        )
        parameters = zip(others, ctx.needs_input_grad[1:3], strict=True)
        # No gradient for w, eps, the group and the seven moments: the one of x, in closed form,
        # already holds what goes through the moments.
        return (
            grad_x,
            *(g.reshape(-1) if needed else None for g, needed in parameters),
            *(None,) * 10,
        )


# With a `setup_context`, torch asks for the signature at each call, and is slow to find it.
_Normalize.forward.__signature__ = inspect.signature(_Normalize.forward)  # type: ignore


def _per_channel(parameter: Tensor | None, like: Tensor) -> Tensor | None:
    return None if parameter is None else parameter.view(like.shape)


def normalize_batch(
    x: Tensor,
    sample_weight: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    correction: Correction,
    group: Group | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, and what to store.

    The output comes with the mean and the variance for the running statistics. With a group, x
    is this process's part of the batch that the moments are of.
    """
    forward_mode = forward_ad._current_level >= 0
    plain = not forward_mode and not torch._C._are_functorch_transforms_active()
    if not plain:
        check_alone(group, "forward-mode gradients and torch.func")
    if group is None:
        if x.numel() == 0:
            return _normalize_nothing(x, sample_weight, weight, bias, eps)
        check_count(x)
        check_correction(correction)
        if torch.compiler.is_compiling():
            if sample_weight is not None:
                checked_weight(x, sample_weight)
            if plain:
                return _OPERATOR(x, sample_weight, weight, bias, eps, correction)
        elif not forward_mode and is_for_kernels(x, sample_weight, weight, bias):
            share = read_shares(x, sample_weight, correction)
            if kernels.native is not None:
                return normalize_by_kernels(x, weight, bias, share, eps)
            return _normalized(x, _of_shares(x, share), weight, bias, eps, correction)
    weights = _weights(x, sample_weight, correction, group)
    return _normalized(x, weights, weight, bias, eps, correction, group, forward_mode)


def _normalize_unread(x: Tensor, sample_weight: Tensor | None, *options: Any) -> tuple[Tensor, ...]:
    """`normalize_batch` without a look at the values of weights."""
    *_, correction = options
    return _normalized(x, _weights(x, sample_weight, correction, None, read=False), *options)


# As an operator that is made of others it is one step to torch.compile, which else would look at
# each Python function that it calls, and before each run again at whether these have changed.
_LIBRARY = None  # a module that is loaded again gives back what it registered
_LIBRARY = torch.library.Library("wbn", "DEF")
_LIBRARY.define(
    "normalize_batch(Tensor x, Tensor? sample_weight, Tensor? weight, Tensor? bias, float eps, "
    "str correction) -> (Tensor, Tensor, Tensor)"
)
_LIBRARY.impl("normalize_batch", _normalize_unread, "CompositeImplicitAutograd")
_OPERATOR = torch.ops.wbn.normalize_batch.default


def _normalized(
    x: Tensor,
    weights: _Weights | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    correction: Correction,
    group: Group | None = None,
    forward_mode: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """`normalize_batch` by torch's operators, with weights that were read or can't be."""
    if weights is not None:
        weights = weights if weights.usable is True else _shares(weights, correction)
        x = _without_masked(x, weights)
    with nullcontext() if forward_mode else torch.no_grad():
        m, stored, w, _, usable = _moments(x, weights, correction, group)
    if usable is not True:
        weight = (torch.ones_like(m.mean).flatten() if weight is None else weight).where(usable, 0)
        bias = None if bias is None else bias.where(usable, bias.detach())
    if forward_mode:  # which all steps of `divided` and `normalize` have
        parameters = _per_channel(weight, m.mean), _per_channel(bias, m.mean)
        y = normalize(m.centered, m.var, *parameters, eps).to(x.dtype)
    else:
        y = _Normalize.apply(x, weight, bias, w, eps, group, *m)
    return y, m.mean.detach().flatten(), stored.detach().flatten()


def _normalize_nothing(
    x: Tensor, sample_weight: Tensor | None, *parameters: Any
) -> tuple[Tensor, Tensor, Tensor]:
    """An empty batch: no output, gradients of zero, and nothing to store."""
    if sample_weight is not None:
        broadcast_weight(x, sample_weight)
    weight, bias, eps = parameters
    nothing = x.new_full(x.shape[1:2], torch.nan)
    return F.batch_norm(x, nothing, nothing, weight, bias, eps=eps), nothing, nothing


class Checked(NamedTuple):
    """What `checked_moments` returns."""

    moments: Moments  # in at least single precision, on the scale of w
    stored: Tensor  # the variance for inference; NaN where the weights are not usable
    w: Tensor | None  # weights that broadcast against x, `scaled`
    scale: Tensor | float  # what they were divided by
    usable: Tensor | Literal[True]  # a truth value where the weights can't be read


def checked_moments(
    x: Tensor, sample_weight: Tensor | None, correction: Correction, group: Group | None = None
) -> Checked:
    """Moments of a batch that is not to be refused; with a group, x is a part of it."""
    if group is None:
        check_count(x)
    weights = _weights(x, sample_weight, correction, group)
    if weights is not None:
        x = _without_masked(x, weights)
    return _moments(x, weights, correction, group)


class _Weights(NamedTuple):
    w: Tensor  # as in `Checked`, this, the scale and usable
    scale: Tensor | None  # this and the next where processes share a batch
    smallest: Tensor | None  # of the weights as they were given
    by: Divisors
    usable: Any  # a truth value where the weights can't be read, or True


def _weights(
    x: Tensor,
    sample_weight: Tensor | None,
    correction: Correction,
    group: Group | None,
    read: bool = True,
) -> _Weights | None:
    """The weights of a batch, refused if they must be; those of a group only after its merge."""
    check_correction(correction)
    if sample_weight is None:
        if group is None:
            return None
        sample_weight = x.new_ones(len(x))
    given = broadcast_weight(x, sample_weight)
    w, scale = scaled(given, precision_of(x))
    smallest = given.amin() if given.numel() > 0 else given.new_zeros(())
    copies = math.prod([n for n, own in zip(x.shape[2:], w.shape[2:], strict=True) if own == 1])
    if group is not None:
        return _Weights(w, scale, smallest, pair_divisors(w, copies, scale, "none"), True)
    by = pair_divisors(w, copies, scale, correction)
    usable = (check_weights if read else are_usable)(smallest, scale, by, correction)
    by = Divisors(*(_if(usable, d, 1) for d in by))
    return _Weights(_if(usable, w, 0), scale, smallest, by, usable)


def _shares(weights: _Weights, correction: Correction) -> _Weights:
    r"""Weights :math:`w_i / Z`, zero where they are not usable.

    Written as an exponential, that factor makes torch.compile store them on the CPU; it computes
    whatever is cheaper anew for each value that is weighted.
    """
    w, scale, smallest, (total, concentration, unbiased, denominator), usable = weights
    one_or_zero = torch.where(usable & (w >= 0), 0.0, -math.inf).to(w.dtype).exp()
    divisor = 1.0 if correction == "none" else denominator / total
    by = Divisors(1.0, concentration, unbiased / total, divisor)
    return _Weights(w / total * one_or_zero, scale * total, smallest, by, usable)


def _of_shares(x: Tensor, share: Shares) -> _Weights:
    """Weights that were read."""
    w = share.of.view(-1) if share.of.numel() == len(x) else share.of.view(len(x), *x.shape[2:])
    unbiased, denominator = 1 / (share.corrected * share.stored), 1 / share.corrected
    by = Divisors(1.0, 1 - unbiased, unbiased, denominator)
    return _Weights(broadcast_weight(x, w), None, None, by, True)


def _without_masked(x: Tensor, weights: _Weights) -> Tensor:
    """`counted`, or where there is nothing to count as zero, x itself."""
    if weights.usable is True and values_checkable(x) and x.numel() > 0:
        limit, extremes = largest_counted(weights.w.dtype), x.detach().aminmax()
        if all(abs(extreme.item()) < limit for extreme in extremes):
            return x
    return counted(x, weights.w)


def _moments(
    x: Tensor, weights: _Weights | None, correction: Correction, group: Group | None
) -> Checked:
    precise, dims = x.to(precision_of(x)), reduced(x)
    if weights is None:
        m = divided(precise, None, dims, divisors(precise, None, dims, correction), refine=True)
        return Checked(m, stored_variance(m, correction), None, 1.0, True)
    w, scale, smallest, by, usable = weights
    m = divided(precise, w, dims, by, refine=True)
    if group is not None:
        sums, scale, smallest, share = gather_moments(m, scale, smallest, group)
        by = corrected(sums.total, sums.pairs / sums.total, scale, correction)
        usable = check_weights(smallest, scale, by, correction)
        by = Divisors(*(_if(usable, d, 1) for d in by))
        mean = _if(usable, sums.mean, 0).view_as(m.mean)
        var = sums.scatter.view_as(mean) / by.denominator
        m, w = Moments(mean, var, precise - mean, *by), w * share
    stored = _if(usable, stored_variance(m, correction), torch.nan)
    m = Moments(m.mean, _if(usable, m.var, 1), m.centered, *by)
    return Checked(m, stored, w, scale, usable)


def _if(usable: Tensor | Literal[True], values: Tensor, otherwise: float) -> Tensor:
    return values if usable is True else values.where(usable, otherwise)


def stored_variance(m: Moments, correction: str) -> Tensor:
    r"""The variance for inference: v, or for "none" the reliability-corrected one.

    .. math::
        v \frac{Z}{Z - \sum_i w_i^2 / Z}

    torch normalizes with the biased variance and stores the unbiased one.
    """
    if correction != "none":
        return m.var
    return m.var * m.total / m.unbiased
