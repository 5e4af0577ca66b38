"""Weighted means of losses and their normalizer: Eqs. 1 and 2 of Yasuda and Ueno (2019)."""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wbn.checks import broadcast_weight, values_checkable
from wbn.context import current_sample_weight
from wbn.distributed import Group, ProcessGroup, mean_over_processes, sharing
from wbn.divisors import scaled
from wbn.weights import IGNORED

Normalizer = float | Literal["batch"]


def weighted_mean(
    losses: Tensor,
    sample_weight: Tensor | None = None,
    normalizer: Normalizer = "batch",
    process_group: ProcessGroup | None = None,
) -> Tensor:
    r"""Mean :math:`\frac{1}{Z_r} \sum_{\mu \in B_r} w_\mu f_\mu` of any losses, Eq. 2.

    What stands for the normalizer of the data set is a choice that the paper leaves open:

    - ``"batch"`` divides by the mini-batch's own :math:`Z_r = \sum_{\mu \in B_r} w_\mu`, as
      Eq. 11 does. The scale of the weights does not matter, but the loss of a sample
      depends on its batch-mates, and in a batch of one the weight cancels.
    - a number is :math:`Z / N`, the mean weight of the data set's samples (1 on the scale
      ``"mean_one"``, K on ``"paper"``), and the loss divides by it times the batch size. It
      is an unbiased estimate of Eq. 2: averaged over the batches of an epoch in proportion
      to their sizes, short ones included, it is Eq. 2.

    Without weights, neither given nor from a surrounding :func:`wbn.sample_weights`, it is
    ``losses.mean()``, Eq. 1, whatever the normalizer.

    Parameters
    ----------
    losses
        Losses :math:`f_\mu` of shape (N,), or (N, \*positions) for outputs, pixels or classes
        of a sample: what torch's functions return with ``reduction="none"``.
    sample_weight
        Constants of shape (N,), when a sample's weight counts for each of its positions, or
        (N, \*positions). Zeros mask, also losses that are not finite.
    normalizer
        ``"batch"`` or a positive number.
    process_group
        Processes that share the batch, as for `WeightedBatchNorm1d`: the divisor is then its
        mean over them, so that the average of their gradients, which
        ``DistributedDataParallel`` takes, is the gradient of the loss of the whole batch, also
        where sizes or weights differ. A process may be without weight.

    Returns
    -------
    Tensor
        A scalar.

    Raises
    ------
    ValueError
        Losses that were reduced already, and weights that don't fit them, that require a
        gradient, that are negative, NaN or infinite, or that are all zero with the normalizer
        ``"batch"``. Values are not checked under ``torch.compile`` and ``torch.func.vmap`` nor
        on devices other than the CPU; a batch without weight then has the loss 0.

    Notes
    -----
    Gradient accumulation: k micro-batches with weights :math:`w^{(1)}, \dots, w^{(k)}` have the
    gradient of the batch that they are parts of, also where their sizes differ, if each counts
    by its share of the weight::

        total = sum(w.sum() for w in weights)
        (weighted_mean(losses, w) * w.sum() / total).backward()  # for each micro-batch

    Batch norm still sees the moments of each micro-batch, not those of the whole.

    Examples
    --------
    >>> import torch
    >>> import torch.nn.functional as F
    >>> from wbn.loss import weighted_mean
    >>> w = torch.tensor([1.0, 3.0])

    The mean squared error, the binary cross entropy of three labels a sample, and the focal loss:

    >>> weighted_mean(F.mse_loss(torch.zeros(2), torch.tensor([2.0, 1.0]), reduction="none"), w)
    tensor(1.7500)
    >>> logits, labels = torch.zeros(2, 3), torch.tensor([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]])
    >>> weighted_mean(F.binary_cross_entropy_with_logits(logits, labels, reduction="none"), w)
    tensor(0.6931)
    >>> f = F.cross_entropy(logits, torch.tensor([0, 2]), reduction="none")
    >>> weighted_mean((1 - (-f).exp()) ** 2 * f, w)
    tensor(0.4883)
    """
    _check_normalizer(normalizer)
    if losses.dim() == 0 or not losses.is_floating_point():
        raise ValueError(
            f"losses are {losses.dtype} of shape {tuple(losses.shape)}; a weighted mean needs one "
            "loss for each sample, in floating point: use reduction='none'"
        )
    group = sharing(process_group)
    weight = _weight_for(losses, tuple(losses.shape), sample_weight, group)
    if weight is None:
        return losses.mean()
    w = broadcast_weight(losses.unsqueeze(1), weight).squeeze(1)
    return _mean(losses, w, torch.ones_like(losses, dtype=torch.bool), normalizer, group)


