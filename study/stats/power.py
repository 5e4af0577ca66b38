"""What a rule could decide: its chance to say yes, and its chance to say no by accident."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special, stats

from study.stats.intervals import LEVEL, mean_interval

MOST = 10_000  # seeds that are tried
STEPS = 1000  # of an integral over the standard deviations that samples may have


def equivalence_power(deviations: ArrayLike, n: int, margin: float) -> float:
    r"""Chance that 95 % intervals of n differences all lie within a margin, if nothing differs.

    .. math:: \prod_k P\Big(|m_k| + t_{n-1} \frac{s_k}{\sqrt n} < \Delta\Big), \qquad
        m_k \sim N\Big(0, \frac{\sigma_k^2}{n}\Big), \quad
        (n - 1) \frac{s_k^2}{\sigma_k^2} \sim \chi^2_{n-1},

    for normal differences of mean zero, the best case for a claim that nothing matters, and
    comparisons that are independent of each other.

    Parameters
    ----------
    deviations
        Standard deviation of a paired difference, for each comparison.
    n
        How many seeds each of them has.
    margin
        In the unit of the deviations.

    Examples
    --------
    >>> [round(equivalence_power([0.05], n, 0.024), 2) for n in (10, 30, 60)]
    [0.01, 0.44, 0.91]
    """
    sigma = np.atleast_1d(np.asarray(deviations, dtype=float))[:, None]
    quantiles = (np.arange(STEPS) + 0.5) / STEPS  # the mean over them is the mean over s
    s = sigma * np.sqrt(stats.chi2.ppf(quantiles, n - 1) / (n - 1))
    room = margin - stats.t.ppf((1 + LEVEL) / 2, n - 1) * s / np.sqrt(n)
    inside = 2 * special.ndtr(room * np.sqrt(n) / sigma) - 1
    return float(inside.clip(min=0).mean(axis=1).prod())


def seeds_needed(deviations: ArrayLike, margin: float, power: float = 0.8) -> int:
    """The smallest number of seeds with which `equivalence_power` reaches a given chance.

    Parameters
    ----------
    deviations, margin
        As in :func:`equivalence_power`.
    power
        The chance.

    Examples
    --------
    >>> seeds_needed([0.05], 0.024)
    48
    """
    return bisect_left(
        range(MOST), power, lo=2, key=lambda n: equivalence_power(deviations, n, margin)
    )


def false_refutations(
    table: pd.DataFrame, metric: str = "accuracy_overall", draws: int = 2000
) -> float:
    """How often one of six intervals lies below zero, if no method differs from another.

    The rule by which C1 is "not replicated". Differences of WBN to both other methods in each
    experiment are centered, so that all six are zero in the mean, and seeds are drawn with
    replacement, each with its six differences, which keeps what they have in common.

    Parameters
    ----------
    table
        Rows of ``sweep`` at one epoch, with one protocol for each experiment and method.
    metric
        A column.
    draws
        How many samples.
    """
    runs = table.pivot(index="seed", columns=["method", "experiment"], values=metric)
    gaps = np.hstack([runs["wlf_wbn"] - runs[other] for other in ("lf_sbn", "wlf_sbn")])
    centered, random = gaps - gaps.mean(axis=0), np.random.default_rng(0)
    drawn = centered[random.integers(len(gaps), size=(draws, len(gaps)))]
    refuted = [any(mean_interval(gap, (-1.0, 1.0)).high < 0 for gap in six.T) for six in drawn]
    return float(np.mean(refuted))
