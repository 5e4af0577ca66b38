"""What a layer remembers, for activation checkpointing, which computes its batch again."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from wbn.checks import Correction
from wbn.normalization import checked_moments

LOST = (
    "a checkpoint computes a batch again in the backward pass, but the weights of its "
    "sample_weights are gone, and the layer has seen another batch since: give them to the "
    "checkpoint, with use_reentrant=False and context_fn=lambda: (nullcontext(), "
    "wbn.sample_weights(w))"
)


class Call(NamedTuple):
    """The weights that a context had for a batch, and the moments that they gave."""

    sample_weight: Tensor | None
    mean: Tensor
    var: Tensor

    def gave(self, mean: Tensor, var: Tensor) -> bool:
        """Whether these are its moments, but for rounding."""
        return not ((mean - self.mean).square() > 1e-6 * (var + self.var)).any()


@torch.no_grad()
def check_recalled(
    x: Tensor, mean: Tensor, var: Tensor, calls: tuple[Call, ...], correction: Correction
) -> None:
    """Refuse a batch that is not surely the one of the last of the calls.

    Parameters
    ----------
    x, mean, var
        The batch, and its moments with the weights of the last call. It is another batch if they
        differ from those of then.
    calls
        The last one, and maybe the one before: the same batch with other weights, if these give
        what they gave then. (Processes that share a batch have but one.)
    correction
        Of the layer.
    """
    *before, last = calls
    if not last.gave(mean, var) or any(_fits(x, call, last, correction) for call in before):
        raise ValueError(LOST)


def _fits(x: Tensor, call: Call, last: Call, correction: Correction) -> bool:
    """Whether x may be the batch of an earlier call, and would then have other moments."""
    try:
        m, stored, *_ = checked_moments(x, call.sample_weight, correction)
    except ValueError:  # weights of another shape
        return False
    moments = m.mean.flatten(), stored.flatten()
    return call.gave(*moments) and not last.gave(*moments)


def in_backward_pass() -> bool:
    """Whether autograd is at work, and what is called is called by it."""
    return not torch.compiler.is_compiling() and torch._C._current_graph_task_id() != -1
