"""Weighted batch normalization as layers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.fx import Proxy
from torch.nn.modules.batchnorm import _BatchNorm

from wbn.checks import (
    Correction,
    check_correction,
    check_input,
    warn_if_called_by,
)
from wbn.context import current_sample_weight, sample_weights
from wbn.core import plain_eager
from wbn.distributed import ProcessGroup, sharing
from wbn.normalization import normalize_batch
from wbn.recall import Call, check_recalled, in_backward_pass
from wbn.running import normalize_as_torch, update_running

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
    process_group: ProcessGroup | None = None
    path: str | None = None  # the layer's name in its model, for messages, where `convert` knows it
    _calls: tuple[Call, ...] = ()  # the last two, from the first weights of a context on

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
        correction: Correction = "none",
        process_group: ProcessGroup | None = None,
        **options: Any,
    ) -> None:
        check_correction(correction)
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, **options
        )
        self.correction = correction
        self.process_group = process_group

    def forward(self, input: Tensor, sample_weight: Tensor | None = None) -> Tensor:
        """Normalize, in training with the weights given here or else the context's."""
        if isinstance(input, Proxy):  # torch.fx is to see the layer as a whole, like torch's own
            tracer = input.tracer
            arguments = (input,) if sample_weight is None else (input, sample_weight)
            return tracer.create_proxy("call_module", tracer.path_of_module(self), arguments, {})
        try:
            return self._forward(input, sample_weight)
        except ValueError as error:
            name = f"({self.num_features})" if self.path is None else f" {self.path!r}"
            raise ValueError(f"{type(self).__name__}{name}: {error}") from None

    def _forward(self, x: Tensor, sample_weight: Tensor | None) -> Tensor:
        self._check_input_dim(x)
        if not (x.is_floating_point() and x.shape[1] == self.num_features > 0):
            self._refuse(x)
        mean = self._buffers["running_mean"]  # which Python finds faster than attributes
        evaluating = not self.training and mean is not None
        shared = current_sample_weight()  # in eval mode too: a context around it counts as used
        if shared is not None and sample_weight is None and not evaluating:
            shared = current_sample_weight((x.shape[0], *x.shape[2:]))
        if evaluating:
            var, weight, bias = self.running_var, self.weight, self.bias
            cudnn = torch.backends.cudnn.enabled
            return torch.batch_norm(x, weight, bias, mean, var, False, 0.0, self.eps, cudnn)
        if sample_weight is not None:
            return self._normalize(x, sample_weight)[0]
        if shared is None and self._calls and in_backward_pass():
            y, of_batch, var = self._normalize(x, self._calls[-1].sample_weight)
            check_recalled(x, of_batch, var, self._calls, self.correction)
            return y
        if shared is None and not self._calls and x.numel() > 0 and self._is_plain():
            return self._normalize_as_torch(x, mean)
        y, of_batch, var = self._normalize(x, shared)
        if not torch.compiler.is_compiling() and (shared is not None or self._calls):
            before = self._calls[-1:] if self.process_group is None else ()
            self._calls = (*before, Call(shared, of_batch, var))
        return y

    def _refuse(self, x: Tensor) -> None:
        check_input(x)
        raise ValueError(
            f"the input of shape {tuple(x.shape)} has {x.shape[1]} channels "
            f"(dimension 1), but the layer has {self.num_features}"
        )

    def _normalize(self, x: Tensor, sample_weight: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Output, and the mean and variance of the batch."""
        group = sharing(self.process_group) if self.training else None
        options = self.weight, self.bias, self.eps, self.correction, group
        y, mean, var = normalize_batch(x, sample_weight, *options)
        if self.track_running_stats and self.running_mean is not None:
            running = self.running_mean, self.running_var
            update_running(*running, mean, var, self.momentum, self.num_batches_tracked)
        return y, mean, var

    def _is_plain(self) -> bool:
        """Whether without weights it is torch's layer, and torch's kernel can take its batch."""
        group = self.process_group
        alone = group is None or not self.training or sharing(group) is None
        if self.correction != "none" or not alone:
            return False
        return plain_eager() or (torch.compiler.is_compiling() and self.momentum is not None)

    def _normalize_as_torch(self, x: Tensor, running_mean: Tensor | None) -> Tensor:
        parameters, numbers = (self.weight, self.bias), (self.momentum, self.eps)
        if not self.track_running_stats:
            return normalize_as_torch(x, None, None, *parameters, *numbers)
        buffers = self._buffers
        running = running_mean, buffers["running_var"]
        return normalize_as_torch(
            x, *running, *parameters, *numbers, buffers["num_batches_tracked"]
        )

    def _replicate_for_data_parallel(self) -> WeightedBatchNorm:
        if current_sample_weight() is not None and self.training:
            raise ValueError(
                "DataParallel runs layers in threads, which don't see the weights of "
                "sample_weights: use DistributedDataParallel, and process_group='world'"
            )
        return super()._replicate_for_data_parallel()

    def named_children(self) -> Iterator[tuple[str, nn.Module]]:
        # The one thing of a layer that those who replace it, torch, Lightning and timm, call.
        warn_if_called_by(
            "convert_sync_batchnorm",
            "(sync_batchnorm=True in Lightning) replaces weighted layers by layers without "
            "weights: use wbn.convert(model, process_group='world') instead",
        )
        return super().named_children()

    def reset_running_stats(self) -> None:
        warn_if_called_by(
            "update_bn",
            "calls the model without weights, and the statistics of weighted layers will be "
            "those of unweighted data: use wbn.population_statistics(model, loader, "
            "'batch_average', unpack=...) instead",
        )
        super().reset_running_stats()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_calls"}

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, correction={self.correction!r}"


class WeightedBatchNorm1d(WeightedBatchNorm, nn.BatchNorm1d):
    r"""Batch normalization of (N, C) or (N, C, L) with weighted moments (Eqs. 7, 8, 11, 12).

    .. math::
        y_i &= \gamma \frac{x_i - m}{\sqrt{v + \varepsilon}} + b, \qquad Z = \sum_i w_i \\
        m &= \frac{1}{Z} \sum_i w_i x_i \\
        v &= \frac{1}{D} \sum_i w_i (x_i - m)^2

    In training, ``layer(x, sample_weight)`` normalizes with the moments of the mini-batch
    under these weights, or, called as ``layer(x)``, under those of the surrounding
    `sample_weights`, or else with all weights 1. In eval mode it is the plain affine map of
    the running statistics and ignores weights. Parameters, buffers and ``state_dict`` are
    those of ``nn.BatchNorm1d``, and without weights and correction so is all else.

    Parameters
    ----------
    num_features, eps, momentum, affine, track_running_stats, device, dtype, \*\*options
        As for ``nn.BatchNorm1d`` (``bias``, where torch has it, is among the options).
        ``momentum=None`` makes the running statistics the cumulative average. A batch whose
        moments are not finite leaves them alone.
    correction
        The denominator :math:`D` of the variance: "none" is :math:`Z`, as in torch,
        "frequency" :math:`Z - 1`, the paper's (weights count copies; :math:`Z \ge 2`) and
        "reliability" :math:`Z - \sum_i w_i^2 / Z` (weights are importances). The running
        variance stores what was normalized with, or for "none" the reliability-corrected
        variance, as torch stores the unbiased one.
    process_group
        Processes that share each mini-batch in training, as with ``DistributedDataParallel``:
        a group of ``torch.distributed``, or ``"world"`` for all. The moments are then those of
        the whole batch, at the cost of one collective in the forward pass and one in the
        backward pass. All of them must take part, but sizes and weights may differ, and a
        process may have no weight or no samples.

    Notes
    -----
    Input that can't be normalized is a ValueError and changes nothing; :mod:`wbn.normalization`
    says what happens where the values of weights can't be read, and to values under a weight of
    zero.

    Activation checkpointing runs a layer again in the backward pass, maybe outside of
    `sample_weights`. It then takes the weights of its last batch, and if its moments are not
    those of that batch, it is an error that says what to do.

    References
    ----------
    M. Yasuda and S. Ueno, Improvement of Batch Normalization in Imbalanced Data, NOLTA 2019,
    arXiv:1911.10687 ("pBN").

    Examples
    --------
    >>> import torch
    >>> from wbn.layers import WeightedBatchNorm1d, sample_weights
    >>> layer = WeightedBatchNorm1d(1, eps=1e-8, correction="frequency")
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
