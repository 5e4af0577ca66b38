"""Weighted cross entropy and its normalizer: Eqs. 1 and 2 of Yasuda and Ueno (2019)."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wbn.checks import broadcast_weight, values_checkable
from wbn.context import current_sample_weight
from wbn.divisors import scaled

IGNORED = -100  # torch's default ignore_index


def weighted_cross_entropy(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    normalizer: float | Literal["batch"] = "batch",
    label_smoothing: float = 0.0,
) -> Tensor:
    r"""Loss :math:`\frac{1}{Z_r} \sum_{\mu \in B_r} w_\mu f_\mu`, Eq. 2 on a mini-batch.

    :math:`f_\mu` is the cross entropy of a sample, or of a position of one. What stands for
    the normalizer of the data set is a choice that the paper leaves open:

    - ``"batch"`` divides by the mini-batch's own :math:`Z_r = \sum_{\mu \in B_r} w_\mu`, as
      Eq. 11 does. The scale of the weights does not matter, but the loss of a sample
      depends on its batch-mates, and in a batch of one the weight cancels.
    - a number is :math:`Z / N`, the mean weight of the data set's samples (1 on the scale
      ``"mean_one"``, K on ``"paper"``), and the loss divides by it times the batch size. It
      is an unbiased estimate of Eq. 2: averaged over the batches of an epoch in proportion
      to their sizes, short ones included, it is Eq. 2.

    Without weights, neither given nor from a surrounding :func:`wbn.sample_weights`, it is
    torch's cross entropy, Eq. 1, whatever the normalizer.

    Parameters
    ----------
    logits
        Shape (N, K) or (N, K, \*positions).
    target
        Class indices of shape (N,) or (N, \*positions), or class probabilities of the shape
        of ``logits``. As in torch, positions with the index -100 are left out.
    sample_weight
        Constants of shape (N,), when a sample's weight counts for each of its positions, or
        (N, \*positions). Zeros mask.
    normalizer
        ``"batch"`` or a positive number.
    label_smoothing
        In [0, 1]. A sample's weight multiplies its whole smoothed loss, whereas torch's
        ``weight=`` also weights the classes that the smoothing adds.

    Returns
    -------
    Tensor
        A scalar.

    Raises
    ------
    ValueError
        Weights that don't fit the batch, that require a gradient, that are negative, NaN or
        infinite, or that are all zero with the normalizer ``"batch"``. Values are not
        checked under ``torch.compile`` and ``torch.func.vmap`` nor on devices other than
        the CPU; a batch without weight then has the loss 0.

    Examples
    --------
    >>> import torch
    >>> from wbn.loss import weighted_cross_entropy
    >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
    >>> weighted_cross_entropy(logits, target)
    tensor(0.4100)
    >>> weighted_cross_entropy(logits, target, torch.tensor([1.0, 3.0]))
    tensor(0.5516)
    """
    _check_normalizer(normalizer)
    weight = current_sample_weight() if sample_weight is None else sample_weight
    if weight is None:
        return F.cross_entropy(logits, target, label_smoothing=label_smoothing)
    if logits.dim() < 2 or not logits.is_floating_point():
        raise ValueError(
            f"logits are {logits.dtype} of shape {tuple(logits.shape)}; a weighted loss needs "
            "floating point of shape (N, K) or (N, K, *positions)"
        )
    losses = F.cross_entropy(logits, target, reduction="none", label_smoothing=label_smoothing)
    counted = torch.ones_like(losses) if target.is_floating_point() else target != IGNORED
    given = broadcast_weight(logits, weight).squeeze(1) * counted
    if values_checkable(given):
        _check_values(given, normalizer)
    w, scale = scaled(given, torch.promote_types(losses.dtype, torch.float32))
    if normalizer == "batch":
        total_weight = w.sum()
    else:
        total_weight = (normalizer / scale).to(w.dtype) * counted.sum(dtype=w.dtype)
    positive = total_weight.clamp_min(torch.finfo(w.dtype).tiny)
    return ((w * losses).sum() / positive).to(losses.dtype)


class WeightedCrossEntropyLoss(nn.Module):
    r"""Loss :math:`\frac{1}{Z_r} \sum_{\mu \in B_r} w_\mu f_\mu` (Eq. 2) as a module.

    See :func:`weighted_cross_entropy`, which it calls.

    Parameters
    ----------
    normalizer
        ``"batch"`` or a positive number, the mean weight of the data set's samples.
    label_smoothing
        In [0, 1].

    Examples
    --------
    >>> import torch
    >>> from wbn.context import sample_weights
    >>> from wbn.loss import WeightedCrossEntropyLoss
    >>> criterion = WeightedCrossEntropyLoss(normalizer=2.0)
    >>> logits, target = torch.tensor([[2.0, 0.0], [0.0, 0.0]]), torch.tensor([0, 1])
    >>> with sample_weights(torch.tensor([1.0, 3.0])):
    ...     criterion(logits, target)
    tensor(0.5516)
    """

    def __init__(
        self, normalizer: float | Literal["batch"] = "batch", label_smoothing: float = 0.0
    ) -> None:
        super().__init__()
        _check_normalizer(normalizer)
        self.normalizer = normalizer
        self.label_smoothing = label_smoothing

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Loss of a mini-batch, with the weights given here or else the context's."""
        return weighted_cross_entropy(
            logits, target, sample_weight, self.normalizer, self.label_smoothing
        )

    def extra_repr(self) -> str:
        return f"normalizer={self.normalizer!r}, label_smoothing={self.label_smoothing}"


def _check_normalizer(normalizer: float | str) -> None:
    if normalizer == "batch":
        return
    if isinstance(normalizer, str) or not 1e-37 < normalizer < 1e38:
        raise ValueError(
            "normalizer must be 'batch' or a positive number, the mean weight of the data "
            "set's samples, in the range of single precision (for other weights, see "
            f"wbn.rescale), got {normalizer!r}"
        )


def _check_values(w: Tensor, normalizer: float | str) -> None:
    wrong = w[~(w.isfinite() & (w >= 0))]
    if len(wrong) > 0:
        raise ValueError(
            "sample_weight has negative, NaN or infinite values; weights are finite and not "
            f"negative, got {wrong[0].item():g}"
        )
    if normalizer == "batch" and not w.any():
        raise ValueError(
            "sample_weight is all zero, and the normalizer 'batch' divides by its sum: leave "
            "out batches without weight, or give the mean weight of the data set's samples as "
            "the normalizer"
        )
