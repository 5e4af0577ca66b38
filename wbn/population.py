"""The statistics used at inference, from a pass over the training set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from wbn.accumulation import Average, Pool
from wbn.checks import Correction
from wbn.class_averages import ClassAveragedBatchNorm
from wbn.context import current_sample_weight, sample_weights
from wbn.distributed import Group, sharing
from wbn.layers import WeightedBatchNorm

Mode = Literal["batch_average", "weight_average", "pooled"]
Unpack = Callable[[Any], tuple[Any, Tensor | None]]
Progress = Callable[[Iterable], Iterable]
Run = Callable[[Any], None]  # one batch through the model


@torch.no_grad()
def population_statistics(
    model: nn.Module,
    batches: Iterable,
    mode: Mode,
    unpack: Unpack | None = None,
    progress: Progress = iter,
) -> None:
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
    the batches for each, which goes no further into the model than to that layer.

    Parameters
    ----------
    model
        Any module with weighted layers; plain ``nn.BatchNorm*`` are treated as having all
        weights 1. Layers without running statistics, those that no batch reaches, and
        `ClassAveragedBatchNorm1d` and its kin, whose statistics are those of training, are left
        as they are. Modules other than the rest run as in eval mode: dropout is off.
        Afterwards all training flags are what they were, and so is everything else but the
        running statistics and ``num_batches_tracked``, which becomes the number of batches.
    batches
        Any iterable, such as a ``DataLoader``. ``"pooled"`` iterates over it several times.
    mode
        ``"batch_average"``, ``"weight_average"`` or ``"pooled"``.
    unpack
        A function of a batch that returns what the model is called with and the sample weights
        or None, both on the model's device. For pairs of images and labels:
        ``lambda batch: (batch[0], per_sample(class_weight, batch[1]))``. A tuple is passed as
        the model's arguments, a dict as its keyword arguments, anything else as the only one.
        Needed unless batches are tensors, which are inputs without weights.
    progress
        What to wrap the loop in, for example ``tqdm.tqdm``: over the batches of an average,
        and over the layers in ``"pooled"``.

    Raises
    ------
    ValueError
        For an unknown mode, nothing to do, batches that need ``unpack``, weights that a layer
        refuses, statistics that are not finite, or an iterator that can be used only once with
        ``"pooled"``. After any error the statistics are what they were.

    Notes
    -----
    In ``"pooled"`` a layer that is called several times in a pass is pooled over its calls,
    and must not feed itself.

    Layers with a process group get the statistics of the batches of all its processes. Each
    process has batches, and for the averages equally many, as in training.

    Examples
    --------
    >>> import torch
    >>> from wbn.layers import WeightedBatchNorm1d
    >>> from wbn.population import population_statistics
    >>> layer = WeightedBatchNorm1d(1, correction="frequency")
    >>> x = torch.tensor([[0.0], [1.0], [2.0], [3.0]])
    >>> batches = [(x[:2], torch.tensor([1.0, 1.0])), (x[2:], torch.tensor([1.0, 3.0]))]
    >>> for mode in ("batch_average", "weight_average", "pooled"):
    ...     population_statistics(layer, batches, mode, unpack=lambda batch: batch)
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
        m
        for m in model.modules()
        if isinstance(m, _BatchNorm)
        and m.running_mean is not None
        and not isinstance(m, ClassAveragedBatchNorm)
    ]
    run = partial(_run, model, unpack or _unpack)
    with _restoring(model, layers):
        for module in model.modules():
            module.training = mode != "pooled" and module in layers
        if mode == "pooled":
            reached = _pool(run, batches, layers, progress)
        else:
            by_weight = mode == "weight_average"
            reached = _average(run, progress(batches), layers, by_weight)
        if not reached:
            raise ValueError(
                "no batch went through a batch norm layer with running statistics: check the "
                "model and the batches (if it is compiled, pass the model before torch.compile)"
            )


def _unpack(batch: Any) -> tuple[Tensor, None]:
    if not isinstance(batch, Tensor):
        raise ValueError(
            f"a batch is a {type(batch).__name__}: say what of it is input and what is weight, for "
            "example unpack=lambda batch: (batch[0], wbn.per_sample(class_weight, batch[1])), or "
            "unpack=lambda batch: (batch[0], None) for no weights"
        )
    return batch, None


def _run(model: nn.Module, unpack: Unpack, batch: Any) -> None:
    inputs, sample_weight = unpack(batch)
    with sample_weights(sample_weight):
        if isinstance(inputs, dict):
            model(**inputs)
        else:
            model(*(inputs if isinstance(inputs, tuple) else (inputs,)))


def _average(run: Run, batches: Iterable, layers: list[_BatchNorm], by_weight: bool) -> bool:
    gathered: dict[_BatchNorm, Average] = {}

    def gather(layer: _BatchNorm, args: tuple, kwargs: dict) -> None:
        x, sample_weight, correction, group = _arguments(layer, *args, **kwargs)
        average = gathered.setdefault(layer, Average(correction, group, by_weight))
        average.add(x, sample_weight)

    with _hooked(layers, gather):
        for batch in batches:
            run(batch)
    for layer, statistics in gathered.items():
        _set(layer, *statistics.result())
    return bool(gathered)


def _pool(run: Run, batches: Iterable, layers: list[_BatchNorm], progress: Progress) -> bool:
    """One layer after the other, of which the first shows how often a batch calls each."""
    calls: list[Counter[_BatchNorm]] = []
    waiting = set(layers)
    for _ in progress(range(len(layers))):
        first = _pool_first(run, batches, waiting, calls)
        if first is None:
            break
        waiting.remove(first)
    return len(waiting) < len(layers)


def _pool_first(
    run: Run, batches: Iterable, waiting: set[_BatchNorm], calls: list[Counter[_BatchNorm]]
) -> _BatchNorm | None:
    """Set the statistics of the first of the layers to be reached, and return it.

    Where `calls` has what earlier passes counted, and all batches call that layer equally often,
    each batch is left after the last call.
    """
    counting, first, statistics = not calls, None, None

    def gather(layer: _BatchNorm, args: tuple, kwargs: dict) -> None:
        nonlocal first, statistics
        seen[layer] += 1
        x, sample_weight, correction, group = _arguments(layer, *args, **kwargs)
        if first is None:
            first, statistics = layer, Pool(correction, group)
        if layer is first:
            statistics.add(x, sample_weight)
            if not counting and {counted[layer] for counted in calls} == {seen[layer]}:
                raise _Enough

    with _hooked(waiting, gather):
        for batch in batches:
            seen: Counter[_BatchNorm] = Counter()
            with suppress(_Enough):
                run(batch)
            if counting:
                calls.append(seen)
    if first is not None:
        _set(first, *statistics.result())
    return first


class _Enough(BaseException):
    """Leaves the model where the rest of it is not needed; no model catches it."""


@contextmanager
def _hooked(layers: Iterable[_BatchNorm], hook: Callable) -> Iterator[None]:
    """Call the hook before each call of a layer."""
    hooks = [layer.register_forward_pre_hook(hook, with_kwargs=True) for layer in layers]
    try:
        yield
    finally:
        for handle in hooks:
            handle.remove()


def _arguments(
    layer: _BatchNorm, input: Tensor, sample_weight: Tensor | None = None
) -> tuple[Tensor, Tensor | None, Correction, Group | None]:
    if not isinstance(layer, WeightedBatchNorm):
        return input, None, "none", None
    if sample_weight is None:
        sample_weight = current_sample_weight((len(input), *input.shape[2:]))
    return input, sample_weight, layer.correction, sharing(layer.process_group)


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
