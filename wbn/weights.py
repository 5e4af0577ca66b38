"""Class counts to weights: Eqs. 3, 4 and 13 of Yasuda and Ueno (2019).

Every function takes lists, numpy arrays or tensors and returns a tensor: float64, or float32
on devices that have no float64. The counts are those of the data set, not of a mini-batch.
"""

import math
from collections.abc import Callable
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from wbn.arrays import (
    ArrayLike,
    as_counts,
    as_labels,
    as_matching,
    as_nonnegative,
    as_tensor,
    as_vector,
    check_not_hot,
    check_soft,
    outside,
    precise,
)
from wbn.checks import values_checkable

Scale = Literal["raw", "paper", "mean_one", "classes"]
IGNORED = -100  # torch's default ignore_index


def class_counts(
    labels: ArrayLike, num_classes: int | None = None, ignore_index: int = IGNORED
) -> Tensor:
    r"""Class sizes :math:`N_k = \sum_\mu \delta(k, t_\mu)`, above Eq. 3.

    Parameters
    ----------
    labels
        Class indices 0, ..., K - 1, of any shape: one for each sample or position.
    num_classes
        K. By default the largest label plus one; give it when the last classes may be
        absent from ``labels``.
    ignore_index
        The label of samples and positions that are not counted.

    Returns
    -------
    Tensor
        Counts of shape (K,). A class without a label counts zero.

    Raises
    ------
    ValueError
        For labels that are not class indices, among them one-hot and multi-hot rows.

    Examples
    --------
    >>> from wbn.weights import class_counts
    >>> class_counts([0, 0, 1, 0], num_classes=3)
    tensor([3., 1., 0.], dtype=torch.float64)
    """
    labels = as_labels(labels)
    check_not_hot(labels, num_classes)
    labels = labels[labels != ignore_index]
    if num_classes is None:
        if len(labels) == 0:
            raise ValueError("no labels given: pass num_classes to count an empty set")
        num_classes = max(int(labels.max()) + 1, 1)
    if ((labels < 0) | (labels >= num_classes)).any():
        raise ValueError(outside(labels, num_classes))
    return precise(torch.bincount(labels, minlength=num_classes))


def uniform(counts: ArrayLike) -> Tensor:
    r"""Weights :math:`w_k = 1`, which turn Eq. 2 into Eq. 1.

    Parameters
    ----------
    counts
        Class sizes :math:`N_k`, shape (K,), whole and positive.

    Returns
    -------
    Tensor
        Class weights of shape (K,).

    Examples
    --------
    >>> from wbn.weights import uniform
    >>> uniform([5923, 45])
    tensor([1., 1.], dtype=torch.float64)
    """
    return torch.ones_like(as_counts(counts))


def inverse_frequency(counts: ArrayLike) -> Tensor:
    r"""Weights :math:`w_k = N / N_k`, Eq. 3.

    They are on the scale ``"paper"``: each class has the effective size N (Eq. 4), and the
    data set the total weight K N.

    Parameters
    ----------
    counts
        Class sizes :math:`N_k`, shape (K,), whole and positive.

    Returns
    -------
    Tensor
        Class weights of shape (K,).

    Examples
    --------
    >>> from wbn.weights import inverse_frequency
    >>> inverse_frequency([60, 20])
    tensor([1.3333, 4.0000], dtype=torch.float64)
    """
    counts = as_counts(counts)
    return counts.sum() / counts


def class_balanced(counts: ArrayLike, beta: float) -> Tensor:
    r"""Weights :math:`w_k = (1 - \beta) / (1 - \beta^{N_k})`, Eq. 13, of Cui et al. (2019).

    :math:`\beta = 0` is :func:`uniform`, and :math:`\beta = 1` is the limit
    :math:`1 / N_k`, :func:`inverse_frequency` up to a factor. The weights are on their raw
    scale, small for a beta near one: see :func:`rescale` before using them in a layer with
    the frequency correction. Accurate to about 1e-15 relative for every beta.

    Parameters
    ----------
    counts
        Class sizes :math:`N_k`, shape (K,), whole and positive.
    beta
        A number in [0, 1].

    Returns
    -------
    Tensor
        Class weights of shape (K,).

    Examples
    --------
    >>> from wbn.weights import class_balanced
    >>> class_balanced([1, 2, 3], beta=0.5)
    tensor([1.0000, 0.6667, 0.5714], dtype=torch.float64)
    """
    counts, beta = as_counts(counts), float(beta)
    if not 0 <= beta <= 1:
        raise ValueError(f"beta must lie in [0, 1], got {beta}")
    if beta == 1:
        return 1 / counts
    excess = counts.new_tensor(beta - 1)  # exact for beta >= 1/2
    return excess / torch.expm1(counts * torch.log1p(excess))


