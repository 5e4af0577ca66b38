"""How likely single runs rank methods in a given way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import combinations, pairwise, permutations

import numpy as np
import pandas as pd
from scipy import special

from study.engine.columns import SETTING
from study.stats.intervals import LEVEL, side_by_side


def ranking_probability(
    table: pd.DataFrame,
    ranking: Sequence[str | Sequence[str]],
    metric: str,
    paired: bool = False,
) -> pd.DataFrame:
    r"""Probability :math:`P(x^a > x^b > \dots)` that one run of each method shows a ranking.

    The estimate is the share of choices of one run of each method that show the ranking:
    all choices with different seeds (the U-statistic for independent runs) or, ``paired``,
    those in which all methods have the same seed. Ties are broken at random: a choice counts
    by the share of the orders its ties allow that agree with the ranking, 1/2 for two tied
    methods, so that the probabilities of all rankings add up to one.

    The interval is the exact binomial one (Clopper and Pearson) for as many trials as there
    are seeds. For independent runs it is on the safe side: the U-statistic averages the
    shares among n trials over the ways to match up the runs, so it varies less than one such
    share. Simulated coverage at n = 10 and 20, for two and three methods whose runs of one
    seed correlate by -0.9 to 0.7: 95 to 100 %.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep``, with one protocol for each method of the ranking.
    ranking
        Names in the column ``method``, best first; methods whose order does not matter
        stand together in a tuple. ``("c", ("a", "b"))`` is "c is the best of the three".
    metric
        A column.
    paired
        Whether the runs that are compared share their seed.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment, inference, evaluated_on and epoch, with the columns
        probability, low, high and n, the number of seeds.

    Examples
    --------
    >>> import pandas as pd
    >>> from study.stats.rankings import ranking_probability
    >>> table = pd.DataFrame({"seed": [0, 1, 2] * 2, "method": ["lf_sbn"] * 3 + ["wlf_wbn"] * 3})
    >>> table["accuracy_overall"] = [0.70, 0.80, 0.90, 0.75, 0.86, 0.95]
    >>> table[["experiment", "inference", "evaluated_on", "epoch"]] = ["i", "pooled", "test", 20]
    >>> chance = ranking_probability(table, ["wlf_wbn", "lf_sbn"], "accuracy_overall")
    >>> chance[["epoch", "probability", "low", "high", "n"]].round(3)
       epoch  probability    low   high  n
    0     20          0.5  0.039  0.961  3
    """
    tiers = [(tier,) if isinstance(tier, str) else tuple(tier) for tier in ranking]
    methods = [method for tier in tiers for method in tier]
    places = [place for place, tier in enumerate(tiers) for _ in tier]
    rows = []
    for key, runs in side_by_side(table, methods, metric).groupby(level=list(SETTING), sort=False):
        n, values = len(runs), runs.to_numpy().T
        if n < len(methods) and not paired:
            raise ValueError(f"runs of {len(methods)} methods need as many seeds, got {n}")
        chosen = np.s_[:]
        if not paired:
            seeds = np.meshgrid(*[np.arange(n)] * len(methods), indexing="ij", sparse=True)
            chosen = reduce(np.logical_and, (i != j for i, j in combinations(seeds, 2)))
            values = np.meshgrid(*values, indexing="ij", sparse=True)
        p = _agreement(values, places)[chosen].mean()
        low = special.betaincinv(p * n, n - p * n + 1, (1 - LEVEL) / 2) if p > 0 else 0.0
        high = special.betaincinv(p * n + 1, n - p * n, (1 + LEVEL) / 2) if p < 1 else 1.0
        rows.append((*key, p, low, high, n))
    return pd.DataFrame(rows, columns=[*SETTING, "probability", "low", "high", "n"])


def _agreement(values: Sequence[np.ndarray], places: Sequence[int]) -> np.ndarray:
    """Share of the orders from best to worst that the values allow which keep the places."""
    allowed = agreeing = np.zeros((), dtype=int)
    for order in permutations(range(len(values))):
        fits = reduce(np.logical_and, (values[i] >= values[j] for i, j in pairwise(order)))
        allowed = allowed + fits
        if all(places[i] <= places[j] for i, j in pairwise(order)):
            agreeing = agreeing + fits
    return agreeing / allowed
