"""A proper score of a printed number: how well a sample of runs predicts it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from study.engine.protocol import METHODS
from study.stats.table_2 import TABLE_2

METRIC = "accuracy_minority"  # of the printed majority accuracies seven of nine are 100
PRINTED = TABLE_2[TABLE_2.metric == METRIC].drop(columns="metric")


def own_score(runs: ArrayLike) -> float:
    r"""Mean score :math:`\frac12 \overline{|x_i - x_j|}_{i \ne j}` of a run under the others.

    The `crps` of each run in turn, when the sample is all the others, in the mean: what a number
    scores that is one more run.

    Parameters
    ----------
    runs
        One value a seed, two or more.

    Examples
    --------
    >>> round(own_score([0.5, 0.6, 0.7]), 4)
    0.0667
    """
    ordered = np.sort(np.asarray(runs, dtype=float))
    n = len(ordered)
    if n < 2:
        raise ValueError(f"a score needs two or more runs, got {n}")
    ranks = 2 * np.arange(n) - (n - 1)  # how many are smaller, minus how many are larger
    return float(ranks @ ordered / (n * (n - 1)))


def crps(runs: ArrayLike, value: float) -> float:
    r"""Continuous ranked probability score of a value under a sample of runs, the fair version.

    .. math:: \overline{|x_i - y|} - \tfrac12 \overline{|x_i - x_j|}_{i \ne j}

    The first mean punishes distance, the second pays back spread as far as it is honest: in
    expectation the score is lowest for runs from the value's own distribution. Over distinct
    pairs it estimates :math:`\int (F - 1_{\cdot \ge y})^2` without bias, so that samples of
    different sizes can be compared; it may then fall a little below zero. Its unit is that of
    the values.

    Parameters
    ----------
    runs
        One value a seed, two or more.
    value
        The number to be scored. Smaller scores are better.

    References
    ----------
    T. Gneiting and A. E. Raftery: Strictly Proper Scoring Rules, Prediction, and Estimation.
    JASA 102 (2007). C. A. T. Ferro: Fair scores for ensemble forecasts. QJRMS 140 (2014).

    Examples
    --------
    >>> round(crps([0.5, 0.6, 0.7], 0.6), 4), round(crps([0.5, 0.6, 0.7], 0.3), 4)
    (0.0, 0.2333)
    """
    return float(np.abs(np.asarray(runs, dtype=float) - value).mean()) - own_score(runs)


def minority_scores(table: pd.DataFrame) -> pd.DataFrame:
    """The nine printed minority accuracies of Table 2 under our runs.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep`` at one epoch, with one protocol for each experiment and
        method.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment and method: paper (as printed), its `crps` as `score`, and
        the `own_score` of the runs as `own run`.
    """
    return pd.DataFrame(
        cell | {"score": crps(runs, float(cell["paper"]) / 100), "own run": own_score(runs)}
        for cell, runs in _cells(table)
    )


def left_out_scores(table: pd.DataFrame) -> pd.Series:
    """What Table 2 would score if its nine numbers had been the runs of one of our seeds.

    Parameters
    ----------
    table
        As in `minority_scores`, with the same seeds in each cell.

    Returns
    -------
    pandas.Series
        For each seed, the mean over nine cells of the `crps` of its run under the others.
    """
    cells = [
        pd.Series({seed: crps(runs.drop(seed), value) for seed, value in runs.items()})
        for _, runs in _cells(table)
    ]
    return pd.concat(cells, axis=1).mean(axis=1)


def table_2_score(table: pd.DataFrame) -> pd.Series:
    """Mean scores of the printed minority accuracies, and those of our own runs for scale.

    Parameters
    ----------
    table
        As in `left_out_scores`.

    Returns
    -------
    pandas.Series
        The mean `score` of `minority_scores` for each method by name and for `all nine`; the
        mean of `left_out_scores`, `own run`, and the largest, `worst seed`.
    """
    printed, own = minority_scores(table), left_out_scores(table)
    methods = printed.groupby("method", sort=False).score.mean().rename(METHODS)
    rest = {"all nine": printed.score.mean(), "own run": own.mean(), "worst seed": own.max()}
    return pd.concat([methods, pd.Series(rest)])


def _cells(table: pd.DataFrame) -> Iterator[tuple[dict, pd.Series]]:
    """Each printed minority accuracy with our runs of it, by seed."""
    runs = dict(list(table.set_index("seed").groupby(["experiment", "method"])[METRIC]))
    for cell in PRINTED.to_dict("records"):
        yield cell, runs[cell["experiment"], cell["method"]]
