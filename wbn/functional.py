r"""Weighted batch normalization of inputs of shape (N, C, \*positions), as functions."""

import torch.nn.functional as F
from torch import Tensor

from wbn.checks import Correction, check_channels, check_input
from wbn.core import plain_eager
from wbn.normalization import checked_moments, normalize_batch
from wbn.running import normalize_as_torch, update_running


def weighted_moments(
    x: Tensor, sample_weight: Tensor | None = None, correction: Correction = "none"
) -> tuple[Tensor, Tensor]:
    r"""Weighted mean and variance of each channel (Eqs. 11 and 12).

    .. math::
        m &= \frac{1}{Z} \sum_i w_i x_i, \qquad Z = \sum_i w_i \\
        v &= \frac{1}{D} \sum_i w_i (x_i - m)^2

    with :math:`D = Z` for the correction "none" (what torch normalizes with), :math:`Z - 1`
    for "frequency" (the paper's: weights count copies) and :math:`Z - \sum_i w_i^2 / Z` for
    "reliability" (weights are importances). Only "frequency" depends on the scale of the
    weights. Sums run over samples and positions.

    Parameters
    ----------
    x
        Floating-point input of shape (N, C) or (N, C, \*positions).
    sample_weight
        Weights of shape (N,), where a sample's weight counts for each of its positions, or
        (N, \*positions); constants, not negative. A zero masks the sample or position, even
        where its values are NaN or infinite. None means all 1.
    correction
        "none", "frequency" or "reliability".

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
        them would break the graph or force a synchronization: there, weights that should be
        refused give the mean 0 and the variance 1. Shapes are checked always.

    Notes
    -----
    Weights are brought to a scale near 1, and the mean is taken in two passes: results keep their
    digits for weights at the ends of the float range and for means far from zero.

    Examples
    --------
    >>> import torch
    >>> from wbn.functional import weighted_moments
    >>> x = torch.tensor([[0.0, 0.0], [1.0, 2.0]])
    >>> weighted_moments(x, torch.tensor([1.0, 3.0]), correction="frequency")
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
    correction: Correction = "none",
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
        Statistics for inference, of shape (C,); updated in place in training, unless they
        would not be finite, or the weights should be refused and could not be read. With the
        correction "none" the variance stored is the reliability-corrected one, as torch stores
        the unbiased one; with the others it is the one normalized with.
    weight, bias
        :math:`\gamma` and :math:`b`, of shape (C,).
    training
        Whether to use the statistics of the batch.
    momentum
        Share of the new batch in the running statistics.
    eps
        :math:`\varepsilon`; 1e-8 in the paper, 1e-5 in torch.
    correction
        "none", "frequency" or "reliability", as in `weighted_moments`.

    Returns
    -------
    Tensor
        Of the shape, type and memory format of x. A zero-weight sample gets an output, but
        has no part in any other; for that, NaN, infinite and extremely large values are taken
        for zeros, and have no gradient. Weights that should be refused, and could not be read,
        give the output :math:`b` and no gradients. No samples give no output.

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
    >>> w = torch.tensor([1.0, 3.0])
    >>> weighted_batch_norm(x, w, training=True, eps=0.0, correction="frequency")
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
    if sample_weight is None and correction == "none" and x.numel() > 0 and plain_eager():
        return normalize_as_torch(x, running_mean, running_var, weight, bias, momentum, eps)
    y, mean, var = normalize_batch(x, sample_weight, weight, bias, eps, correction)
    if running_mean is not None:
        update_running(running_mean, running_var, mean, var, momentum)
    return y
