"""Whole models turned to weighted batch normalization and back."""

from collections.abc import Mapping
from typing import Any, TypeVar

from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import parametrize

from wbn.checks import Correction, check_correction
from wbn.layers import (
    WeightedBatchNorm,
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
)

Model = TypeVar("Model", bound=nn.Module)

_WEIGHTED: dict[type, type] = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
}
_PLAIN = {weighted: plain for plain, weighted in _WEIGHTED.items()}


def convert(model: Model, correction: Correction = "none") -> Model:
    """Turn every ``nn.BatchNorm1d/2d/3d`` of a model into its weighted counterpart.

    Without weights, and with the default correction, it remains the model that it was.

    The layers change their class in place and stay the same objects otherwise: parameters
    (an optimizer keeps working), buffers, device, dtype, training flag, hooks,
    parametrizations and sharing are as before. Layers that are weighted already are left
    alone, with their correction. To keep the original, convert a ``copy.deepcopy``.

    Parameters
    ----------
    model
        Any module; it may be a batch norm layer itself.
    correction
        The correction of the layers, see `WeightedBatchNorm1d`.

    Returns
    -------
    nn.Module
        The model.

    Raises
    ------
    ValueError
        For a kind of batch norm that has no counterpart: lazy layers before their first
        input, ``SyncBatchNorm``, classes derived from torch's. Nothing is changed then.

    Examples
    --------
    >>> from torch import nn
    >>> from wbn.conversion import convert
    >>> convert(nn.Sequential(nn.Linear(4, 2, bias=False), nn.BatchNorm1d(2)))[1].correction
    'none'
    """
    check_correction(correction)
    plain = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, _BatchNorm) and not isinstance(module, WeightedBatchNorm)
    }
    for module in _change_class(plain, _WEIGHTED):
        module.correction = correction
    return model


def revert(model: Model) -> Model:
    """Turn every weighted layer of a model back into plain ``nn.BatchNorm1d/2d/3d``.

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
    weighted = {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, WeightedBatchNorm)
    }
    for module in _change_class(weighted, _PLAIN):
        del module.correction
    return model


def _change_class(modules: Mapping[str, nn.Module], counterpart: dict[type, type]) -> list[Any]:
    # A parametrized module has a class of its own, derived from the original one.
    parametrized = {n: parametrize.is_parametrized(module) for n, module in modules.items()}
    classes = {
        n: type(module).__base__ if parametrized[n] else type(module)
        for n, module in modules.items()
    }
    for name, cls in classes.items():
        if cls not in counterpart:
            raise ValueError(
                f"layer {name!r} is a {cls.__name__}, and only "
                f"{', '.join(c.__name__ for c in counterpart)} have a counterpart: run a batch "
                "through lazy layers first; replace other layers by one of these, or treat the "
                "other parts of the model one by one"
            )
    for name, module in modules.items():
        target = counterpart[classes[name]]
        if parametrized[name]:
            target = type(f"Parametrized{target.__name__}", (target,), dict(vars(type(module))))
        module.__class__ = target
    return list(modules.values())
