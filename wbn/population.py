"""The statistics used at inference, from a pass over the training set."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wbn.checks import (
    Correction,
    broadcast_weight,
    check_enough,
    check_not_negative,
    check_poolable,
)
from wbn.context import current_sample_weight, sample_weights
from wbn.core import Sums, merge, moments, reduced
from wbn.divisors import denominator
from wbn.layers import WeightedBatchNorm
from wbn.normalization import checked_moments

Mode = Literal["batch_average", "weight_average", "pooled"]
Batches = Iterable[tuple[Tensor, Tensor | None]]


@torch.no_grad()
def population_statistics(model: nn.Module, batches: Batches, mode: Mode) -> None:
    r"""Set the statistics for inference from a pass over training batches (after Eq. 10).

    .. math::
        m = \frac{1}{R} \sum_{r=1}^R m_r, \qquad v = \frac{1}{R} \sum_{r=1}^R v_r

    over the :math:`R` mini-batches is the paper's, ``"batch_average"``.
    ``"weight_average"`` weights each batch by its total weight, :math:`\sum_r Z_r m_r /
    \sum_r Z_r`, so that a short last batch counts for what it holds. Both ignore that the
    means of batches differ. ``"pooled"`` is the weighted mean and variance of the whole set,
    each divided by what the layer's correction gives for the whole, and independent of how
    the set was cut into batches.

    What a later layer sees depends on the earlier ones. In the two averages these normalize
    with the statistics of the mini-batch, as in training, and one pass serves all layers. In
    ``"pooled"`` they normalize with their own pooled statistics, as in inference; so layers
    are done one after the other, in the order in which they are reached, with one pass over
    the batches for each.

    Parameters
    ----------
    model
        Any module with weighted layers; plain ``nn.BatchNorm*`` are treated as having all
        weights 1. Layers without running statistics, and those that no batch reaches, are
        left as they are. Modules other than batch norm run as in eval mode: dropout is off.
        Afterwards all training flags are what they were, and so is everything else but the
        running statistics and ``num_batches_tracked``, which becomes the number of batches.
    batches
        Pairs of inputs, for ``model(inputs)``, and sample weights or None. ``"pooled"``
        iterates over them several times.
    mode
        ``"batch_average"``, ``"weight_average"`` or ``"pooled"``.

    Raises
    ------
    ValueError
        For an unknown mode, nothing to do, weights that a layer refuses, statistics that are
        not finite, or an iterator that can be used only once with ``"pooled"``. After any
        error the statistics are what they were.

    Notes
    -----
    In ``"pooled"`` a layer that is called several times in a pass is pooled over its calls,
    and must not feed itself.

    Examples
    --------
    >>> import torch
    >>> from wbn.layers import WeightedBatchNorm1d
    >>> from wbn.population import population_statistics
    >>> layer = WeightedBatchNorm1d(1, correction="frequency")
    >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    >>> batches = [(x[:2], torch.tensor([1.0, 1.0])), (x[2:], torch.tensor([1.0, 3.0]))]
    >>> for mode in ("batch_average", "weight_average", "pooled"):
    ...     population_statistics(layer, batches, mode)
    ...     print(mode, layer.running_mean.item(), layer.running_var.item())
    batch_average 1.625 0.375
    weight_average 2.0 0.3333333432674408
    pooled 2.0 1.600000023841858
    """
    if mode not in get_args(Mode):
        raise ValueError(f"mode is {mode!r}; choose one of {get_args(Mode)}")
    if mode == "pooled" and iter(batches) is batches:
        raise ValueError("pooled statistics need several passes over the batches: make it a list")
    layers = [
        m for m in model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None
    ]
    with _restoring(model, layers):
        if mode == "pooled":
            reached = _pool(model, batches, layers)
        else:
            reached = _average(model, batches, layers, by_weight=mode == "weight_average")
        if not reached:
            raise ValueError(
                "no batch went through a batch norm layer with running statistics: check the "
                "model and the batches (if it is compiled, pass the model before torch.compile)"
            )


def _average(model: nn.Module, batches: Batches, layers: list[_BatchNorm], by_weight: bool) -> bool:
    for module in model.modules():
        module.training = module in layers
    gathered = _gather(model, batches, layers, partial(_Average, by_weight=by_weight))
    for layer, statistics in gathered.items():
        _set(layer, *statistics.result())
    return bool(gathered)


def _pool(model: nn.Module, batches: Batches, layers: list[_BatchNorm]) -> bool:
    for module in model.modules():
        module.training = False
    waiting = list(layers)
    while waiting:
        gathered = _gather(model, batches, waiting, _Pool, first_only=True)
        if not gathered:
            break
        ((layer, statistics),) = gathered.items()
        _set(layer, *statistics.result())
        waiting.remove(layer)
    return len(waiting) < len(layers)


class _Average:
    """Averages of mini-batch statistics, each batch counted once or by its total weight."""

    mean: Any  # the number 0 until the first batch is added, then a tensor
    var: Any

    def __init__(self, correction: Correction, by_weight: bool) -> None:
        self.correction, self.by_weight = correction, by_weight
        self.calls, self.total, self.mean, self.var = 0, 0.0, 0.0, 0.0

    def add(self, x: Tensor, sample_weight: Tensor | None) -> None:
        m, stored, _, scale, _ = checked_moments(x, sample_weight, self.correction)
        share = m.total.item() * float(scale) if self.by_weight else 1.0
        self.calls += 1
        self.total += share
        self.mean += share * _exact(m.mean)
        self.var += share * _exact(stored)

    def result(self) -> tuple[Tensor, Tensor, int]:
        return self.mean / self.total, self.var / self.total, self.calls


class _Pool:
    """Moments of all batches together."""

    mean: Any  # as in `_Average`
    scatter: Any

    def __init__(self, correction: Correction) -> None:
        self.correction, self.calls = correction, 0
        self.sums = Sums(*torch.zeros(4, 1, dtype=torch.float64))

    def add(self, x: Tensor, sample_weight: Tensor | None) -> None:
        self.calls += 1
        if x.numel() == 0:
            return
        precision = torch.float32 if x.device.type == "mps" else torch.float64
        x = x.to(precision)
        w = None if sample_weight is None else broadcast_weight(x, sample_weight)
        m = moments(x, w, reduced(x), "none")
        if w is not None:
            check_not_negative(w.min().item(), m.total.item())
            check_poolable(m.total.item())
        parts = m.total, m.mean, m.total * m.var, m.total * m.unbiased
        self.sums = merge(self.sums, Sums(*map(_exact, parts)))

    def result(self) -> tuple[Tensor, Tensor, int]:
        total, mean, scatter, pairs = self.sums
        concentration = 1 - pairs / total.square()
        precision = torch.finfo(torch.float32).eps
        check_enough(total.item(), concentration.item(), self.correction, precision)
        stored = "reliability" if self.correction == "none" else self.correction
        return mean, scatter / denominator(total, concentration, stored), self.calls


def _exact(statistic: Tensor) -> Tensor:
    return statistic.flatten().cpu().double()


def _gather(
    model: nn.Module,
    batches: Batches,
    layers: list[_BatchNorm],
    new: Callable[[Correction], _Average | _Pool],
    first_only: bool = False,
) -> dict[_BatchNorm, _Average | _Pool]:
    """Statistics of what enters the layers, or of the first one to be reached, in one pass."""
    gathered: dict[_BatchNorm, _Average | _Pool] = {}

    def gather(layer: _BatchNorm, args: tuple, kwargs: dict) -> None:
        if first_only and gathered and layer not in gathered:
            return
        x, sample_weight, correction = _arguments(layer, *args, **kwargs)
        gathered.setdefault(layer, new(correction)).add(x, sample_weight)

    hooks = [layer.register_forward_pre_hook(gather, with_kwargs=True) for layer in layers]
    try:
        for inputs, sample_weight in batches:
            with sample_weights(sample_weight):
                model(inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return gathered


def _arguments(
    layer: _BatchNorm, input: Tensor, sample_weight: Tensor | None = None
) -> tuple[Tensor, Tensor | None, Correction]:
    if not isinstance(layer, WeightedBatchNorm):
        return input, None, "none"
    if sample_weight is None:
        sample_weight = current_sample_weight()
    return input, sample_weight, layer.correction


def _set(layer: _BatchNorm, mean: Tensor, var: Tensor, calls: int) -> None:
    if not (mean + var).isfinite().all():
        raise ValueError(f"the statistics of {layer} are not finite: check inputs and parameters")
    layer.running_mean.copy_(mean)
    layer.running_var.copy_(var)
    layer.num_batches_tracked.fill_(calls)


@contextmanager
def _restoring(model: nn.Module, layers: list[_BatchNorm]) -> Iterator[None]:
    """Put all flags back in the end, and after an error the statistics too."""
    training = [(module, module.training) for module in model.modules()]
    buffers = [(buffer, buffer.clone()) for layer in layers for buffer in layer.buffers()]
    try:
        yield
    except BaseException:
        for buffer, before in buffers:
            buffer.copy_(before)
        raise
    finally:
        for module, flag in training:
            module.training = flag
