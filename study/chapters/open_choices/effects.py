"""The designed study of what the paper does not say: what its choices change, who is ahead."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from study.engine.protocol import EPOCH, FAMILY, METHODS, Protocol
from study.stats.design import effects, level_means, misfit, responses
from study.stats.intervals import intervals
from study.stores.plan import RESULTS, load_or_run, read_plan

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
LOSSES = {"batch": "batch's Z", "dataset": "data set's Z"}
OUTPUTS = {"on": "output BN", "none": "no output BN"}
METRIC = "accuracy_balanced"  # of the chapter
STATED = "batch_average"  # the inference that the paper states
SUSPECTS = ("learning_rate", "loss_normalizer", "output_norm")
PAIRS = tuple(itertools.combinations(SUSPECTS, 2))
FITTED = (-2.0, 2.0)  # what a difference of fitted accuracies cannot exceed, in practice


def stored_design() -> list[Protocol]:
    """The protocols of results/study/plan.toml."""
    protocols, _ = read_plan(RESULTS / "study" / "plan.toml")
    return protocols


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
    """What each level changes against the reference reading's, with 95 % intervals.

    Averaged over the levels of the other factors, by the model of `study.stats.design` with
    all main effects and the interactions of `SUSPECTS`. The intervals are those of `with_misfit`.

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
        A row for each experiment, method, factor and level, with mean, low, high, n and sd, and
        the change in words as `choice`.
    """
    points = design_points(protocols)
    changes = pd.concat(
        effects(points, response, LEVELS, PAIRS).assign(experiment=experiment, method=method)
        for (experiment, method), response in responses(table, protocols, metric).items()
    )
    return _estimated(changes)


def column_effects(
    table: pd.DataFrame, column: str, reference: object, metric: str
) -> pd.DataFrame:
    """What other values of a column change for the same seeds, averaged over the other choices.

    Parameters
    ----------
    table
        Rows of ``sweep`` in which each value of the column has the same other choices.
    column
        One that `LABELS` knows.
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
    return _estimated(long.assign(factor=column, model_arm=0.0))  # means of runs, no model


def _estimated(changes: pd.DataFrame) -> pd.DataFrame:
    keys = ["experiment", "method", "factor", "level"]
    estimates = with_misfit(changes, keys, "change")
    names = zip(estimates["factor"], estimates["level"], strict=True)
    return estimates.assign(choice=[LABELS[name] for name in names])


def with_misfit(fitted: pd.DataFrame, keys: Sequence[str], value: str) -> pd.DataFrame:
    r"""Means over seeds with intervals for both errors: how seeds differ, what the model misses.

    .. math:: a^2 = \Big( t_{S-1} \frac{s}{\sqrt S} \Big)^2
        + \big( t_{n-p} \, \hat\sigma \, \lVert a \rVert \big)^2

    is the square of an arm: that of :func:`study.stats.intervals.mean_interval` over S seeds, and
    that of :func:`study.stats.design.model_arm`. A response is
    :math:`x_i^\top \beta + \delta_i + u_s + \varepsilon_{is}`, so that what is fitted misses
    :math:`\beta` by :math:`\sum_i a_i \delta_i`, whatever the seeds, and by a mean over seeds,
    and the squares of two independent arms add up. The residuals hold a part of
    :math:`\varepsilon` too, which is then counted twice.

    Parameters
    ----------
    fitted
        A row for each group and seed, with a `model_arm`.
    keys, value
        As in :func:`study.stats.intervals.intervals`.

    Returns
    -------
    pandas.DataFrame
        As `intervals`: the keys, mean, low, high, n and sd (of the seeds).
    """
    estimates = intervals(fitted, keys, value, FITTED)
    arm = fitted.groupby(list(keys), sort=False)["model_arm"].first().to_numpy()
    mean, low, high = (estimates[name] for name in ("mean", "low", "high"))
    return estimates.assign(
        low=mean - np.hypot(mean - low, arm), high=mean + np.hypot(high - mean, arm)
    )


def all_effects(
    table: pd.DataFrame, protocols: Sequence[Protocol], metric: str = METRIC
) -> pd.DataFrame:
    """What each choice, each kind of inference and each epoch changes against the reference.

    `choice_effects` of the factors and `column_effects` of what is read off the same networks,
    at epoch `EPOCH` and with averages over mini-batches where these are not what changes.

    Parameters
    ----------
    table
        Rows of ``sweep`` of the design, with all kinds of inference and epochs.
    protocols, metric
        As in `choice_effects`.

    Returns
    -------
    pandas.DataFrame
        As `choice_effects`, in the order of `LABELS`, with `name` and `panel`, method and
        experiment as a figure writes them.
    """
    last, averages = table[table["epoch"] == EPOCH], table[table["inference"] == STATED]
    changes = pd.concat(
        [
            choice_effects(last[last["inference"] == STATED], protocols, metric),
            column_effects(last, "inference", STATED, metric),
            column_effects(averages, "epoch", EPOCH, metric),
        ]
    )
    order = list(LABELS.values())
    changes = changes.sort_values(
        "choice", key=lambda choice: choice.map(order.index), kind="stable"
    )
    panel = "(" + changes["experiment"] + ")"
    return changes.assign(name=changes["method"].map(METHODS), panel=panel)


