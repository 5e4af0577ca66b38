"""The statistics that networks are evaluated with, and how well they do."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from wbn.experiments.block import Block
from wbn.experiments.network import Network, Statistics
from wbn.experiments.protocol import Protocol


class InferenceStatistics:
    """The statistics used at inference, in the ways of `Protocol.inference`."""

    def __init__(self, protocol: Protocol, network: Network) -> None:
        self.network, self.momentum = network, protocol.momentum
        self.wanted = set(protocol.inference)
        self.moving = [
            None
            if layer.weight is None
            else (torch.zeros_like(layer.bias), torch.ones_like(layer.bias))
            for layer in network.layers
        ]

    def start_epoch(self) -> None:
        """Forget the batches of the epoch before."""
        self.batches = []

    def add(self, statistics: Statistics) -> None:
        """Take in what a mini-batch showed while training."""
        if "last_epoch" in self.wanted:
            self.batches.append(statistics)
        if "moving_average" in self.wanted:
            for running, batch in zip(self.moving, statistics, strict=True):
                if running is not None:
                    for a, b in zip(running, batch, strict=True):
                        a.lerp_(b, self.momentum)

    def get(self, inference: str, data: Block, batches: list[Tensor]) -> Statistics:
        """Mean and variance of each layer, shape (S, 1, C), for one kind of inference."""
        if inference == "moving_average":
            return self.moving
        if inference == "last_epoch":
            return _average(self.batches)
        if inference == "evaluation_set":
            self.network.forward(data.eval_images, None)
            return self.network.statistics()
        if inference == "pooled":
            batches = [torch.arange(data.rows.shape[1]).expand_as(data.rows)]
        return _average([self._pass(data, index) for index in batches])

    def _pass(self, data: Block, index: Tensor) -> Statistics:
        x, _, w = data.batch(index)
        self.network.forward(x, w)
        return self.network.statistics()


def _average(batches: list[Statistics]) -> Statistics:
    layers = zip(*batches, strict=True)
    return [
        None if layer[0] is None else tuple(sum(m) / len(layer) for m in zip(*layer, strict=True))
        for layer in layers
    ]


def evaluate(logits: Tensor, data: Block) -> dict[str, np.ndarray]:
    """Accuracies and average precision of each replica, from logits (S, T, K)."""
    right = (logits.argmax(-1) == data.eval_labels).double()
    members = torch.stack([data.eval_labels == k for k in range(data.classes)]).double()
    by_class = (members * right).sum(-1) / members.sum(-1)
    score = logits.log_softmax(-1)[..., data.minority]
    positive = data.eval_labels == data.minority
    precision = [average_precision(s, p) for s, p in zip(score, positive, strict=True)]
    scores = {
        "accuracy_majority": by_class[1 - data.minority].numpy(),
        "accuracy_minority": by_class[data.minority].numpy(),
        "accuracy_overall": right.mean(-1).numpy(),
        "accuracy_balanced": by_class.mean(0).numpy(),
    }
    return scores | {"average_precision": np.array(precision)}


def average_precision(score: Tensor, positive: Tensor) -> float:
    r"""Average precision :math:`\sum_k (R_k - R_{k-1}) P_k` over the distinct scores.

    :math:`P_k` and :math:`R_k` are precision and recall when everything that scores at least
    the k-th largest value counts as positive.

    Examples
    --------
    >>> average_precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]))
    0.8333333333333333
    """
    score, order = score.sort(descending=True)
    last_of_equals = torch.cat([score[1:] != score[:-1], torch.tensor([True])])
    found = positive[order].cumsum(0)[last_of_equals].double()
    taken = torch.arange(1, len(score) + 1)[last_of_equals]
    return float((found.diff(prepend=found.new_zeros(1)) * found / taken).sum() / found[-1])
