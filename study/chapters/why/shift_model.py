"""What the counts of mini-batches predict: where the output's shift and gain go, and the threshold.

A model with two numbers. It has no images: two classes without spread stand where a normalization
puts them by their shares of the weight alone.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import hypergeom
from torch import Tensor

from study.engine.protocol import Protocol
from study.engine.seed_block import Block, batch_orders, cut_batches


def positions(share: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Where normalization puts two classes, :math:`-\sqrt{q / (1 - q)}, \sqrt{(1 - q) / q}`.

    The classes have no spread, and :math:`q` is the second one's share of the weight. Alone in a
    batch, the first one stands at 0; the other's place then means nothing, and is 0 as well.

    Examples
    --------
    >>> [p.round(1).tolist() for p in positions(np.array([0.0, 0.01, 0.5]))]
    [[-0.0, -0.1, -1.0], [0.0, 9.9, 1.0]]
    """
    there = np.where(share > 0, share, 1.0)
    return -np.sqrt(share / (1 - share)), np.sqrt((1 - there) / there)


def lone_positions(counts: tuple[int, int], batch_size: int, most: int = 3) -> pd.DataFrame:
    """How far out the minority stands at the most, by its number in a mini-batch.

    With standard BN, and with weighted BN and inverse-frequency weights.

    Examples
    --------
    >>> lone_positions((6265, 39), 100, most=1).round(2).to_dict("list")
    {'standard': [9.95], 'weighted': [0.79]}
    """
    k = pd.RangeIndex(1, most + 1, name="minority samples")
    heavy = _share(k.to_numpy(), counts, batch_size)
    standard, weighted = positions(k.to_numpy() / batch_size)[1], positions(heavy)[1]
    return pd.DataFrame({"standard": standard, "weighted": weighted}, k)


def _share(k: np.ndarray, counts: tuple[int, int], batch_size: int) -> np.ndarray:
    """The minority's share of the weight of a mini-batch, with inverse-frequency weights."""
    majority, minority = counts
    weight = k * majority / minority
    return weight / (weight + batch_size - k)


def slopes(
    shift: np.ndarray, gain: np.ndarray, share: np.ndarray, heavy: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    r"""Derivatives by b and G of :math:`q' \ell(-b - G p_1) + (1 - q') \ell(b + G p_0)`.

    The weighted loss of a mini-batch, with :math:`\ell(x) = \log(1 + e^x)`. The classes are at
    :math:`p_0` and :math:`p_1` (`positions`) by the minority's share of the weight in BN,
    ``share``; its share in the loss is :math:`q'`, ``heavy``.
    """
    first, second = positions(share)
    pull, push = heavy * expit(-shift - gain * second), (1 - heavy) * expit(shift + gain * first)
    return push - pull, push * first - pull * second


@cache
def predicted(protocol: Protocol, seeds: range) -> pd.DataFrame:
    """Shift and gain after each epoch, from the counts of the mini-batches that a seed trains on.

    Adam follows `slopes` for two shifts and two gains, as it does in the network, from the same
    start, at the same rates, through the same mini-batches. The two shifts are opposite and the
    two gains equal all the time, so one of each is enough.

    Returns
    -------
    pandas.DataFrame
        Columns seed, epoch, shift and gain, the difference of the two shifts, minority minus
        majority, and the sum of the two gains.
    """
    p = protocol.resolved()
    data = Block(p, list(seeds))
    orders = batch_orders(p, list(seeds), data.labels)
    half = np.stack([np.full(len(seeds), p.output_shift_start / 2), np.ones(len(seeds))])
    rates = p.learning_rate * np.array([[p.output_shift_rate], [1.0]])
    adam, tables = _Adam(p), []
    for epoch in range(1, p.epochs + 1):
        for index in cut_batches(next(orders), p):
            share, heavy, size = _shares(p, data, index)
            half = half - rates * adam.step(size * np.stack(slopes(*(2 * half), share, heavy)))
        now = dict(zip(("shift", "gain"), 2 * half, strict=True))
        tables.append(pd.DataFrame({"seed": list(seeds), "epoch": epoch, **now}))
    return pd.concat(tables, ignore_index=True)


class _Adam:
    """Adam's steps in units of the learning rate (Kingma and Ba 2015)."""

    def __init__(self, protocol: Protocol) -> None:
        (self.beta_1, self.beta_2), self.eps = protocol.adam_betas, protocol.adam_eps
        self.first = self.second = 0.0
        self.time = 0

    def step(self, gradient: np.ndarray) -> np.ndarray:
        self.time += 1
        self.first = self.beta_1 * self.first + (1 - self.beta_1) * gradient
        self.second = self.beta_2 * self.second + (1 - self.beta_2) * gradient**2
        first = self.first / (1 - self.beta_1**self.time)
        return first / (np.sqrt(self.second / (1 - self.beta_2**self.time)) + self.eps)


def _shares(p: Protocol, data: Block, index: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The minority's share of the weight in output BN and in the loss, and what the loss weighs."""
    minority = (data.labels.gather(1, index) == data.minority).numpy()
    weights = data.weights.squeeze(-1).gather(1, index).double().numpy()
    mean = weights.mean(1)
    heavy = (weights * minority).mean(1) / mean
    share = heavy if p.output_norm == "weighted" else minority.mean(1)
    if p.statistics == "running_sums":
        share = np.full_like(share, 0.5)
    return share, heavy, mean / (mean if data.normalizer == "batch" else data.normalizer)


def equilibrium(counts: tuple[int, int], batch_size: int, gain: float, weighted: bool) -> float:
    r"""Shift at which the expected slope vanishes, for a given gain.

    .. math:: \sum_k P(k) \left[ (1 - q'_k) \sigma(b + G p_{0k}) - q'_k \sigma(-b - G p_{1k})
        \right] = 0

    over the number k of minority samples in a mini-batch drawn without replacement, each
    mini-batch normalized by its own weight in the loss.

    Parameters
    ----------
    counts
        Size of the majority and of the minority.
    batch_size, gain
        n and G.
    weighted
        Whether output BN has the weights of the loss, inverse frequencies, or none.

    Examples
    --------
    >>> round(equilibrium((6265, 39), 100, gain=3.0, weighted=True), 2)
    -1.42
    """
    k = np.arange(min(counts[1], batch_size - 1) + 1)
    chance = hypergeom.pmf(k, sum(counts), counts[1], batch_size)
    heavy = _share(k, counts, batch_size)
    share = heavy if weighted else k / batch_size
    return float(brentq(lambda shift: chance @ slopes(shift, gain, share, heavy)[0], -1e3, 1e3))


def threshold(shift: float, gain: float, share: float = 0.5) -> float:
    r"""Relative threshold :math:`\tau = q - \frac{b}{G} \sqrt{q (1 - q)}` with pooled statistics.

    Without spread within the classes, and q the minority's share of all weight: one half with
    weighted BN and inverse-frequency weights.

    Examples
    --------
    >>> threshold(shift=-1.0, gain=4.0)
    0.625
    """
    return share - shift / gain * math.sqrt(share * (1 - share))
