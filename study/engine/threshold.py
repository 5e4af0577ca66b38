"""The threshold between two classes: where it lies, and where validation would put it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from study.engine.protocol import FOLDS, Protocol
from study.engine.seed_block import Block

if TYPE_CHECKING:
    from study.engine.training import Trainer


def minority_signal(logits: Tensor, data: Block) -> Tensor:
    """Logit of the minority minus that of the majority, (S, T); its sign decides."""
    return logits[..., data.minority] - logits[..., 1 - data.minority]


def relative_threshold(signal: Tensor, minority: Tensor) -> tuple[Tensor, Tensor]:
    r"""Relative threshold and separation, :math:`\tau = -m_0 / (m_1 - m_0)` and :math:`m_1 - m_0`.

    With :math:`m_0` and :math:`m_1` the means of the signal over the training images of the
    majority and the minority: where zero, the threshold, lies between the two.

    Parameters
    ----------
    signal, minority
        Of training images, and which of them belong to the minority, both of shape (S, N).

    Examples
    --------
    >>> relative_threshold(torch.tensor([[-3.0, -1.0, 6.0]]), torch.tensor([[False, False, True]]))
    (tensor([0.2500]), tensor([8.]))
    """
    m_0, m_1 = (
        torch.stack([values[mask].mean() for values, mask in zip(signal, masks, strict=True)])
        for masks in (~minority, minority)
    )
    return -m_0 / (m_1 - m_0), m_1 - m_0


def best_balanced_accuracy(signal: Tensor, minority: Tensor) -> float:
    """Balanced accuracy at the best threshold of all, a diagnosis that uses the labels.

    Parameters
    ----------
    signal, minority
        Of evaluated images, and which of them belong to the minority, both of shape (T,).

    Examples
    --------
    >>> signal = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> best_balanced_accuracy(signal, torch.tensor([False, True, False, True]))
    0.75
    """
    signal, order = signal.sort()
    last_of_equals = torch.cat([signal[1:] != signal[:-1], torch.tensor([True])])
    below = minority[order].double().cumsum(0)[last_of_equals]
    taken = torch.arange(1, len(signal) + 1)[last_of_equals]
    few = minority.sum()
    recalls = (1 - below / few) + (taken - below) / (len(signal) - few)
    return max(0.5, float(recalls.max()) / 2)


def diagnose(evaluated: Tensor, trained: Tensor, data: Block) -> dict[str, np.ndarray]:
    """Columns of the diagnosis, from logits of the evaluated set and of the training set.

    `relative_threshold` and `separation` of the training images, and the balanced
    `accuracy_best_threshold` of the evaluated ones.
    """
    signal, minority = minority_signal(evaluated, data), data.eval_labels == data.minority
    tau, separation = relative_threshold(
        minority_signal(trained, data), data.labels == data.minority
    )
    best = [best_balanced_accuracy(s, m) for s, m in zip(signal, minority, strict=True)]
    return {
        "accuracy_best_threshold": np.array(best),
        "relative_threshold": tau.double().numpy(),
        "separation": separation.double().numpy(),
    }


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
