"""What a mini-batch lacks, how many samples it is worth, and a real one to look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from math import comb
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from study.engine.protocol import Protocol
from study.engine.seed_block import cut_batches
from study.engine.training import Trainer
from wbn.weights import class_balanced, effective_sample_size, per_sample


def lacks_class(counts: Sequence[int], batch_size: int) -> np.ndarray:
    r"""Probability :math:`\binom{N - N_k}{n} \big/ \binom{N}{n}` that a batch lacks class k.

    A batch of n is drawn without replacement, as a full batch of a reshuffled epoch is.

    Parameters
    ----------
    counts
        Class sizes :math:`N_k`, which sum to N.
    batch_size
        n.

    Examples
    --------
    >>> lacks_class([3, 1], batch_size=2).tolist()
    [0.0, 0.5]
    """
    total = sum(counts)
    return np.array([comb(total - c, batch_size) / comb(total, batch_size) for c in counts])


def lacks_some_class(counts: Sequence[int], batch_size: int) -> float:
    r"""Probability that a batch lacks one class or more, by inclusion and exclusion,

    .. math:: 1 - \binom{N}{n}^{-1} \sum_{A} (-1)^{|A|} \binom{N - \sum_{k \in A} N_k}{n},

    over all sets A of classes, in whole numbers and hence exact.

    Parameters
    ----------
    counts, batch_size
        As in `lacks_class`.

    Examples
    --------
    >>> lacks_some_class([2, 1, 1], batch_size=3)
    0.5
    """
    total = sum(counts)
    complete = sum(
        (-1) ** size * comb(total - sum(absent), batch_size)
        for size in range(len(counts) + 1)
        for absent in combinations(counts, size)
    )
    return 1 - complete / comb(total, batch_size)


def what_batches_have(sizes: Mapping[str, Sequence[int]], batch_size: int) -> pd.DataFrame:
    """What a batch lacks, and how many samples it is worth with class-balanced weights.

    Parameters
    ----------
    sizes
        For each data set its class sizes.
    batch_size
        Of a full batch.

    Returns
    -------
    pandas.DataFrame
        A row for each data set: the probability that a batch lacks the smallest class and that
        it lacks some class, the mean number of classes that it lacks, and its worth, its share
        of the training set's effective size, with beta = 0.999 and with beta = 1.

    Examples
    --------
    >>> what_batches_have({"two": [3, 1]}, batch_size=2).loc["two"].round(2).tolist()
    [0.5, 0.5, 0.5, 1.5, 1.5]
    """
    rows = {}
    for name, counts in sizes.items():
        lacks, labels = lacks_class(counts, batch_size), np.arange(len(counts)).repeat(counts)
        weight = {b: per_sample(class_balanced(counts, b), labels) for b in (0.999, 1)}
        worth = {b: effective_sample_size(w).item() / len(labels) for b, w in weight.items()}
        rows[name] = {
            "no smallest": lacks.max(),
            "incomplete": lacks_some_class(counts, batch_size),
            "absent": lacks.sum(),
            **{f"worth, {beta}": batch_size * share for beta, share in worth.items()},
        }
    return pd.DataFrame.from_dict(rows, "index")


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