def weighted_cross_entropy(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    normalizer: Normalizer = "batch",
    label_smoothing: float = 0.0,
    ignore_index: int = IGNORED,
    process_group: ProcessGroup | None = None,
) -> Tensor:
    r"""Loss :math:`\frac{1}{Z_r} \sum_{\mu \in B_r} w_\mu f_\mu`, Eq. 2 on a mini-batch.

    The `weighted_mean` of :math:`f_\mu`, the cross entropy of a sample, or of a position of one;
    see there for the normalizer. Without weights, neither given nor from a surrounding
    :func:`wbn.sample_weights`, it is torch's cross entropy, Eq. 1, whatever the normalizer.

    Parameters
    ----------
    logits
        Shape (N, K) or (N, K, \*positions).
    target
        Class indices of shape (N,) or (N, \*positions), or class probabilities of the shape
        of ``logits``.
    sample_weight
        Constants of shape (N,), when a sample's weight counts for each of its positions, or
        (N, \*positions). Zeros mask, also logits that are not finite.
    normalizer
        ``"batch"`` or a positive number.
    label_smoothing
        In [0, 1]. A sample's weight multiplies its whole smoothed loss, whereas torch's
        ``weight=`` also weights the classes that the smoothing adds.
    ignore_index
        The class index of samples and positions to leave out, with their weights.
    process_group
        As in `weighted_mean`.

    Returns
    -------
    Tensor
        A scalar.

    Raises
    ------
    ValueError
        For weights as in `weighted_mean`.

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
    options: dict[str, Any] = {"label_smoothing": label_smoothing, "ignore_index": ignore_index}
    group = sharing(process_group)
    shape = (*logits.shape[:1], *logits.shape[2:])
    weight = _weight_for(logits, shape, sample_weight, group)
    if weight is None:
        return F.cross_entropy(logits, target, **options)
    if logits.dim() < 2 or not logits.is_floating_point():
        raise ValueError(
            f"logits are {logits.dtype} of shape {tuple(logits.shape)}; a weighted loss needs "
            "floating point of shape (N, K) or (N, K, *positions)"
        )
    w = broadcast_weight(logits, weight)
    # Masked before the loss too: the gradient of a loss of NaN is NaN, also times zero.
    losses = F.cross_entropy(logits.masked_fill(w == 0, 0), target, reduction="none", **options)
    probabilities = target.is_floating_point()
    counted = torch.ones_like(losses, dtype=torch.bool) if probabilities else target != ignore_index
    return _mean(losses, w.squeeze(1), counted, normalizer, group)


class WeightedCrossEntropyLoss(nn.Module):
    r"""Loss :math:`\frac{1}{Z_r} \sum_{\mu \in B_r} w_\mu f_\mu` (Eq. 2) as a module.

    See :func:`weighted_cross_entropy`, which it calls.

    Parameters
    ----------
    normalizer
        ``"batch"`` or a positive number, the mean weight of the data set's samples.
    label_smoothing
        In [0, 1].
    ignore_index
        The class index of samples and positions to leave out.
    process_group
        As in `weighted_mean`.

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
        self,
        normalizer: Normalizer = "batch",
        label_smoothing: float = 0.0,
        ignore_index: int = IGNORED,
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        _check_normalizer(normalizer)
        self.normalizer = normalizer
        self.label_smoothing = label_smoothing
        self.ignore_index = ignore_index
        self.process_group = process_group

    def forward(
        self, logits: Tensor, target: Tensor, sample_weight: Tensor | None = None
    ) -> Tensor:
        """Loss of a mini-batch, with the weights given here or else the context's."""
        options = self.label_smoothing, self.ignore_index, self.process_group
        return weighted_cross_entropy(logits, target, sample_weight, self.normalizer, *options)

    def extra_repr(self) -> str:
        return (
            f"normalizer={self.normalizer!r}, label_smoothing={self.label_smoothing}, "
            f"ignore_index={self.ignore_index}"
        )


def _weight_for(
    x: Tensor, shape: tuple[int, ...], sample_weight: Tensor | None, group: Group | None
) -> Tensor | None:
    """The weights to take; in a group, where others may have some, not None."""
    given = current_sample_weight(shape)
    given = given if sample_weight is None else sample_weight
    return x.new_ones(shape[:1]) if given is None and group is not None else given


def _mean(
    losses: Tensor, w: Tensor, counted: Tensor, normalizer: Normalizer, group: Group | None
) -> Tensor:
    """Mean of the losses that count, with weights that broadcast against them."""
    given = w * counted
    if values_checkable(given):
        _check_values(given, normalizer if group is None else 1.0)
    w, scale = scaled(given, torch.promote_types(losses.dtype, torch.float32))
    if normalizer == "batch":
        total_weight = w.sum()
    else:
        total_weight = (normalizer / scale).to(w.dtype) * counted.sum(dtype=w.dtype)
    if group is not None:
        total_weight = (mean_over_processes(total_weight * scale, group) / scale).to(w.dtype)
    positive = total_weight.clamp_min(torch.finfo(w.dtype).tiny)
    return ((w * losses.masked_fill(w == 0, 0)).sum() / positive).to(losses.dtype)


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
