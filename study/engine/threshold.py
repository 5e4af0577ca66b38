"""The threshold between two classes: where it lies, and where validation would place it."""

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
    """Logit of the minority minus logit of the majority, (S, T); the minority wins above zero."""
    return logits[..., data.minority] - logits[..., 1 - data.minority]


def relative_threshold(signal: Tensor, minority: Tensor) -> tuple[Tensor, Tensor]:
    r"""Relative threshold and separation, :math:`\tau = -m_0 / (m_1 - m_0)` and :math:`m_1 - m_0`.

    :math:`m_0` and :math:`m_1` are the means of the signal over the training images of the
    majority and of the minority. The threshold is where the signal is zero; relative to these
    means it is 0 at the majority's and 1 at the minority's.

    Parameters
    ----------
    signal, minority
        Signal of training images, and whether they belong to the minority, both of shape (S, N).

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
    """Balanced accuracy at the best of all thresholds. It needs the labels of evaluated images.

    Parameters
    ----------
    signal, minority
        Signal of evaluated images, and whether they belong to the minority, both of shape (T,).

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

    `relative_threshold` and `separation` come from training images. `accuracy_best_threshold` is
    the balanced accuracy of evaluated images at their best threshold.
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
    r"""The best threshold t of a signal s, :math:`\arg\max_t (P(s > t | 1) + P(s < t | 0))`.

    Balanced accuracy is highest there; 1 is the minority, 0 the majority. Candidates are the
    middles between neighboring values of s. The lowest one is taken if several are best.

    Parameters
    ----------
    signal, minority
        Signal of images, and whether they belong to the minority, both of shape (T,).

    Examples
    --------
    >>> signal = torch.tensor([1.0, 2.0, 3.0, 4.0])
    >>> best_threshold(signal, torch.tensor([False, False, True, True]))
    2.5
    """
    signal, order = signal.double().sort()
    few, many = minority.sum(), (~minority).sum()
    # The gain times few * many is a whole number, so that ties are exact.
    gain = torch.where(minority[order], -many, few).cumsum(0)
    gain[:-1][signal[1:] == signal[:-1]] = -(len(signal) ** 2)  # no threshold fits between equals
    place = int(gain[:-1].argmax())
    return float(signal[place] + signal[place + 1]) / 2


class ValidatedThreshold:
    """A threshold for each seed, chosen by five-fold validation inside the training set.

    Parameters
    ----------
    protocol
        Resolved protocol of the networks that need the threshold.
    seeds
        Seeds of these networks.
    trainer
        The class `Trainer`, which cannot be imported here since it uses this class.
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
        """The threshold of the signal after this many epochs, shape (S,)."""
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
