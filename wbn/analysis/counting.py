"""What the counts of mini-batches predict: where the output's shift and gain go, and the threshold.

A model with two numbers. It has no images: two classes without spread stand where a normalization
puts them by their shares of the weight alone.
"""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import hypergeom
from torch import Tensor

from wbn.experiments.block import Block, batch_orders, cut_batches
from wbn.experiments.protocol import Protocol


def positions(share: Tensor) -> tuple[Tensor, Tensor]:
    r"""Where normalization puts two classes, :math:`-\sqrt{q / (1 - q)}, \sqrt{(1 - q) / q}`.

    The classes have no spread, and :math:`q` is the second one's share of the weight. Alone in a
    batch, the first one stands at 0; the other's place then means nothing, and is 0 as well.

    Examples
    --------
    >>> positions(torch.tensor([0.0, 0.01, 0.5]))
    (tensor([-0.0000, -0.1005, -1.0000]), tensor([0.0000, 9.9499, 1.0000]))
    """
    second = ((1 - share) / share).sqrt()
    return -(share / (1 - share)).sqrt(), torch.where(share > 0, second, torch.zeros_like(share))


def batch_loss(shift: Tensor, gain: Tensor, share: Tensor, heavy: Tensor) -> Tensor:
    r"""Weighted loss of a mini-batch, :math:`q' \ell(-b - G p_1) + (1 - q') \ell(b + G p_0)`.

    With :math:`\ell(x) = \log(1 + e^x)`, the classes at :math:`p_0` and :math:`p_1` (`positions`),
    their share of the weight in BN, ``share``, and in the loss, :math:`q'` or ``heavy``.
    """
    first, second = positions(share)
    softplus = torch.nn.functional.softplus
    return heavy * softplus(-shift - gain * second) + (1 - heavy) * softplus(shift + gain * first)


def predicted(protocol: Protocol, seeds: range) -> pd.DataFrame:
    """Shift and gain after each epoch, from the counts of the mini-batches that a seed trains on.

    Adam minimizes `batch_loss` over two shifts and two gains, as it does in the network, from the
    same start, at the same rates, through the same mini-batches.

    Returns
    -------
    pandas.DataFrame
        Columns seed, epoch, shift and gain, the difference of the two shifts, minority minus
        majority, and the sum of the two gains.
    """
    p = protocol.resolved()
    data = Block(p, list(seeds))
    orders, batches_of = batch_orders(p, list(seeds), data.labels), range(1, p.epochs + 1)
    start = torch.full((len(seeds),), p.output_shift_start / 2, dtype=torch.float64)
    shift, gain = start.requires_grad_(), torch.ones_like(start).requires_grad_()
    rates = [{"params": [gain]}, {"params": [shift], "lr": p.output_shift_rate * p.learning_rate}]
    optimizer = torch.optim.Adam(rates, lr=p.learning_rate, betas=p.adam_betas, eps=p.adam_eps)
    tables = []
    for epoch in batches_of:
        for index in cut_batches(next(orders), p):
            share, heavy, size = _shares(p, data, index)
            loss = size * batch_loss(2 * shift, 2 * gain, share, heavy)
            optimizer.zero_grad()
            loss.sum().backward()
            optimizer.step()
        now = {"shift": 2 * shift.detach().numpy(), "gain": 2 * gain.detach().numpy()}
        tables.append(pd.DataFrame({"seed": list(seeds), "epoch": epoch, **now}))
    return pd.concat(tables, ignore_index=True)


def _shares(p: Protocol, data: Block, index: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The minority's share of the weight in output BN and in the loss, and what the loss weighs."""
    minority = data.labels.gather(1, index) == data.minority
    weights = data.weights.squeeze(-1).gather(1, index).double()
    heavy = (weights * minority).sum(1) / weights.sum(1)
    share = heavy if p.output_norm == "weighted" else minority.double().mean(1)
    if p.statistics == "running_sums":
        share = torch.full_like(share, 0.5)
    normalizer = weights.mean(1) if data.normalizer == "batch" else data.normalizer
    return share, heavy, weights.mean(1) / normalizer


def equilibrium(counts: tuple[int, int], batch_size: int, gain: float, weighted: bool) -> float:
    r"""Shift at which the expected gradient vanishes, for a given gain.

    .. math:: \sum_k P(k) \left[ -q'_k \sigma(-b - G p_{1k}) + (1 - q'_k) \sigma(b + G p_{0k})
        \right] = 0

    over the number k of minority samples in a mini-batch drawn without replacement, each
    normalized by its own weight in the loss.

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
    majority, minority = counts
    k = np.arange(min(minority, batch_size - 1) + 1)
    chance = hypergeom.pmf(k, majority + minority, minority, batch_size)
    weight = k * majority / minority
    heavy = weight / (weight + batch_size - k)
    share = heavy if weighted else k / batch_size
    first, second = (p.numpy() for p in positions(torch.from_numpy(share)))

    def slope(shift: float) -> float:
        pull = heavy * expit(-shift - gain * second)
        return float(chance @ ((1 - heavy) * expit(shift + gain * first) - pull))

    return float(brentq(slope, -1e3, 1e3))


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
