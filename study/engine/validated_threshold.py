"""A threshold between two classes that validation inside the training set chooses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from study.engine.diagnosis import minority_signal
from study.engine.protocol import FOLDS, Protocol

if TYPE_CHECKING:
    from study.engine.training import Trainer


def best_threshold(signal: Tensor, minority: Tensor) -> float:
    r"""Middle of the best place for a threshold, :math:`\arg\max_t (P(s > t | 1) + P(s < t | 0))`.

    With the shares of the minority (1) above and of the majority (0) below it: where balanced
    accuracy is highest, the first such place of several.

    Parameters
    ----------
    signal, minority
        Of images, and which of them belong to the minority, both of shape (T,).

    Examples
    --------
    >>> signal = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> best_threshold(signal, torch.tensor([False, False, True, True]))
    2.5
    """
    signal, order = signal.double().sort()
    few, many = minority.sum(), (~minority).sum()
    # In whole numbers, few * many times the gain, so that equal ones are equal.
    gain = torch.where(minority[order], -many, few).cumsum(0)
    gain[:-1][signal[1:] == signal[:-1]] = -(len(signal) ** 2)  # no threshold fits between equals
    place = int(gain[:-1].argmax())
    return float(signal[place] + signal[place + 1]) / 2


class ValidatedThreshold:
    """The threshold of each seed, from networks that each leave a fifth of the training set out.

    Parameters
    ----------
    protocol
        Resolved, that of the networks whose threshold is wanted.
    seeds
        Theirs.
    trainer
        Makes a `Trainer` of a protocol and seeds.
    """

    def __init__(
        self, protocol: Protocol, seeds: list[int], trainer: Callable[..., Trainer]
    ) -> None:
        inner = replace(
            protocol, evaluate_on="validation", inference=("batch_average",), diagnosis="none"
        )
        self.folds = [trainer(replace(inner, fold=fold), seeds) for fold in range(FOLDS)]
        self.epoch = 0

    def at(self, epoch: int) -> Tensor:
        """What to subtract from the signal after this many epochs, shape (S,)."""
        for _ in range(self.epoch, epoch):
            for fold in self.folds:
                fold.train_epoch()
        self.epoch = max(self.epoch, epoch)
        held_out = [
            (minority_signal(fold.logits("batch_average"), fold.data), fold.data)
            for fold in self.folds
        ]
        signal = torch.cat([of_fold for of_fold, _ in held_out], 1)
        minority = torch.cat([data.eval_labels == data.minority for _, data in held_out], 1)
        pairs = zip(signal, minority, strict=True)
        return torch.tensor([best_threshold(s, m) for s, m in pairs], dtype=signal.dtype)
