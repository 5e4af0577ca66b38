"""The designed study of what the paper does not say: effects, leads, and Table 2 at each point."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pandas as pd

from wbn.analysis.design import effects, level_means, responses
from wbn.analysis.intervals import intervals
from wbn.analysis.rankings import ranking_probability
from wbn.analysis.table_2 import among_single_runs
from wbn.experiments.protocol import METHODS, Protocol

# The factors of results/study/plan.toml, the reference reading first. An `output_norm` that is
# "on" is the method's own, which a plan leaves out.
LEVELS = {
    "learning_rate": (1e-3, 3e-4, 1e-2, 3e-2),
    "loss_normalizer": ("batch", "dataset"),
    "output_norm": ("on", "none"),
    "batch_order": ("reshuffle", "fixed", "replacement"),
    "last_batch": ("keep", "drop"),
    "correction": ("frequency", "reliability", "none"),
}
# What changes against the reference reading, in few words: factors, then what is read off the
# same networks.
LABELS = {
    ("learning_rate", 3e-4): "rate 0.0003",
    ("learning_rate", 1e-2): "rate 0.01",
    ("learning_rate", 3e-2): "rate 0.03",
    ("loss_normalizer", "dataset"): "loss: data set",
    ("output_norm", "none"): "no output BN",
    ("batch_order", "fixed"): "order: fixed",
    ("batch_order", "replacement"): "order: replaced",
    ("last_batch", "drop"): "last batch: drop",
    ("correction", "reliability"): "corr.: reliability",
    ("correction", "none"): "corr.: none",
    ("inference", "last_epoch"): "stat.: last epoch",
    ("inference", "moving_average"): "stat.: moving av.",
    ("inference", "pooled"): "stat.: pooled",
    ("inference", "evaluation_set"): "stat.: test set",
    ("epoch", 1): "epoch 1",
    ("epoch", 3): "epoch 3",
    ("epoch", 10): "epoch 10",
    ("epoch", 30): "epoch 30",
}
SUSPECTS = ("learning_rate", "loss_normalizer", "output_norm")
PAIRS = tuple(itertools.combinations(SUSPECTS, 2))
FITTED = (-2.0, 2.0)  # what a difference of fitted accuracies cannot exceed, in practice
RANGE = 9 / 11  # the probability that one more run lies within the range of ten


def design_points(protocols: Sequence[Protocol]) -> pd.DataFrame:
    """The points of the design, in order: a column for each factor, and their `hashes`.

    Examples
    --------
    >>> protocols = [Protocol.paper("i", m, output_norm="none") for m in ("lf_sbn", "wlf_wbn")]
    >>> design_points(protocols)[["learning_rate", "output_norm"]].values.tolist()
    [[0.001, 'none']]
    """
    hashes: dict[tuple, list[str]] = {}
    for protocol in protocols:
        point = tuple(getattr(protocol, factor) or "on" for factor in LEVELS)
        hashes.setdefault(point, []).append(protocol.hash)
    table = pd.DataFrame(list(hashes), columns=list(LEVELS))
    return table.assign(hashes=list(hashes.values()))


def choice_effects(table: pd.DataFrame, protocols: Sequence[Protocol], metric: str) -> pd.DataFrame:
    """What each level changes against the reference reading's, with 95 % intervals over seeds.

    Averaged over the levels of the other factors, by the model of `wbn.analysis.design` with
    all main effects and the interactions of `SUSPECTS`. The intervals know how seeds differ, not
    what the model leaves out.

    Parameters
    ----------
    table
        Rows of ``sweep`` at one epoch, with one kind of inference.
    protocols
        Those of the design.
    metric
        A column.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment, method, factor and level, with mean, low, high, n and sd.
    """
    points = design_points(protocols)
    changes = pd.concat(
        effects(points, response, LEVELS, PAIRS).assign(experiment=experiment, method=method)
        for (experiment, method), response in responses(table, protocols, metric).items()
    )
    return intervals(changes, ["experiment", "method", "factor", "level"], "change", FITTED)


def column_effects(
    table: pd.DataFrame, column: str, reference: object, metric: str
) -> pd.DataFrame:
    """What other values of a column change on the same networks, averaged over the protocols.

    Parameters
    ----------
    table
        Rows of ``sweep`` of the design, at one epoch or with one kind of inference.
    column
        "inference" or "epoch".
    reference
        Its value that the others are compared with.
    metric
        A column.

    Returns
    -------
    pandas.DataFrame
        As `choice_effects`.
    """
    means = table.pivot_table(metric, ["experiment", "method", "seed"], column, sort=False)
    changes = means.drop(columns=reference).sub(means[reference], axis=0)
    long = changes.reset_index().melt(
        ["experiment", "method", "seed"], var_name="level", value_name="change"
    )
    keys = ["experiment", "method", "factor", "level"]
    return intervals(long.assign(factor=column), keys, "change", FITTED)


def leads(
    table: pd.DataFrame,
    protocols: Sequence[Protocol],
    metric: str,
    baseline: str,
    factors: Sequence[str] = SUSPECTS,
) -> pd.DataFrame:
    """How far WLF+WBN is ahead of another method, by the levels of some factors.

    The model of `choice_effects`, fitted to the paired differences.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment and combination of the factors, with mean, low, high, n and sd.
    """
    points, found = design_points(protocols), responses(table, protocols, metric)
    means = pd.concat(
        level_means(points, found[experiment, "wlf_wbn"] - response, LEVELS, PAIRS, factors).assign(
            experiment=experiment
        )
        for (experiment, method), response in found.items()
        if method == baseline
    )
    return intervals(means, ["experiment", *factors], "value", FITTED)


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
        A row for each point, kind of inference and epoch: the factors; `cells`, which of the 18
        class accuracies of Table 2 lie within the range of the ten runs, as experiment, method and
        metric; `inside`, how many they are; and `chance`, the probability :math:`\prod_e P_e`
        that single runs show WLF+WBN ahead of both other methods in all three experiments.
    """
    rows = []
    for point, runs in _runs_at_points(table, protocols):
        for (inference, epoch), mine in runs.groupby(["inference", "epoch"], sort=False):
            cells = among_single_runs(mine, RANGE)
            cells = cells[cells.inside & (cells.metric != "accuracy_overall")]
            inside = list(zip(cells.experiment, cells.method, cells.metric, strict=True))
            chance = ranking_probability(
                mine, ["wlf_wbn", ("lf_sbn", "wlf_sbn")], "accuracy_overall"
            ).probability.prod()
            found = {"inference": inference, "epoch": epoch, "cells": inside}
            rows.append(point | found | {"inside": len(inside), "chance": chance})
    return pd.DataFrame(rows)


def _runs_at_points(
    table: pd.DataFrame, protocols: Sequence[Protocol]
) -> Iterator[tuple[dict, pd.DataFrame]]:
    points = design_points(protocols)
    for point in points.to_dict("records"):
        runs = table[table.protocol.isin(point.pop("hashes"))]
        if runs.method.nunique() != len(METHODS):
            raise ValueError(f"the table lacks methods at the point {point}")
        yield point, runs