def misfits(
    table: pd.DataFrame, protocols: Sequence[Protocol], metric: str = METRIC
) -> pd.DataFrame:
    """How well the model of `choice_effects` fits each method, and WBN minus Weighted + BN.

    Parameters
    ----------
    table, protocols, metric
        As in `choice_effects`.

    Returns
    -------
    pandas.DataFrame
        A row for each method and for "c - b"; columns `points`, the standard deviation of the
        points' means, `residual`, that of the model's errors on its residual degrees of freedom,
        and `left out`, the root of the mean squared error at points left out, by experiment.
    """
    points, measured = design_points(protocols), responses(table, protocols, metric)
    for experiment in {name for name, _ in measured}:
        measured[experiment, "c - b"] = (
            measured[experiment, "wlf_wbn"] - measured[experiment, "wlf_sbn"]
        )
    rows = []
    for (experiment, method), response in measured.items():
        error = misfit(points, response, LEVELS, PAIRS)
        spread = response.mean(axis=1).std(ddof=1)
        rows.append((experiment, method, spread, error.sd, error.left_out))
    names = ["experiment", "method", "points", "residual", "left out"]
    return (
        pd.DataFrame(rows, columns=names)
        .pivot(index="method", columns="experiment")
        .loc[[*METHODS, "c - b"]]
    )


def direct_effects(metric: str = METRIC) -> pd.DataFrame:
    """What choices change for Weighted + WBN in the eight readings, every one of which was run.

    The stores of the family and of the corrections, as far as `column_effects` can compare them:
    ten seeds, at epoch `EPOCH`.
    """
    only = {"epoch": EPOCH, "method": "wlf_wbn", "seed": range(10), "scale": "paper"}
    family = load_or_run("family", *FAMILY[0], "correction", **only)
    corrected = pd.concat([family, load_or_run("corrections", "correction", **only)])
    changes = [column_effects(family, name, LEVELS[name][0], metric) for name in FAMILY[0]]
    return pd.concat([*changes, column_effects(corrected, "correction", "frequency", metric)])


def direct_and_fraction(direct: pd.DataFrame, fraction: pd.DataFrame) -> pd.DataFrame:
    """Mean changes of direct comparisons beside those that a fraction of a design gives.

    Parameters
    ----------
    direct, fraction
        Of `direct_effects` and `choice_effects`. What is in only one of them is left out.

    Returns
    -------
    pandas.DataFrame
        A row for each method and choice, and columns for the two, by experiment.
    """
    keys = ["method", "choice", "experiment"]
    tables = {"direct": direct, "fraction": fraction}
    means = {name: table.set_index(keys)["mean"] for name, table in tables.items()}
    return pd.DataFrame(means).dropna().unstack("experiment")


def leads(
    table: pd.DataFrame,
    protocols: Sequence[Protocol],
    metric: str = METRIC,
    baseline: str = "wlf_sbn",
) -> pd.DataFrame:
    """How far Weighted + WBN is ahead of another method, by the levels of `SUSPECTS`.

    The model of `choice_effects`, fitted to the paired differences, with the intervals of
    `with_misfit`.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment and combination of the factors, smallest learning rate first,
        with mean, low, high, n and sd; `rate` and `setting` say the combination in words.
    """
    points, measured = design_points(protocols), responses(table, protocols, metric)
    means = pd.concat(
        level_means(
            points, measured[experiment, "wlf_wbn"] - response, LEVELS, PAIRS, SUSPECTS
        ).assign(experiment=experiment)
        for (experiment, method), response in measured.items()
        if method == baseline
    )
    ahead = with_misfit(means, ["experiment", *SUSPECTS], "value")
    ahead = ahead.sort_values("learning_rate", kind="stable")
    setting = ahead["loss_normalizer"].map(LOSSES) + "\n" + ahead["output_norm"].map(OUTPUTS)
    return ahead.assign(rate="rate " + ahead["learning_rate"].astype(str), setting=setting)


def count_leads(
    table: pd.DataFrame, protocols: Sequence[Protocol], metric: str = METRIC
) -> pd.DataFrame:
    """In how many cells of `leads` WBN is clearly ahead of each other method, and behind.

    Parameters
    ----------
    table
        Rows of ``sweep`` of the design at one epoch, with one or more kinds of inference.
    protocols, metric
        As in `choice_effects`.

    Returns
    -------
    pandas.DataFrame
        A row for each inference and baseline: how often the 95 % interval is above zero
        (`ahead`) and below (`behind`).
    """
    counts = {}
    for inference, runs in table.groupby("inference"):
        for baseline in ("lf_sbn", "wlf_sbn"):
            lead = leads(runs, protocols, metric, baseline)
            counts[inference, baseline] = (lead["low"] > 0).sum(), (lead["high"] < 0).sum()
    names = pd.MultiIndex.from_tuples(counts, names=["inference", "baseline"])
    return pd.DataFrame(list(counts.values()), names, ["ahead", "behind"])
