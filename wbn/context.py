"""The weights of the current mini-batch, for layers and losses deep inside a model."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor

_sample_weight: ContextVar[Tensor | None] = ContextVar("wbn_sample_weight", default=None)


@contextmanager
def sample_weights(sample_weight: Tensor | None) -> Iterator[None]:
    r"""Give the weights :math:`w_\mu` to every weighted layer and loss called inside.

    A weight that is passed as an argument wins over the context. Contexts nest: the inner
    one holds until it is left, by an error or not, and ``None`` means no weights. The
    weights are kept in a context variable, so that threads and asynchronous tasks don't
    see each other's; a new thread starts without weights. Activation checkpointing runs
    layers again in the backward pass, so tell it the weights as well:
    ``checkpoint(..., context_fn=lambda: (nullcontext(), sample_weights(w)))``.

    Parameters
    ----------
    sample_weight
        Weights of shape (N,) or (N, \*positions), or None.

    Examples
    --------
    >>> import torch
    >>> from wbn.context import current_sample_weight, sample_weights
    >>> with sample_weights(torch.tensor([1.0, 3.0])):
    ...     current_sample_weight()
    tensor([1., 3.])
    >>> current_sample_weight() is None
    True
    """
    token = _sample_weight.set(sample_weight)
    try:
        yield
    finally:
        _sample_weight.reset(token)


def current_sample_weight() -> Tensor | None:
    r"""Weights :math:`w_\mu` of the innermost ``sample_weights`` context, None outside.

    Examples
    --------
    >>> from wbn.context import current_sample_weight
    >>> current_sample_weight() is None
    True
    """
    return _sample_weight.get()
