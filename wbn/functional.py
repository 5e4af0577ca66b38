r"""Weighted batch normalization of inputs of shape (N, C, \*positions), as functions."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from wbn.checks import (
    Correction,
    broadcast_weight,
    check_channels,
    check_correction,
    check_count,
    check_input,
    check_weights,
)
from wbn.core import Moments, divided, normalize, normalize_backward, plain_eager, reduced
from wbn.divisors import Divisors, divisors, pair_divisors, scaled


class _Normalize(torch.autograd.Function):
    """`normalize` after `moments`, with `normalize_backward` as its gradient.

    Where the gradient is to be differentiated again, the backward pass computes the moments
    anew, so that autograd sees how they depend on x; otherwise it uses the saved ones.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x, weight, bias, w, eps, mean, var, centered, *sums):
        weight, bias = _per_channel(weight, mean), _per_channel(bias, mean)
        return normalize(centered, var, weight, bias, eps).to(x.dtype)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, _, w, ctx.eps, mean, var, _, *sums = inputs
        ctx.save_for_backward(x, weight, w, mean, var, *sums)

    @staticmethod
    def backward(ctx, grad):
        x, weight, w, mean, var, *sums = ctx.saved_tensors
        if torch.is_grad_enabled():
            m = divided(x.to(mean.dtype), w, reduced(x), Divisors(*sums), refine=True)
        else:
            m = Moments(mean, var, x - mean, *sums)
        grad_x, *others = normalize_backward(
            grad.to(mean.dtype), m, w, _per_channel(weight, mean), ctx.eps, reduced(x)
        )
        parameters = zip(others, ctx.needs_input_grad[1:3], strict=True)
        # No gradient for w, eps and the seven moments: the one of x, in closed form, already
        # holds what goes through the moments.
        return grad_x, *(g.flatten() if needed else None for g, needed in parameters), *(None,) * 9


class _EagerNormalize(_Normalize):
    """The same for use outside torch.func, without the overhead of supporting it."""

    setup_context = staticmethod(torch.autograd.Function.setup_context)

    @staticmethod
    def forward(ctx, *inputs):
        _Normalize.setup_context(ctx, inputs, None)
        return _Normalize.forward(*inputs)


def _per_channel(parameter: Tensor | None, like: Tensor) -> Tensor | None:
    return None if parameter is None else parameter.view(like.shape)


