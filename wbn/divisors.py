"""Sums over weights: what weighted sums over data are divided by (below Eq. 12)."""

import math
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

Value = TypeVar("Value", Tensor, float)


class Divisors(NamedTuple):
    r"""What sums over the weights give to divide by; sizes are 1 in the reduced dimensions."""

    total: Any  # Z; this and the following are tensors, or numbers
    concentration: Any  # sum(w^2) / Z^2, the inverse of the effective sample size
    unbiased: Any  # Z - sum(w^2) / Z
    denominator: Any  # D, of the variance


def divisors(x: Tensor, w: Tensor | None, dims: tuple[int, ...], correction: str) -> Divisors:
    r"""Sums over the weights by their definitions, for x, w and dims as in `moments`."""
    count = math.prod([x.shape[d] for d in dims])
    if w is None:
        total = x.new_full((), count)
        concentration = 1 / total
    else:
        total = w.sum(dims, keepdim=True)
        # Where w has size 1 in a reduced dimension, its sum misses this many equal summands.
        copies = count * total.numel() // w.numel()
        total = total * copies
        concentration = (w / total).square().sum(dims, keepdim=True) * copies
    unbiased = denominator(total, concentration, "reliability")
    return Divisors(total, concentration, unbiased, denominator(total, concentration, correction))


def pair_divisors(w: Tensor, copies: int, scale: Tensor, correction: str) -> Divisors:
    r"""Sums over all weights, accurate also where one of them has almost all the weight.

    .. math::
        Z - \frac{1}{Z} \sum_i w_i^2 = \frac{2}{Z} \sum_{i < j} w_i w_j

    has no difference on its right side.

    Parameters
    ----------
    w, scale
        Weights of any shape, and what they were divided by. On their scale, the "1" of the
        frequency correction is one over it.
    copies
        How many positions share each of the weights.
    correction
        "frequency", "reliability" or "none".

    Examples
    --------
    >>> import torch
    >>> from wbn.divisors import pair_divisors
    >>> d = pair_divisors(torch.tensor([1.0, 1e-6]), 1, torch.tensor(2.0), "frequency")
    >>> d.unbiased, d.denominator
    (tensor(2.0000e-06), tensor(0.5000))
    """
    w = w.flatten()
    each = w.sum()
    total, unbiased = each * copies, each * (copies - 1) + 2 * pairs(w) / each
    return corrected(total, unbiased, scale, correction)


def pairs(w: Tensor) -> Tensor:
    r"""The sum :math:`\sum_{i < j} w_i w_j` of a vector, without a difference.

    Examples
    --------
    >>> import torch
    >>> from wbn.divisors import pairs
    >>> pairs(torch.tensor([1.0, 2.0, 4.0]))
    tensor(14.)
    """
    if len(w) == 0:
        return w.sum()
    largest, at = w.max(0)
    others = w.where(torch.arange(len(w), device=w.device) != at, 0)
    total = others.sum()
    return largest * total + (total.square() - others.square().sum()) / 2


def corrected(total: Tensor, unbiased: Tensor, scale: Tensor, correction: str) -> Divisors:
    """All divisors from two of them, for weights that were divided by a scale."""
    if correction == "frequency":
        divisor = total - scale.reciprocal().to(total.dtype)
    else:  # a copy, because torch.compile wants the arguments of a Function to be different
        divisor = (unbiased if correction == "reliability" else total).clone()
    return Divisors(total, 1 - unbiased / total, unbiased, divisor)


def scaled(w: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    r"""Weights over a power of two, the largest in [1, 2), so that sums stay in the float range.

    Returned with that power, or with 1 where no weight is positive. No bit changes: what is
    computed from ordinary weights is what it would be without.

    Examples
    --------
    >>> import torch
    >>> from wbn.divisors import scaled
    >>> scaled(torch.tensor([1.0, 2.0, 6.0]), torch.float32)
    (tensor([0.2500, 0.5000, 1.5000]), tensor(4.))
    """
    largest = w.amax() if w.numel() > 0 else w.new_ones(())
    mantissa, _ = torch.frexp(largest)  # in [1/2, 1)
    scale = torch.where(largest > 0, largest / (2 * mantissa), 1)
    return (w / scale).to(dtype), scale


def denominator(total: Value, concentration: Value, correction: str) -> Value:
    r"""Denominator of the variance: :math:`Z - 1`, :math:`Z - \sum_i w_i^2 / Z` or :math:`Z`.

    Examples
    --------
    >>> import torch
    >>> from wbn.divisors import denominator
    >>> w = torch.tensor([1.0, 3.0])
    >>> z, concentration = w.sum(), w.square().sum() / w.sum() ** 2
    >>> [denominator(z, concentration, c).item() for c in ("frequency", "reliability", "none")]
    [3.0, 1.5, 4.0]
    """
    if correction == "frequency":
        return total - 1
    return total - (total * concentration if correction == "reliability" else 0)