class Scheme(NamedTuple):
    """A way from class sizes to class weights, called as ``scheme(counts, beta)``.

    Examples
    --------
    >>> from wbn.weights import SCHEMES
    >>> SCHEMES["inverse_frequency"]([60, 20], beta=None)
    tensor([1.3333, 4.0000], dtype=torch.float64)
    """

    function: Callable[..., Tensor]
    takes_beta: bool = False

    def __call__(self, counts: ArrayLike, beta: float | None) -> Tensor:
        """Class weights of shape (K,); beta is ignored by schemes that take none."""
        return self.function(counts, beta) if self.takes_beta else self.function(counts)


# What protocols and the command line offer: a new scheme is a function above and a line here.
SCHEMES = {
    "uniform": Scheme(uniform),
    "inverse_frequency": Scheme(inverse_frequency),
    "class_balanced": Scheme(class_balanced, takes_beta=True),
}


def rescale(class_weight: ArrayLike, counts: ArrayLike, scale: Scale) -> Tensor:
    r"""Weights :math:`c\,w_k`, with c such that the total is the one that ``scale`` names.

    With :math:`Z = \sum_k N_k w_k` the total weight of the data set:

    .. table:: What each scale makes of the weights.

       ============== ============================ ==========================================
       ``"raw"``      :math:`c = 1`                as they are
       ``"paper"``    :math:`Z = K N`              the scale of Eq. 3
       ``"mean_one"`` :math:`Z = N`                scikit-learn's ``balanced``
       ``"classes"``  :math:`\sum_k w_k = K`       Cui et al. and most class-balanced code
       ============== ============================ ==========================================

    The loss with the normalizer ``"batch"`` does not see the scale, and batch
    normalization sees it only through the frequency correction.

    Parameters
    ----------
    class_weight
        Class weights :math:`w_k`, shape (K,), not all zero.
    counts
        Class sizes :math:`N_k`, shape (K,), whole and positive.
    scale
        One of the names above.

    Returns
    -------
    Tensor
        Class weights of shape (K,).

    Examples
    --------
    >>> from wbn.weights import class_balanced, rescale
    >>> counts = [60, 20]
    >>> rescale(class_balanced(counts, beta=1), counts, "mean_one")
    tensor([0.6667, 2.0000], dtype=torch.float64)
    """
    if scale not in get_args(Scale):
        names = ", ".join(map(repr, get_args(Scale)))
        raise ValueError(f"scale must be one of {names}, got {scale!r}")
    class_weight, counts = as_matching(class_weight, counts)
    classes, n, total_weight = len(counts), counts.sum(), class_weight @ counts
    if total_weight == 0:
        raise ValueError("all class weights are zero: at least one must be positive to rescale")
    if not 1e-300 < total_weight < 1e300:
        raise ValueError(
            f"the class weights give the data set a total of {total_weight:g}, at the end of the "
            "float range: divide them by the largest first"
        )
    factors: dict[str, Tensor | float] = {
        "raw": 1,
        "paper": classes * n / total_weight,
        "mean_one": n / total_weight,
        "classes": classes / class_weight.sum(),
    }
    return class_weight * factors[scale]


def effective_class_sizes(class_weight: ArrayLike, counts: ArrayLike) -> Tensor:
    r"""Sizes :math:`N_k^\mathrm{effective} = w_k N_k` that the weighted loss sees, Eq. 4.

    Parameters
    ----------
    class_weight
        Class weights :math:`w_k`, shape (K,).
    counts
        Class sizes :math:`N_k`, shape (K,), whole and positive.

    Returns
    -------
    Tensor
        Effective sizes of shape (K,).

    Examples
    --------
    >>> from wbn.weights import effective_class_sizes, inverse_frequency
    >>> counts = [60, 20]
    >>> effective_class_sizes(inverse_frequency(counts), counts)
    tensor([80., 80.], dtype=torch.float64)
    """
    class_weight, counts = as_matching(class_weight, counts)
    return class_weight * counts


