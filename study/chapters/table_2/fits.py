"""How well Table 2 fits the points of the designed study: numbers, their score, the ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pandas as pd

from study.chapters.open_choices.effects import design_points
from study.engine.protocol import METHODS, Protocol
from study.stats.rankings import ranking_probability
from study.stats.scores import minority_scores
from study.stats.table_2 import among_single_runs

RANGE = 9 / 11  # the probability that one more run lies within the range of ten


def table_2_at_points(table: pd.DataFrame, protocols: Sequence[Protocol]) -> pd.DataFrame:
    r"""How well Table 2 and its ranking fit each point of the design.

    Parameters
    ----------
    table
        Rows of ``sweep`` of the design, ten seeds.
    protocols
        Those of the design.

    Returns
    -------
    pandas.DataFrame
        A row for each point, kind of inference and epoch: the factors; `inside`, how many of the 18
        class accuracies of Table 2 lie within the range of the ten runs; `score` and `own run`,
        the means of `minority_scores` over the nine minority accuracies; and `chance`, the
        probability :math:`\prod_e P_e` that single runs show WLF+WBN ahead of both other methods
        in all three experiments.
    """
    rows = []
    for point, runs in _runs_at_points(table, protocols):
        for (inference, epoch), single in runs.groupby(["inference", "epoch"], sort=False):
            cells = among_single_runs(single, RANGE)
            inside = (cells.inside & (cells.metric != "accuracy_overall")).sum()
            chance = ranking_probability(
                single, ["wlf_wbn", ("lf_sbn", "wlf_sbn")], "accuracy_overall"
            ).probability.prod()
            key = {"inference": inference, "epoch": epoch}
            scores = minority_scores(single)[["score", "own run"]].mean().to_dict()
            rows.append(point | key | scores | {"inside": inside, "chance": chance})
    return pd.DataFrame(rows)


def score_fits(fits: pd.DataFrame, by: str | list[str]) -> pd.DataFrame:
    """The scores of Table 2's minority accuracies, and what the best combination looks like.

    Parameters
    ----------
    fits
        Of `table_2_at_points`.
    by
        One or more columns; each combination of their values is a row.

    Returns
    -------
    pandas.DataFrame
        The `mean` score of all combinations of point and epoch, the `best`, and of the best also
        its `own run`, the `chance` of the ranking and how many cells are `inside`.
    """
    groups = fits.groupby(by)["score"]
    best = fits.loc[groups.idxmin()].set_index(by)
    scores = pd.DataFrame({"mean": groups.mean(), "best": groups.min()})
    return scores.join(best[["own run", "chance", "inside"]])


def _runs_at_points(
    table: pd.DataFrame, protocols: Sequence[Protocol]
) -> Iterator[tuple[dict, pd.DataFrame]]:
    points = design_points(protocols)
    for point in points.to_dict("records"):
        runs = table[table.protocol.isin(point.pop("hashes"))]
        if runs.method.nunique() != len(METHODS):
            raise ValueError(f"the table lacks methods at the point {point}")
        yield point, runs
