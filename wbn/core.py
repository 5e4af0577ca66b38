"""The mathematics: weighted moments, normalization and its gradient (Eqs. 7, 11 and 12).

The functions reduce over explicit dimensions, take weights that broadcast against the input,
and check nothing. The layers call them on (N, C, *), the experiments on (S, N, C) with a
leading dimension of replicas.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active
from torch.compiler import is_compiling

from wbn.divisors import Divisors, divisors


class Moments(NamedTuple):
    r"""What `moments` returns; all but ``centered`` have size 1 in the reduced dimensions."""

    mean: Tensor
    var: Tensor
    centered: Tensor  # x - mean
    total: Tensor  # as in `Divisors`, this and the following
    concentration: Tensor
    unbiased: Tensor
    denominator: Tensor


def moments(x: Tensor, w: Tensor | None, dims: tuple[int, ...], correction: str) -> Moments:
    r"""Weighted mean and variance over ``dims`` (Eqs. 11 and 12).

    .. math::
        m = \frac{1}{Z} \sum_i w_i x_i, \qquad v = \frac{1}{D} \sum_i w_i (x_i - m)^2,
        \qquad Z = \sum_i w_i

    with :math:`D = Z - 1` ("frequency"), :math:`Z - \sum_i w_i^2 / Z` ("reliability") or
    :math:`Z` ("none"). Sums run over all positions, also those that w broadcasts over.
    Nothing is checked. All steps are differentiable.

    Parameters
    ----------
    x
        Single or double precision, any shape.
    w
        Weights that broadcast against x with the same number of dimensions, of size 1 where
        x is not reduced or where leading dimensions are shared; None for all 1.
    dims
        The dimensions to reduce.
    correction
        "frequency", "reliability" or "none".

    Examples
    --------
    >>> import torch
    >>> from wbn.core import moments
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> m = moments(x, torch.tensor([[1.0], [3.0]]), (0,), "none")
    >>> m.mean, m.var, m.total
    (tensor([[0.7500, 1.5000]]), tensor([[0.1875, 0.7500]]), tensor([[4.]]))
    """
    return divided(x, w, dims, divisors(x, w, dims, correction))


def divided(
    x: Tensor, w: Tensor | None, dims: tuple[int, ...], by: Divisors, refine: bool = False
) -> Moments:
    r"""The sums of `moments`, divided by what is given.

    With ``refine`` the mean is corrected by the one of the centered values,

    .. math::
        s = \frac{1}{Z} \sum_i w_i (x_i - m), \qquad
        v = \frac{1}{D} \Bigl( \sum_i w_i (x_i - m)^2 - Z s^2 \Bigr), \qquad
        m \leftarrow m + s

    which leaves no more of the first sum's rounding than the last digit, however large the
    mean is, and takes both sums at once. The experiments, whose stored results hold to the bit,
    do without.
    """
    mean = weighted_sum(x, w, dims) / by.total
    centered = x - mean
    shift = weighted_sum(centered, w, dims) / by.total if refine else None
    squares = weighted_sum(centered.square(), w, dims, scratch=True)
    if shift is not None:
        mean, centered = mean + shift, centered - shift
        squares = (squares - by.total * shift.square()).relu()  # rounding may leave less than 0
    var = squares / by.denominator
    return Moments(mean, var, centered, *by)


class Sums(NamedTuple):
    r"""What is kept of a weighted batch to `merge` it with others; the fields broadcast."""

    total: Tensor  # Z
    mean: Tensor  # m
    scatter: Tensor  # sum(w (x - m)^2)
    pairs: Tensor  # sum of w_i w_j over i != j, which is Z^2 - sum(w^2)


def merge(a: Sums, b: Sums) -> Sums:
    r"""Two weighted batches taken as one (Chan, Golub and LeVeque 1983).

    .. math::
        Z = Z_a + Z_b, \qquad m = m_a + \frac{Z_b}{Z} (m_b - m_a), \qquad
        S = S_a + S_b + \frac{Z_a Z_b}{Z} (m_b - m_a)^2

    with :math:`S` the scatter; of pairs there are :math:`2 Z_a Z_b` more. It needs no second
    pass over the data, and loses no digits where means are large. A batch without weight, which
    has no mean, changes nothing.

    Examples
    --------
    >>> import torch
    >>> from wbn.core import Sums, merge
    >>> a = Sums(*torch.tensor([2.0, 0.50, 0.50, 2.0]))  # 0 and 1
    >>> b = Sums(*torch.tensor([4.0, 2.75, 0.75, 6.0]))  # 2 and, three times, 3
    >>> [s.item() for s in merge(a, b)]
    [6.0, 2.0, 8.0, 24.0]
    """
    total, shift = a.total + b.total, b.mean - a.mean
    merged = Sums(
        total,
        a.mean + shift * b.total / total,
        a.scatter + b.scatter + shift.square() * a.total * b.total / total,
        a.pairs + b.pairs + 2 * a.total * b.total,
    )
    return Sums(*(
        torch.where(b.total == 0, of_a, torch.where(a.total == 0, of_b, both))
        for of_a, of_b, both in zip(a, b, merged, strict=True)
    ))  # fmt: skip


def weighted_sum(
    values: Tensor, w: Tensor | None, dims: tuple[int, ...], scratch: bool = False
) -> Tensor:
    """Sum of w times values, which may be overwritten where they are but scratch."""
    if w is not None:
        shared = [d for d in dims if w.shape[d] == 1 < values.shape[d]]
        if shared:
            values = w * values.sum(shared, keepdim=True)
        else:
            values = values.mul_(w) if scratch else w * values
    return values.sum(dims, keepdim=True)


def counted(x: Tensor, w: Tensor) -> Tensor:
    """x with zeros for what has no weight and would not vanish in a product with zero."""
    return x.where(counts(x, w), 0)


def counts(x: Tensor, w: Tensor) -> Tensor:
    """Whether a value of x is taken as it is, and not as a zero."""
    return (w != 0) | (x.abs() < largest_counted(w.dtype))


def largest_counted(dtype: torch.dtype) -> float:
    """Sums of squares of values below it are finite, for as many as there may be."""
    return torch.finfo(dtype).max ** 0.25


def normalize(
    centered: Tensor, var: Tensor, weight: Tensor | None, bias: Tensor | None, eps: float
) -> Tensor:
    r"""Normalized values :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b` (Eq. 7).

    Parameters
    ----------
    centered
        :math:`x - m`.
    var, weight, bias
        :math:`v`, :math:`\gamma` (None for 1) and :math:`b` (None for 0), which broadcast
        against ``centered``.
    eps
        :math:`\varepsilon`.

    Examples
    --------
    >>> import torch
    >>> from wbn.core import normalize
    >>> normalize(torch.tensor([-2.0, 2.0]), torch.tensor(4.0), None, torch.tensor(3.0), 0.0)
    tensor([2., 4.])
    """
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight
    return centered * scale if bias is None else torch.addcmul(bias, centered, scale)


def normalize_backward(
    grad: Tensor,
    m: Moments,
    w: Tensor | None,
    weight: Tensor | None,
    eps: float,
    dims: tuple[int, ...],
    across: Callable[[Tensor, Tensor], tuple[Tensor, ...]] | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Gradients for x, :math:`\gamma` and :math:`b` of `normalize` after `moments`.

    .. math::
        \frac{\partial L}{\partial x_i} = \frac{\gamma}{\sqrt{v + \varepsilon}} \Bigl(
        g_i - \frac{w_i}{Z} \sum_j g_j - \frac{w_i}{D} \hat x_i \sum_j g_j \hat x_j \Bigr)

    with :math:`g` the gradient of the output and :math:`\hat x` the normalized input; the
    other two are :math:`\sum_j g_j \hat x_j` and :math:`\sum_j g_j`. The paper omits these
    "owing to space limitations".

    Parameters
    ----------
    grad
        :math:`g`, of the shape of x.
    m
        The moments of the forward pass.
    w, weight, eps, dims
        As in the forward pass.
    across
        Where x is a part of what the moments are of: from its two sums to those of the whole.

    Returns
    -------
    tuple of Tensor
        Gradients for x, and for weight and bias with the reduced dimensions kept as size 1.

    Examples
    --------
    >>> import torch
    >>> from wbn.core import moments, normalize_backward
    >>> x, g = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[1.0], [0.0], [0.0]])
    >>> m = moments(x, None, (0,), "none")
    >>> normalize_backward(g, m, None, None, 0.0, (0,))[0].flatten()
    tensor([ 0.1763, -0.2204,  0.0441])
    """
    inverse_std = (m.var + eps).rsqrt()
    scale = inverse_std if weight is None else inverse_std * weight
    grad_bias = grad.sum(dims, keepdim=True)
    grad_weight = (grad * m.centered).sum(dims, keepdim=True) * inverse_std
    sums = (grad_bias, grad_weight) if across is None else across(grad_bias, grad_weight)
    slope = -scale * inverse_std * sums[1] / m.denominator
    grad_x = (m.centered * slope).sub_(scale * sums[0] / m.total)
    if w is not None:
        grad_x.mul_(w)
    add_product = Tensor.addcmul_ if plain_eager() else torch.addcmul
    return add_product(grad_x, grad, scale), grad_weight, grad_bias


def reduced(x: Tensor) -> tuple[int, ...]:
    r"""Dimensions of x, of shape (N, C, \*positions), to take moments over: all but C."""
    return (0, *range(2, x.dim()))


def plain_eager() -> bool:
    """Whether neither torch.compile nor a torch.func transform is at work."""
    return not is_compiling() and not _are_functorch_transforms_active()