def normalize_batch(
    x: Tensor,
    sample_weight: Tensor | None,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
    correction: Correction,
) -> tuple[Tensor, Tensor, Tensor]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, and what to store.

    The output comes with the mean and the variance for the running statistics.
    """
    with torch.no_grad():
        m, stored, w, _ = checked_moments(x, sample_weight, correction)
    function = _EagerNormalize if plain_eager() else _Normalize
    y = function.apply(x, weight, bias, w, eps, *m)
    return y, m.mean.flatten(), stored.flatten()


class Checked(NamedTuple):
    """What `checked_moments` returns."""

    moments: Moments  # in at least single precision, on the scale of w
    stored: Tensor  # the variance for inference
    w: Tensor | None  # weights that broadcast against x, `scaled`
    scale: Tensor | float  # what they were divided by


def checked_moments(x: Tensor, sample_weight: Tensor | None, correction: Correction) -> Checked:
    """Moments of a batch that is not to be refused.

    Where the values of the weights can't be read, and should be refused, the variance for
    inference is NaN.
    """
    check_correction(correction)
    check_count(x)
    dims = reduced(x)
    precise = x.to(torch.promote_types(x.dtype, torch.float32))
    if sample_weight is None:
        by = divisors(precise, None, dims, correction)
        m = divided(precise, None, dims, by, refine=True)
        return Checked(m, stored_variance(m, correction), None, 1.0)
    given = broadcast_weight(x, sample_weight)
    w, scale = scaled(given, precise.dtype)
    copies = x.numel() // x.shape[1] // w.numel()
    by = pair_divisors(w, copies, scale, correction)
    usable = check_weights(given.amin(), scale, by, correction)
    m = divided(precise, w, dims, by, refine=True)
    stored = stored_variance(m, correction)
    return Checked(m, stored if usable is True else stored.where(usable, torch.nan), w, scale)


def stored_variance(m: Moments, correction: Correction) -> Tensor:
    r"""The variance for inference: v, or for "none" the reliability-corrected one.

    Torch, likewise, normalizes with the biased variance and stores the unbiased one.
    """
    if correction != "none":
        return m.var
    return m.var * m.total / m.unbiased


@torch.no_grad()
def update_running(
    running_mean: Tensor,
    running_var: Tensor,
    mean: Tensor,
    var: Tensor,
    momentum: float | Tensor | None,
    num_batches_tracked: Tensor | None = None,
) -> None:
    r"""Update :math:`m \leftarrow (1 - \alpha) m + \alpha m_r`, and :math:`v` alike, in place.

    With a momentum :math:`\alpha` of None it is one over the number of batches, which makes
    the cumulative average. A batch whose moments are not finite, or whose variance is negative
    (and its root NaN), changes nothing and is not counted, and finding that out needs no
    synchronization.
    """
    finite = (mean + var.sqrt()).isfinite().all()
    if num_batches_tracked is not None:
        num_batches_tracked.add_(finite)
    if momentum is None:
        momentum = num_batches_tracked.clamp(min=1).to(running_mean.dtype).reciprocal()
    for running, batch in ((running_mean, mean), (running_var, var)):
        running.lerp_(torch.where(finite, batch.to(running.dtype), running), momentum)


def weighted_moments(
    x: Tensor, sample_weight: Tensor | None = None, correction: Correction = "frequency"
) -> tuple[Tensor, Tensor]:
    r"""Weighted mean and variance of each channel (Eqs. 11 and 12).

    .. math::
        m = \frac{1}{Z} \sum_i w_i x_i, \qquad v = \frac{1}{D} \sum_i w_i (x_i - m)^2,
        \qquad Z = \sum_i w_i

    with :math:`D = Z - 1` for the correction "frequency" (the paper's: weights count
    copies), :math:`Z - \sum_i w_i^2 / Z` for "reliability" (weights are importances; their
    scale does not matter) and :math:`Z` for "none". Sums run over samples and positions.

    Parameters
    ----------
    x
        Floating-point input of shape (N, C) or (N, C, \*positions).
    sample_weight
        Weights of shape (N,), where a sample's weight counts for each of its positions, or
        (N, \*positions); constants, not negative. A zero masks the sample or position (its
        values must be finite all the same). None means all 1.
    correction
        "frequency", "reliability" or "none".

    Returns
    -------
    tuple of Tensor
        Mean and variance of shape (C,), differentiable, in at least single precision.

    Raises
    ------
    ValueError
        Shapes that don't fit, integer input, weights that require a gradient, fewer than two
        positions with positive weight, negative or not finite weights, or a total weight
        below 2 with "frequency". The values of weights are checked in eager mode on the CPU,
        not under ``torch.compile`` or ``torch.vmap`` nor on other devices, where reading
        them would break the graph or force a synchronization; shapes always are.

    Notes
    -----
    Weights are brought to a scale near 1, and the mean is taken in two passes: results keep their
    digits for weights at the ends of the float range and for means far from zero.

    Examples
    --------
    >>> import torch
    >>> from wbn.functional import weighted_moments
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> weighted_moments(x, torch.tensor([1.0, 3.0]))
    (tensor([0.7500, 1.5000]), tensor([0.2500, 1.0000]))
    """
    check_input(x)
    m = checked_moments(x, sample_weight, correction).moments
    return m.mean.flatten(), m.var.flatten()


def weighted_batch_norm(
    x: Tensor,
    sample_weight: Tensor | None = None,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
    correction: Correction = "frequency",
) -> Tensor:
    r"""Batch normalization with weighted moments (Eqs. 7, 11 and 12).

    .. math::
        y_i = \gamma \frac{x_i - m}{\sqrt{v + \varepsilon}} + b

    In training, :math:`m` and :math:`v` are the moments of the mini-batch as in
    `weighted_moments`, and the gradient is the closed form of `normalize_backward`.
    Otherwise they are the running statistics, and the weights are ignored.

    Parameters
    ----------
    x
        Floating-point input of shape (N, C) or (N, C, \*positions). Statistics of half
        precision inputs are computed in single precision.
    sample_weight
        Weights as in `weighted_moments`.
    running_mean, running_var
        Statistics for inference, of shape (C,); updated in place in training, unless a
        moment of the batch is not finite, or its weights should be refused and could not be
        read. With the correction "none" the variance stored is
        the reliability-corrected one, as torch stores the unbiased one; with the others it
        is the one normalized with.
    weight, bias
        :math:`\gamma` and :math:`b`, of shape (C,).
    training
        Whether to use the statistics of the batch.
    momentum
        Share of the new batch in the running statistics.
    eps
        :math:`\varepsilon`; 1e-8 in the paper, 1e-5 in torch.
    correction
        "frequency", "reliability" or "none", as in `weighted_moments`.

    Returns
    -------
    Tensor
        Of the shape, type and memory format of x. A zero-weight sample gets an output, but
        has no part in any other.

    Raises
    ------
    ValueError
        As `weighted_moments`, for parameters that don't fit the channels, and for missing
        running statistics; nothing is changed then.

    Examples
    --------
    >>> import torch
    >>> from wbn.functional import weighted_batch_norm
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> weighted_batch_norm(x, torch.tensor([1.0, 3.0]), training=True, eps=0.0)
    tensor([[-1.5000, -1.5000],
            [ 0.5000,  0.5000]])
    """
    check_input(x)
    check_channels(x, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    if (running_mean is None) != (running_var is None):
        raise ValueError("give both running_mean and running_var, or neither")
    if not training:
        if running_mean is None:
            raise ValueError("running_mean and running_var are needed unless training=True")
        return F.batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
    y, mean, var = normalize_batch(x, sample_weight, weight, bias, eps, correction)
    if running_mean is not None:
        update_running(running_mean, running_var, mean, var, momentum)
    return y
