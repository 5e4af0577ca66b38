"""The designed study of what the paper does not say: what its choices change, who is ahead."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from wbn.analysis.claims import EPOCH
from wbn.analysis.design import effects, level_means, responses
from wbn.analysis.intervals import intervals
from wbn.experiments.plan import stored
from wbn.experiments.protocol import FAMILY, METHODS, Protocol

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
LETTERS = dict(zip(METHODS, "abc", strict=True))  # the paper's, for narrow columns
LOSSES = {"batch": "batch's Z", "dataset": "data set's Z"}
OUTPUTS = {"on": "output BN", "none": "no output BN"}
STATED = "batch_average"  # the inference that the paper states
SUSPECTS = ("learning_rate", "loss_normalizer", "output_norm")
PAIRS = tuple(itertools.combinations(SUSPECTS, 2))
FITTED = (-2.0, 2.0)  # what a difference of fitted accuracies cannot exceed, in practice


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
    return _estimated(long.assign(factor=column))


def _estimated(changes: pd.DataFrame) -> pd.DataFrame:
    estimates = intervals(changes, ["experiment", "method", "factor", "level"], "change", FITTED)
    keys = zip(estimates["factor"], estimates["level"], strict=True)
    return estimates.assign(choice=[LABELS[key] for key in keys])


def all_effects(table: pd.DataFrame, protocols: Sequence[Protocol], metric: str) -> pd.DataFrame:
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
        As `choice_effects`, in the order of `LABELS`, with `letter` and `panel`, method and
        experiment as the paper writes them.
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
    return changes.assign(letter=changes["method"].map(LETTERS), panel=panel)


def direct_effects(metric: str) -> pd.DataFrame:
    """What choices change for WLF+WBN in the eight readings, every one of which was run.

    The stores of the family and of the corrections, as far as `column_effects` can compare them:
    ten seeds, at epoch `EPOCH`.
    """
    only = {"epoch": EPOCH, "method": "wlf_wbn", "seed": range(10), "scale": "paper"}
    family = stored("family", *FAMILY[0], "correction", **only)
    corrected = pd.concat([family, stored("corrections", "correction", **only)])
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
    table: pd.DataFrame, protocols: Sequence[Protocol], metric: str, baseline: str
) -> pd.DataFrame:
    """How far WLF+WBN is ahead of another method, by the levels of `SUSPECTS`.

    The model of `choice_effects`, fitted to the paired differences.

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
    ahead = intervals(means, ["experiment", *SUSPECTS], "value", FITTED)
    ahead = ahead.sort_values("learning_rate", kind="stable")
    setting = ahead["loss_normalizer"].map(LOSSES) + "\n" + ahead["output_norm"].map(OUTPUTS)
    return ahead.assign(rate="rate " + ahead["learning_rate"].astype(str), setting=setting)


def count_leads(table: pd.DataFrame, protocols: Sequence[Protocol], metric: str) -> pd.DataFrame:
    """In how many cells of `leads` WLF+WBN is clearly ahead of each other method, and behind.

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
