"""Batch normalization with balanced moments from running averages of each class."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from wbn.checks import broadcast_weight, check_alone, check_count, values_checkable
from wbn.core import Sums, merge
from wbn.distributed import sharing
from wbn.layers import WeightedBatchNorm
from wbn.recall import in_backward_pass

MOMENTUM = 0.02  # a memory of about fifty mini-batches, as in the book's experiments


class ClassAverages(NamedTuple):
    r"""What class-averaged layers need to know of the classes.

    Parameters
    ----------
    class_weight
        What a sample of each class weighs, shape (K,), all above zero. A sample's class is known
        by its weight; classes of equal weight are one to the layers.
    counts
        Class sizes :math:`N_k` of the training set. The share of a class in the moments is
        :math:`\pi_k = w_k N_k / \sum_j w_j N_j`: what the weighted loss counts.
    momentum
        How much of the running averages each mini-batch replaces.

    Examples
    --------
    >>> import torch
    >>> from wbn.class_averages import ClassAverages
    >>> levels, shares = ClassAverages(torch.tensor([1.0, 9.0]), torch.tensor([90, 10])).shares()
    >>> levels, shares
    (tensor([1., 9.]), tensor([0.5000, 0.5000]))
    """

    class_weight: Tensor
    counts: Tensor
    momentum: float = MOMENTUM

    def shares(self) -> tuple[Tensor, Tensor]:
        """Distinct weights in increasing order, and the share of each, in single precision."""
        weight, counts = (torch.as_tensor(t, dtype=torch.float64) for t in self[:2])
        if weight.dim() != 1 or weight.shape != counts.shape:
            raise ValueError(
                f"class_weight has shape {tuple(weight.shape)} and counts {tuple(counts.shape)}: "
                "give a weight and a count of each class"
            )
        if not (weight > 0).all() or not (counts > 0).all() or not weight.isfinite().all():
            raise ValueError(
                f"class_weight is {weight.tolist()} and counts are {counts.tolist()}: all must be "
                "above zero and finite"
            )
        if not 0 < self.momentum <= 1:
            raise ValueError(f"momentum is {self.momentum}; it lies above 0 and is at most 1")
        levels, place = weight.float().unique(return_inverse=True)
        mass = torch.zeros(len(levels), dtype=torch.float64)
        mass.index_add_(0, place, weight * counts)
        return levels, (mass / mass.sum()).float()


class ClassAveragedBatchNorm(WeightedBatchNorm):
    """What the layers have in common; use `ClassAveragedBatchNorm1d` and its kin."""

    class_momentum: float
    class_weight: Tensor
    class_share: Tensor
    class_total: Tensor
    class_mean: Tensor
    class_scatter: Tensor
    # Each weight that there is and its share; then of each class total, mean and scatter.
    BUFFERS = ("class_weight", "class_share", "class_total", "class_mean", "class_scatter")

    def __init__(
        self, num_features: int, classes: ClassAverages, *args: Any, **options: Any
    ) -> None:
        super().__init__(num_features, *args, **options)
        self.prepare(classes)

    def prepare(self, classes: ClassAverages) -> None:
        """Give the layer empty averages of these classes."""
        if self.running_mean is None:
            raise ValueError("class averages are running statistics: track_running_stats is needed")
        levels, share = classes.shares()
        per_class = (
            share[:, None],
            *(torch.zeros(len(levels), n) for n in (1, *2 * [self.num_features])),
        )
        precision = torch.promote_types(self.running_mean.dtype, torch.float32)
        for name, value in zip(self.BUFFERS, (levels, *per_class), strict=True):
            kept = levels.dtype if name == "class_weight" else precision
            self.register_buffer(name, value.to(self.running_mean.device, kept))
        self.class_momentum = classes.momentum

    def _is_plain(self) -> bool:
        return False  # without weights classes are not known

    def _normalize(self, x: Tensor, sample_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Output, and the plain mean and variance of the batch."""
        if in_backward_pass():
            raise ValueError(
                "a checkpoint computes a batch again when the averages of classes have moved on: "
                "keep class-averaged layers out of activation checkpointing"
            )
        check_alone(sharing(self.process_group), "class averages")
        if x.numel() == 0:
            return super()._normalize(x, sample_weight)
        check_count(x)
        member = self._members(x, sample_weight)
        mean, var, latest = _by_class(x.detach().to(self.class_mean.dtype), member)
        known = self._known()
        seen = known.total.sum() > 0
        target, spread = (
            torch.where(seen, of_known, own)
            for of_known, own in zip(self._balanced(known), self._balanced(latest), strict=True)
        )
        scale = ((var + self.eps) / (spread + self.eps)).sqrt()
        shift = (mean - target) * (spread + self.eps).rsqrt()
        y = self._affine(x, scale, shift)
        if self.training:
            self._take(known, latest, torch.where(seen, self.class_momentum, 1.0))
        return y, mean, var

    def _known(self) -> Sums:
        return Sums(self.class_total, self.class_mean, self.class_scatter, self.class_total)

    def _balanced(self, classes: Sums) -> tuple[Tensor, Tensor]:
        """Mean M and variance V, each class with its share; one that was not seen is left out."""
        share = torch.where(classes.total > 0, self.class_share, 0)
        share = share / share.sum()
        mean = (share * classes.mean).sum(0)
        within = classes.scatter / torch.where(classes.total > 0, classes.total, 1)
        return mean, (share * (within + (classes.mean - mean).square())).sum(0)

    def _affine(self, x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        """The batch normalized with its own moments, moved to where M and V would have put it."""
        if self.weight is not None:
            scale, shift = self.weight * scale, self.weight * shift
        if self.bias is not None:
            shift = shift + self.bias
        plain = F.batch_norm(x, None, None, None, None, True, 0.0, self.eps)
        shape = (1, -1, *(1 for _ in x.shape[2:]))
        return torch.addcmul(shift.view(shape), plain, scale.view(shape)).to(x.dtype)

    def _members(self, x: Tensor, sample_weight: Tensor | None) -> Tensor:
        """Which class each sample belongs to, shape (N, K), of zeros and ones."""
        if sample_weight is None:
            raise ValueError(
                "classes are known by their weights, and there are none: train within "
                "wbn.sample_weights(wbn.per_sample(class_weight, labels))"
            )
        weight = broadcast_weight(x, sample_weight)
        if sample_weight.dim() != 1:
            raise ValueError(
                f"sample_weight has shape {tuple(sample_weight.shape)}: class averages need one "
                f"weight a sample, {tuple(x.shape[:1])}"
            )
        member = weight.view(-1, 1).to(self.class_weight.dtype) == self.class_weight
        if values_checkable(member) and not bool(member.any(1).all()):
            stray = sample_weight[~member.any(1)][0].item()
            raise ValueError(
                f"the weight {stray:g} is that of no class; they have "
                f"{self.class_weight.tolist()}: look weights up with wbn.per_sample"
            )
        return member.to(self.class_mean.dtype)

    @torch.no_grad()
    def _take(self, known: Sums, latest: Sums, momentum: Tensor) -> None:
        """Let the batch replace a part of the averages, and keep M and V for inference."""
        merged = merge(_scaled(known, 1 - momentum), _scaled(latest, momentum))
        fine = torch.stack([part.isfinite().all() for part in merged[:3]]).all()
        for name, new in zip(self.BUFFERS[2:], merged[:3], strict=True):
            kept = getattr(self, name)
            kept.copy_(torch.where(fine, new, kept))
        running = self.running_mean, self.running_var
        for kept, new in zip(running, self._balanced(self._known()), strict=True):
            kept.copy_(torch.where(fine, new, kept))
        self.num_batches_tracked.add_(fine)


def _by_class(x: Tensor, member: Tensor) -> tuple[Tensor, Tensor, Sums]:
    """Mean and variance of a batch (N, C, \\*positions), and total, mean and scatter by class."""
    positions = x[0, 0].numel()
    var, mean = torch.var_mean(x.flatten(2) if x.dim() > 2 else x[..., None], 2, correction=0)
    overall = mean.mean(0)
    total = positions * member.sum(0)[:, None]
    of_class = positions * (member.mT @ mean) / torch.where(total > 0, total, 1)
    # Within samples, and between a sample's mean and its class's.
    distance = (mean[:, None] - of_class).square()
    scatter = positions * (member[..., None] * (var[:, None] + distance)).sum(0)
    spread = (var + (mean - overall).square()).mean(0)
    return overall, spread, Sums(total, of_class, scatter, total)


def _scaled(sums: Sums, factor: Tensor) -> Sums:
    return Sums(factor * sums.total, sums.mean, factor * sums.scatter, sums.pairs)


class ClassAveragedBatchNorm1d(ClassAveragedBatchNorm, nn.BatchNorm1d):
    r"""Batch normalization of (N, C) or (N, C, L) with balanced averages of classes.

    .. math::
        y_i &= \gamma \Bigl( \frac{x_i - m}{\sqrt{v + \varepsilon}}\, r + d \Bigr) + b \\
        r &= \sqrt{v + \varepsilon} / \sqrt{V + \varepsilon} \\
        d &= (m - M) / \sqrt{V + \varepsilon} \\
        M &= \sum_k \pi_k \mu_k \\
        V &= \sum_k \pi_k \bigl( \sigma_k^2 + (\mu_k - M)^2 \bigr)

    with the plain moments m and v of the mini-batch, which carry the gradient, and constants r and
    d, which make y the input normalized with M and V: batch renormalization (Ioffe 2017) towards
    moments in which each class has its share :math:`\pi_k` of the weighted loss. The moments
    :math:`\mu_k` and :math:`\sigma_k^2` of a class are running averages over the mini-batches
    before. So a mini-batch without a rare class is normalized like any other, no sample takes part
    in what it is normalized with, and inference, which uses M and V, does the same.

    In training, weights must be given as to `WeightedBatchNorm1d`, one for each sample; they tell
    its class. In eval mode it is the plain affine map of ``nn.BatchNorm1d``, and `revert` makes it
    that layer. ``state_dict`` has the averages of classes beside the keys of ``nn.BatchNorm1d``.

    Parameters
    ----------
    num_features
        Number of channels C.
    classes
        Weights and sizes of the classes, `ClassAverages`.
    \*args, \*\*options
        As for `WeightedBatchNorm1d`; processes that share a batch and activation checkpointing
        are refused.

    References
    ----------
    Ioffe, Batch Renormalization, NeurIPS 2017, arXiv:1702.03275.

    Examples
    --------
    >>> import torch
    >>> from wbn.class_averages import ClassAveragedBatchNorm1d, ClassAverages
    >>> classes = ClassAverages(torch.tensor([1.0, 3.0]), counts=torch.tensor([3, 1]))
    >>> layer = ClassAveragedBatchNorm1d(1, classes)
    >>> x, w = torch.tensor([[0.0], [0.0], [0.0], [4.0]]), torch.tensor([1.0, 1.0, 1.0, 3.0])
    >>> layer(x, w).flatten().detach().round(decimals=3), layer.running_mean
    (tensor([-1., -1., -1.,  1.]), tensor([2.]))
    """


class ClassAveragedBatchNorm2d(ClassAveragedBatchNorm, nn.BatchNorm2d):
    """Batch normalization of (N, C, H, W) with balanced averages of classes.

    See `ClassAveragedBatchNorm1d`.

    Examples
    --------
    >>> import torch
    >>> from wbn.class_averages import ClassAveragedBatchNorm2d, ClassAverages
    >>> classes = ClassAverages(torch.tensor([1.0, 3.0]), counts=torch.tensor([3, 1]))
    >>> layer = ClassAveragedBatchNorm2d(3, classes)
    >>> layer(torch.randn(2, 3, 8, 8), torch.tensor([1.0, 3.0])).shape
    torch.Size([2, 3, 8, 8])
    """


class ClassAveragedBatchNorm3d(ClassAveragedBatchNorm, nn.BatchNorm3d):
    """Batch normalization of (N, C, D, H, W) with balanced averages of classes.

    See `ClassAveragedBatchNorm1d`.

    Examples
    --------
    >>> import torch
    >>> from wbn.class_averages import ClassAveragedBatchNorm3d, ClassAverages
    >>> classes = ClassAverages(torch.tensor([1.0, 3.0]), counts=torch.tensor([3, 1]))
    >>> layer = ClassAveragedBatchNorm3d(3, classes)
    >>> layer(torch.randn(2, 3, 4, 4, 4), torch.tensor([1.0, 3.0])).shape
    torch.Size([2, 3, 4, 4, 4])
    """
