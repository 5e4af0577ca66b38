"""A real mini-batch for the book's recurring picture."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from wbn.experiments.block import cut_batches
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import Trainer


class ExampleBatch(NamedTuple):
    """Hidden signals of a mini-batch before normalization."""

    signals: Tensor  # (N, hidden units)
    sample_weight: Tensor  # (N,)
    minority: Tensor  # (N,), whether a sample belongs to the minority class
    unit: int  # the one in which the minority lies farthest from the mean


def example_batch(experiment: str = "i", seed: int = 0) -> ExampleBatch:
    """The first mini-batch with one minority sample, seen by an untrained hidden layer.

    Examples
    --------
    >>> batch = example_batch()
    >>> batch.signals.shape, int(batch.minority.sum())
    (torch.Size([100, 200]), 1)
    """
    protocol = Protocol.paper(experiment, "wlf_wbn").resolved()
    trainer = Trainer(protocol, [seed])
    for index in cut_batches(next(trainer.orders), protocol):
        images, labels, weights = trainer.data.batch(index)
        minority = labels[0] == trainer.data.minority
        if minority.sum() == 1:
            break
    signals = torch.bmm(images, trainer.network.layers[0].linear.mT)[0]
    distance = (signals[minority][0] - signals.mean(0)).abs() / signals.std(0)
    return ExampleBatch(signals, weights[0, :, 0], minority, int(distance.argmax()))