def effective_sample_size(sample_weight: ArrayLike) -> Tensor:
    r"""Kish's :math:`Z^2 / \sum_\mu w_\mu^2`, with :math:`Z = \sum_\mu w_\mu`.

    How many equally weighted points would estimate a mean as precisely: N for equal
    weights, 1 when one point carries all the weight. The scale of the weights does not
    matter.

    Parameters
    ----------
    sample_weight
        Weights of any shape, not all zero.

    Returns
    -------
    Tensor
        A scalar.

    References
    ----------
    Kish, L. (1965). Survey Sampling. Wiley.

    Examples
    --------
    >>> from wbn.weights import effective_sample_size
    >>> effective_sample_size([1, 1, 2])
    tensor(2.6667, dtype=torch.float64)
    """
    sample_weight = as_nonnegative(sample_weight, "sample_weight")
    if not (sample_weight > 0).any():
        raise ValueError("sample_weight has no positive weight: its effective size is undefined")
    w = sample_weight / sample_weight.max()
    return w.sum() ** 2 / w.square().sum()


def per_sample(class_weight: ArrayLike, labels: ArrayLike, ignore_index: int = IGNORED) -> Tensor:
    r"""Weights :math:`w_\mu = w_{t_\mu}` of labels, :math:`\sum_k t_{\mu k} w_k` of soft ones.

    Parameters
    ----------
    class_weight
        Class weights :math:`w_k`, shape (K,).
    labels
        Class indices 0, ..., K - 1, of any shape: one for each sample or position. Or, as of
        mixup and label smoothing, probabilities :math:`t_{\mu k}` of shape (N, K) or
        (N, K, \*positions), floating point, which sum to 1 over the classes.
    ignore_index
        The label of samples and positions of weight 0, which loss and layers then leave out.

    Returns
    -------
    Tensor
        Weights of the shape of ``labels``, without K for soft ones, on their device.

    Raises
    ------
    ValueError
        For labels that are neither, among them multi-hot ones: where a sample has several
        classes, weight the losses of the classes, ``weighted_mean(losses * class_weight)``.
        Soft labels are checked on the CPU only.

    Examples
    --------
    >>> from wbn.weights import inverse_frequency, per_sample
    >>> per_sample(inverse_frequency([60, 20]), [0, 1, 0, -100])
    tensor([1.3333, 4.0000, 1.3333, 0.0000], dtype=torch.float64)
    >>> per_sample(inverse_frequency([60, 20]), [[0.5, 0.5]])
    tensor([2.6667], dtype=torch.float64)
    """
    labels = as_tensor(labels)
    class_weight = precise(as_vector(class_weight, "class_weight"), labels.device)
    soft = labels.is_floating_point() and labels.dim() > 1
    if soft and labels.shape[1] == len(class_weight):
        if values_checkable(labels):
            check_soft(labels)
        return torch.tensordot(precise(labels), class_weight, dims=([1], [0]))
    labels = as_labels(labels)
    if values_checkable(labels):
        check_not_hot(labels, len(class_weight))
    ignored = labels == ignore_index
    try:
        looked_up = class_weight.index_select(0, labels.masked_fill(ignored, 0).flatten())
    except IndexError:
        raise ValueError(outside(labels[~ignored], len(class_weight))) from None
    return looked_up.reshape(labels.shape).masked_fill(ignored, 0)


def logit_adjustment(counts: ArrayLike, tau: float = 1.0) -> Tensor:
    r"""What logit adjustment adds to the logits, :math:`\tau \log(N_k / N)`.

    Added to the logits in the training loss, and only there, it makes rare classes claim more
    room: ``cross_entropy(logits + logit_adjustment(counts), target)``. Subtracted from the
    logits of a network that was trained without, it does so afterwards. With :math:`\tau = 1`
    the class of the largest logit then has the least balanced error. It takes the place of
    weights in the loss.

    Parameters
    ----------
    counts
        Class sizes :math:`N_k`, shape (K,), whole and positive.
    tau
        A finite number.

    Returns
    -------
    Tensor
        Offsets of shape (K,); for logits of shape (N, K, H, W) use ``offset[:, None, None]``.

    References
    ----------
    A. K. Menon et al., Long-tail learning via logit adjustment, ICLR 2021, arXiv:2007.07314,
    Eqs. 9 (afterwards) and 10 (in the loss).

    Examples
    --------
    >>> from wbn.weights import logit_adjustment
    >>> logit_adjustment([60, 20]).exp()
    tensor([0.7500, 0.2500], dtype=torch.float64)
    """
    counts, tau = as_counts(counts), float(tau)
    if not math.isfinite(tau):
        raise ValueError(f"tau must be finite, got {tau}: 1 is the value of Menon et al.")
    return tau * (counts / counts.sum()).log()
