"""The weights of the current mini-batch, for layers and losses deep inside a model."""

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Resize = Literal["area", "nearest"] | Callable[[Tensor, tuple[int, ...]], Tensor]


class _Given:
    """The weights of a context, how to bring them to other shapes, and whether anyone asked."""

    def __init__(self, sample_weight: Tensor | None, resize: Resize | None) -> None:
        self.sample_weight, self.resize, self.used = sample_weight, resize, False


_given: ContextVar[_Given | None] = ContextVar("wbn_sample_weight", default=None)
_traced: list[_Given] = []  # contexts inside compiled code, which can't set a context variable


@contextmanager
def sample_weights(sample_weight: Tensor | None, resize: Resize | None = None) -> Iterator[None]:
    r"""Give the weights :math:`w_\mu` to every weighted layer and loss called inside.

    A weight that is passed as an argument wins over the context. Contexts nest: the inner
    one holds until it is left, by an error or not, and ``None`` means no weights. The
    weights are kept in a context variable, so that threads and asynchronous tasks don't
    see each other's; a new thread starts without weights. The backward pass may be outside,
    also with activation checkpointing, which runs layers again: they remember their weights.
    It works around compiled code and inside of it.

    Parameters
    ----------
    sample_weight
        Weights of shape (N,) or (N, \*positions), or None.
    resize
        How weights that don't fit a layer or loss, because it sees (N, \*positions) at
        another resolution or another N, are brought to its shape; by default that is an error.

        - ``"area"`` gives a position the mean weight of what it covers, and a layer after
          global pooling, of shape (N, C), the mean of the sample. Of a mask it is the share
          that is not masked.
        - ``"nearest"`` gives output i of L the weight at :math:`\lfloor i L_w / L \rfloor`, the
          center of a strided convolution's window. A mask stays a mask.
        - a function of the weights and the shape that is wanted, (N, \*positions), which
          returns weights of that shape or of (N,). For T frames a sample:
          ``lambda w, shape: w.repeat_interleave(T)``.

    Warns
    -----
    UserWarning
        When it is left and no weighted layer or loss asked for the weights: training goes on
        without them, which is hardly meant. Layers in eval mode count as having asked.

    Examples
    --------
    >>> import torch
    >>> from wbn.context import current_sample_weight, sample_weights
    >>> with sample_weights(torch.tensor([1.0, 3.0])):
    ...     current_sample_weight()
    tensor([1., 3.])
    >>> current_sample_weight() is None
    True
    >>> with sample_weights(torch.tensor([[1.0, 3.0, 0.0, 0.0]]), resize="area"):
    ...     current_sample_weight((1, 2))
    tensor([[2., 0.]])
    """
    if isinstance(resize, str) and resize not in ("area", "nearest"):
        raise ValueError(f"resize is {resize!r}; choose 'area', 'nearest' or a function")
    given = _Given(sample_weight, resize)
    if torch.compiler.is_compiling():
        _traced.append(given)
        try:
            yield
        finally:
            _traced.pop()
        return
    token = _given.set(given)
    try:
        yield
    finally:
        _given.reset(token)
    if sample_weight is not None and not given.used:
        warnings.warn(
            "no weighted layer or loss asked for the weights of sample_weights: turn the model's "
            "batch norm into weighted layers with wbn.convert, and call the model and "
            "wbn.weighted_cross_entropy or wbn.weighted_mean inside the context, in its thread",
            stacklevel=3,
        )


def current_sample_weight(shape: tuple[int, ...] | None = None) -> Tensor | None:
    r"""Weights :math:`w_\mu` of the innermost ``sample_weights`` context, None outside.

    Parameters
    ----------
    shape
        The (N, \*positions) that they are for. Weights of another shape than this and (N,) are
        brought to it if the context has a ``resize``, and returned as they are otherwise.

    Examples
    --------
    >>> from wbn.context import current_sample_weight
    >>> current_sample_weight() is None
    True
    """
    given = _traced[-1] if _traced else _given.get()
    if given is None:
        return None
    given.used = True
    w, resize = given.sample_weight, given.resize
    if (
        resize is None
        or shape is None
        or not isinstance(w, Tensor)
        or w.shape in (shape[:1], shape)
    ):
        return w
    return _resized(w, shape, resize)


def _resized(w: Tensor, shape: tuple[int, ...], resize: Resize) -> Tensor:
    """Weights for the shape, or as they are where they have nothing to do with it."""
    if callable(resize):
        return resize(w, shape)
    positions, numbers = shape[1:], w.is_floating_point() or w.dtype == torch.bool
    if w.dim() < 2 or len(w) != shape[0] or not numbers:
        return w
    w = w.to(torch.promote_types(w.dtype, torch.float32))
    if not positions and resize == "area":
        return w.flatten(1).mean(1)
    if len(positions) != w.dim() - 1:
        return w
    return F.interpolate(w.unsqueeze(1), positions, mode=resize).squeeze(1)
