"""Whole models turned to weighted batch normalization and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, TypeVar

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import parametrize

from wbn.checks import Correction, check_correction
from wbn.class_averages import (
    ClassAveragedBatchNorm,
    ClassAveragedBatchNorm1d,
    ClassAveragedBatchNorm2d,
    ClassAveragedBatchNorm3d,
    ClassAverages,
)
from wbn.distributed import ProcessGroup
from wbn.layers import (
    WeightedBatchNorm,
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
)

Model = TypeVar("Model", bound=nn.Module)
After = Callable[[Any, Tensor], Tensor]
Which = str | Iterable[str] | Callable[[str, nn.Module], bool]

_TORCH: dict[type, type] = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
}
_AVERAGED: dict[type, type] = {
    nn.BatchNorm1d: ClassAveragedBatchNorm1d,
    nn.BatchNorm2d: ClassAveragedBatchNorm2d,
    nn.BatchNorm3d: ClassAveragedBatchNorm3d,
}
_WEIGHTED = dict(_TORCH)
_PLAIN = {own: plain for made in (_TORCH, _AVERAGED) for plain, own in made.items()}
_AFTER: dict[type, After] = {}
_AFTER_BY_NAME: dict[str, After] = {  # classes of packages that need not be installed
    "timm.layers.norm_act.BatchNormAct2d": lambda layer, y: layer.act(layer.drop(y)),
}


def convert(
    model: Model,
    correction: Correction = "none",
    *,
    only: Which | None = None,
    exclude: Which = (),
    process_group: ProcessGroup | None = None,
    statistics: ClassAverages | None = None,
) -> Model:
    """Turn the ``nn.BatchNorm1d/2d/3d`` of a model into their weighted counterparts.

    Without weights, and with the default correction, it remains the model that it was.

    The layers change their class in place and stay the same objects otherwise: parameters
    (an optimizer keeps working), buffers, device, dtype, training flag, hooks,
    parametrizations and sharing are as before, and so are the keys of ``state_dict``, but for
    those that class averages add. Layers that are weighted already are left alone, with their
    correction. To keep the original, convert a ``copy.deepcopy``.

    Classes derived from torch's are converted if they have torch's ``forward``, if they are
    timm's ``BatchNormAct2d``, or if `register` was told what they do.

    Parameters
    ----------
    model
        Any module; it may be a batch norm layer itself.
    correction
        The correction of the layers, see `WeightedBatchNorm1d`.
    only, exclude
        Which layers to convert, by default all, and which of these to leave as they are: the
        name of a layer or of a module that contains it, a pattern such as ``"*.bn1"``, several
        of these, or a function of name and layer that returns a truth value.
    process_group
        The processes that share a batch, see `WeightedBatchNorm1d`; instead of
        ``SyncBatchNorm.convert_sync_batchnorm``.
    statistics
        None for the weighted moments of each mini-batch; `ClassAverages` for balanced running
        averages of classes, see `ClassAveragedBatchNorm1d`. These take torch's own layers only.

    Returns
    -------
    nn.Module
        The model.

    Raises
    ------
    ValueError
        For a kind of batch norm that has no counterpart (lazy layers before their first input,
        ``SyncBatchNorm``, other classes derived from torch's), and for a name or pattern that
        no layer has. Nothing is changed then.

    Warns
    -----
    UserWarning
        If there is nothing to convert.

    Examples
    --------
    >>> from torch import nn
    >>> from wbn.conversion import convert
    >>> model = nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 2), nn.BatchNorm1d(2))
    >>> convert(model, "reliability", exclude="2")[0].correction
    'reliability'
    >>> type(model[2])
    <class 'torch.nn.modules.batchnorm.BatchNorm1d'>
    """
    check_correction(correction)
    names = _names(model, _BatchNorm)
    chosen = set(names) if only is None else _chosen(names, only, "only")
    chosen -= _chosen(names, exclude, "exclude")
    if not chosen:
        warnings.warn(
            f"wbn.convert found no batch norm to convert in {type(model).__name__}, which has "
            f"{len(names)} such layers, so that it trains without weighted ones: check the model, "
            "only and exclude",
            stacklevel=2,
        )
    plain = {
        own[0]: layer
        for layer, own in names.items()
        if layer in chosen and not isinstance(layer, WeightedBatchNorm)
    }
    if statistics is not None:
        statistics.shares()  # before anything is changed
        untracked = [name for name, layer in plain.items() if layer.running_mean is None]
        if untracked:
            raise ValueError(
                f"layer {untracked[0]!r} does not track running statistics: exclude it"
            )
    counterpart = _weighted if statistics is None else _AVERAGED.get
    for name, layer in _change_class(plain, counterpart):
        layer.correction, layer.process_group, layer.path = correction, process_group, name
        if statistics is not None:
            layer.prepare(statistics)
    return model


def revert(model: Model) -> Model:
    """Turn every weighted layer of a model back into the plain layer that it was.

    The inverse of `convert`, for inference, fusing and export: outputs in eval mode are
    identical. In training a reverted model knows no weights. It works in place as well; to
    go on training, revert a ``copy.deepcopy``.

    Parameters
    ----------
    model
        Any module; it may be a weighted layer itself.

    Returns
    -------
    nn.Module
        The model.

    Raises
    ------
    ValueError
        For classes derived from the weighted layers. Nothing is changed then.

    Examples
    --------
    >>> from wbn.conversion import revert
    >>> from wbn.layers import WeightedBatchNorm1d
    >>> type(revert(WeightedBatchNorm1d(2)))
    <class 'torch.nn.modules.batchnorm.BatchNorm1d'>
    """
    weighted = {n[0]: layer for layer, n in _names(model, WeightedBatchNorm).items()}
    for _, layer in _change_class(weighted, _PLAIN.get):
        for own in ("correction", "process_group", "path", "_calls", "class_momentum"):
            vars(layer).pop(own, None)
        for buffer in ClassAveragedBatchNorm.BUFFERS:
            layer._buffers.pop(buffer, None)
    return model


def register(plain: type[nn.Module], after: After) -> None:
    """Let `convert` take a class of batch norm that has a ``forward`` of its own.

    Parameters
    ----------
    plain
        A class derived from ``nn.BatchNorm1d/2d/3d`` that normalizes its input as these do.
    after
        What it does then: a function of the layer and its normalized input that returns the
        output.

    Examples
    --------
    >>> import torch
    >>> from torch import nn
    >>> from wbn.conversion import convert, register
    >>> class NormReLU(nn.BatchNorm1d):
    ...     def forward(self, x):
    ...         return super().forward(x).relu()
    >>> register(NormReLU, lambda layer, y: y.relu())
    >>> layer = convert(NormReLU(1, eps=0.0))
    >>> layer(torch.tensor([[0.0], [1.0]]), torch.tensor([1.0, 3.0])).flatten()
    tensor([0.0000, 0.5774], grad_fn=<ViewBackward0>)
    """
    if plain in _TORCH or not issubclass(plain, tuple(_TORCH)):
        raise ValueError(
            f"{plain.__name__} is not derived from {', '.join(c.__name__ for c in _TORCH)}: "
            "register classes that are"
        )
    _AFTER[plain] = after
    _WEIGHTED.pop(plain, None)


def _weighted(plain: Any) -> type | None:
    """The weighted counterpart of a class, made if need be, or None."""
    name = f"{plain.__module__}.{plain.__qualname__}"
    after = _AFTER.get(plain) or _AFTER_BY_NAME.get(name)
    base = next((w for p, w in _TORCH.items() if issubclass(plain, p)), None)
    if plain not in _WEIGHTED and base and (after or plain.forward is _BatchNorm.forward):
        methods: dict[str, Any] = {"__reduce_ex__": _reduce}
        if after:
            methods["_forward"] = lambda layer, x, w: after(
                layer, WeightedBatchNorm._forward(layer, x, w)
            )
        weighted = type(f"Weighted{plain.__name__}", (base, plain), methods)
        _WEIGHTED[plain], _PLAIN[weighted] = weighted, plain
    return _WEIGHTED.get(plain)


def _reduce(layer: Any, protocol: int) -> tuple:
    """How to pickle a layer whose class was made here: by the class that it was made for."""
    return _rebuild, (_PLAIN[type(layer)],), layer.__getstate__()


def _rebuild(plain: type) -> nn.Module:
    weighted: Any = _weighted(plain)
    if weighted is None:
        raise ValueError(
            f"{plain.__name__} has no weighted counterpart here: call wbn.register for it before "
            "loading, as before saving"
        )
    return weighted.__new__(weighted)


def _names(model: nn.Module, kind: type[nn.Module]) -> dict[nn.Module, list[str]]:
    """Layers of a kind, with all the names that each has."""
    names: dict[nn.Module, list[str]] = {}
    for name, module in model.named_modules(remove_duplicate=False):
        if isinstance(module, kind):
            names.setdefault(module, []).append(name)
    return names


def _chosen(names: Mapping[nn.Module, list[str]], which: Which, argument: str) -> set[nn.Module]:
    if callable(which):
        return {layer for layer, own in names.items() if any(which(name, layer) for name in own)}
    chosen: set[nn.Module] = set()
    for pattern in [which] if isinstance(which, str) else which:
        found = {
            layer
            for layer, own in names.items()
            if any(fnmatchcase(name, pattern) or name.startswith(f"{pattern}.") for name in own)
        }
        if not found:
            known = ", ".join(repr(own[0]) for own in names.values())
            raise ValueError(f"{argument}: no batch norm is called {pattern!r}, only {known}")
        chosen |= found
    return chosen


def _change_class(
    modules: Mapping[str, nn.Module], counterpart: Callable[[type], type | None]
) -> Iterable[tuple[str, Any]]:
    # A parametrized module has a class of its own, derived from the original one.
    parametrized = {n: parametrize.is_parametrized(module) for n, module in modules.items()}
    targets = {}
    for name, module in modules.items():
        cls = type(module).__base__ if parametrized[name] else type(module)
        targets[name] = counterpart(cls)
        if targets[name] is None:
            raise ValueError(
                f"layer {name!r} is a {cls.__name__}, which has no counterpart: run a batch "
                "through lazy layers first, give convert the process_group instead of using "
                "SyncBatchNorm, say what other classes do with wbn.register, or leave the layer "
                f"as it is with exclude={name!r}"
            )
    for name, module in modules.items():
        target = targets[name]
        if parametrized[name]:
            target = type(f"Parametrized{target.__name__}", (target,), dict(vars(type(module))))
        module.__class__ = target
    return modules.items()
