"""Weighted batch normalization as layers."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wbn.checks import Correction, check_correction, check_count, check_input
from wbn.context import current_sample_weight, sample_weights
from wbn.core import plain_eager
from wbn.functional import normalize_batch, update_running

__all__ = [
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "current_sample_weight",
    "sample_weights",
]


class WeightedBatchNorm(_BatchNorm):
    """What the layers have in common; use `WeightedBatchNorm1d` and its kin."""

    correction: Correction

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        correction: Correction = "frequency",
        **options: Any,
    ) -> None:
        check_correction(correction)
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, **options
        )
        self.correction = correction

    def forward(self, input: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Normalize, in training with the weights given here or else the context's."""
        self._check_input_dim(input)
        check_input(input)
        if input.shape[1] != self.num_features:
            raise ValueError(
                f"the input of shape {tuple(input.shape)} has {input.shape[1]} channels "
                f"(dimension 1), but the layer has {self.num_features}"
            )
        if not self.training and self.running_mean is not None:
            current_sample_weight()  # so that a context around eval mode counts as used
            return _BatchNorm.forward(self, input)
        given = current_sample_weight((len(input), *input.shape[2:]))
        sample_weight = given if sample_weight is None else sample_weight
        tracked = self.track_running_stats and self.running_mean is not None
        if sample_weight is None and self.correction == "none" and plain_eager():
            y, mean, var = self._forward_of_torch(input, tracked)
            momentum = 1.0
        else:
            y, mean, var = normalize_batch(
                input, sample_weight, self.weight, self.bias, self.eps, self.correction
            )
            momentum = self.momentum
        if tracked:
            running = self.running_mean, self.running_var
            update_running(*running, mean, var, momentum, self.num_batches_tracked)
        return y

    def _forward_of_torch(self, input: Tensor, tracked: bool) -> tuple[Tensor, Tensor, Tensor]:
        """The output of nn.BatchNorm to the last bit, and its new running statistics."""
        check_count(input)
        mean = var = None
        momentum = self.momentum or 0.0
        if tracked:
            mean, var = self.running_mean.clone(), self.running_var.clone()
            if self.momentum is None:
                momentum = 1 / (1 + self.num_batches_tracked.item())
        y = F.batch_norm(input, mean, var, self.weight, self.bias, True, momentum, self.eps)
        return y, mean, var

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, correction={self.correction!r}"


class WeightedBatchNorm1d(WeightedBatchNorm, nn.BatchNorm1d):
    r"""Batch normalization of (N, C) or (N, C, L) with weighted moments (Eqs. 7, 8, 11, 12).

    .. math::
        y_i = \gamma \frac{x_i - m}{\sqrt{v + \varepsilon}} + b, \quad
        m = \frac{1}{Z} \sum_i w_i x_i, \quad v = \frac{1}{D} \sum_i w_i (x_i - m)^2, \quad
        Z = \sum_i w_i

    In training, ``layer(x, sample_weight)`` normalizes with the moments of the mini-batch
    under these weights, or, called as ``layer(x)``, under those of the surrounding
    `sample_weights`, or else with all weights 1. In eval mode it is the plain affine map of
    the running statistics and ignores weights. Parameters, buffers and ``state_dict`` are
    those of ``nn.BatchNorm1d``, and with ``correction="none"`` and no weights so is all else.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, \*\*options
        As for ``nn.BatchNorm1d`` (``bias``, where torch has it, is among the options).
        ``momentum=None`` makes the running statistics the cumulative average. A batch whose
        moments are not finite leaves them alone.
    correction
        The denominator :math:`D` of the variance: "frequency" is :math:`Z - 1`, the paper's
        (weights count copies; :math:`Z \ge 2`), "reliability" :math:`Z - \sum_i w_i^2 / Z`
        (weights are importances; their scale does not matter) and "none" :math:`Z`. The
        running variance stores what was normalized with, or for "none" the
        reliability-corrected variance.

    Notes
    -----
    Input that can't be normalized is a ValueError and changes nothing. The values of weights
    are checked in eager mode on the CPU only, see `weighted_moments`; elsewhere, what would be
    refused gives an output, but leaves the running statistics alone.

    References
    ----------
    M. Yasuda and S. Ueno, Improvement of Batch Normalization in Imbalanced Data, NOLTA 2019,
    arXiv:1911.10687 ("pBN").

    Examples
    --------
    >>> import torch
    >>> from wbn.layers import WeightedBatchNorm1d, sample_weights
    >>> layer = WeightedBatchNorm1d(1, eps=1e-8)
    >>> x, w = torch.tensor([[0.0], [1.0]]), torch.tensor([1.0, 3.0])
    >>> layer(x, w).flatten()
    tensor([-1.5000,  0.5000], grad_fn=<ViewBackward0>)
    >>> with sample_weights(w):
    ...     layer(x).flatten()
    tensor([-1.5000,  0.5000], grad_fn=<ViewBackward0>)
    """


class WeightedBatchNorm2d(WeightedBatchNorm, nn.BatchNorm2d):
    """Batch normalization of (N, C, H, W), weights (N,) or (N, H, W).

    See `WeightedBatchNorm1d`.

    Examples
    --------
    >>> import torch
    >>> from wbn.layers import WeightedBatchNorm2d
    >>> WeightedBatchNorm2d(3)(torch.randn(2, 3, 8, 8), torch.tensor([1.0, 3.0])).shape
    torch.Size([2, 3, 8, 8])
    """


class WeightedBatchNorm3d(WeightedBatchNorm, nn.BatchNorm3d):
    """Batch normalization of (N, C, D, H, W), weights (N,) or (N, D, H, W).

    See `WeightedBatchNorm1d`.

    Examples
    --------
    >>> import torch
    >>> from wbn.layers import WeightedBatchNorm3d
    >>> WeightedBatchNorm3d(3)(torch.randn(2, 3, 4, 4, 4), torch.tensor([1.0, 3.0])).shape
    torch.Size([2, 3, 4, 4, 4])
    """
