"""Why Weighted + WBN loses the minority: arms of the interventions, the gap and its parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pandas as pd

from study.chapters.why.shift_model import predicted
from study.engine import EXPERIMENTS, METHODS
from study.engine.protocol import EPOCH, Protocol
from study.stats.intervals import intervals
from study.stores.plan import load_or_run

TWO, TEN = "cause", "cause_ten"  # the stores
HARDER = ("ii", "iii")
WEIGHTED_LOSS, NORMALIZERS = ("wlf_sbn", "wlf_wbn"), ("batch", "dataset")
BOTH_KINDS = ("batch_average", "pooled")
REFERENCE = {
    "loss_normalizer": "batch", "learning_rate": 1e-3, "batch_size": 100, "epochs": EPOCH,
    "statistics": "batch", "output_shift_start": 0.0, "output_shift_rate": 1.0,
}  # fmt: skip
FROZEN = {"output_shift_rate": 0.0}
AS_IT_IS = "Weighted + WBN"
# How the shift of Weighted + BN is learned, and in which layers Weighted + WBN has weights.
SHIFTS = {
    "learned": {},
    "frozen at 0": FROZEN,
    "started at -1": {"output_shift_start": -1.0},
    "three times faster": {"output_shift_rate": 3.0},
}
WEIGHTS_IN = {
    "both layers": {},
    "hidden layer": {"output_norm": "standard"},
    "output layer": {"hidden_norm": "standard"},
}
FARTHER = {
    "rate 0.01": ("wlf_wbn", {"learning_rate": 1e-2}),
    "batches of 200": ("wlf_wbn", {"batch_size": 200, "last_batch": "drop", "epochs": 40}),
    "100 epochs": ("wlf_wbn", {"epochs": 100}),
    "Weighted + BN, 100 epochs": ("wlf_sbn", {"epochs": 100}),
}
# What is taken away from Weighted + WBN, and how.
INTERVENTIONS = {
    "shift frozen": FROZEN,
    "cross-fitted": {"statistics": "cross_fitted"},
    "running sums": {"statistics": "running_sums"},
}


def arm(method: str, store: str = TWO, **changes: object) -> pd.DataFrame:
    """Rows of one arm: a method with `changes` to the reference reading, other rows left out."""
    norm = "weighted" if method == "wlf_wbn" else "standard"
    norms = {"hidden_norm": norm, "output_norm": norm}
    return load_or_run(store, **{"method": method, **REFERENCE, **norms, **changes})


def arms(method: str, changes: dict[str, dict], **only: object) -> pd.DataFrame:
    """Rows of several arms, named by a column `arm`; of each, those that `only` says."""
    rows = {label: arm(method, **own, **only) for label, own in changes.items()}
    return pd.concat(rows, names=["arm"]).reset_index("arm")


def paired(
    combine: Sequence[tuple[float, pd.DataFrame]], metric: str = "accuracy_minority"
) -> pd.DataFrame:
    """Mean over seeds of a sum of arms with factors, with its 95 % interval.

    Parameters
    ----------
    combine
        Factors and rows of arms; seeds, experiments, epochs and kinds of statistics that all of
        them have are taken together.
    metric
        The column.

    Returns
    -------
    pandas.DataFrame
        Columns experiment, inference, epoch, mean, low, high, n and sd.

    Examples
    --------
    >>> keys = {"experiment": "i", "inference": "pooled", "epoch": 20}
    >>> a, b = (pd.DataFrame({"seed": [1, 2], **keys, "x": x}) for x in ([0.5, 0.7], [0.1, 0.1]))
    >>> paired([(1, a), (-1, b)], "x")["mean"].round(3).tolist()
    [0.5]
    """
    keys = ["experiment", "inference", "epoch", "seed"]
    columns = [factor * rows.set_index(keys)[metric] for factor, rows in combine]
    total = pd.concat(columns, axis=1, join="inner").sum(axis=1).rename(metric).reset_index()
    size = sum(abs(factor) for factor, _ in combine)
    return intervals(total, keys[:3], metric, (-size, size))


def beyond_half(changed: pd.DataFrame, store: str, metric: str) -> pd.DataFrame:
    """By how much an arm is nearer to Weighted + BN than to Weighted + WBN, from half way on.

    The metric of the arm minus the mean of the two, paired over seeds: above zero, more than half
    of the gap is gone.
    """
    standard, weighted = (arm(method, store) for method in WEIGHTED_LOSS)
    return paired([(1, changed), (-0.5, standard), (-0.5, weighted)], metric)


def weighted_arms(store: str, **changes: object) -> dict[str, pd.DataFrame]:
    """Rows of Weighted + WBN as it is and with each intervention, averages and pooled statistics.

    Running sums are the averages of the arm that is trained with them.
    """
    known = {AS_IT_IS: {}} | INTERVENTIONS
    rows = {label: arm("wlf_wbn", store, **own, **changes) for label, own in known.items()}
    return {
        label: _averages_or_pooled(table.replace({"inference": {"running_sums": "batch_average"}}))
        for label, table in rows.items()
    }


def _averages_or_pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with these two kinds of statistics, after the last epoch, experiments in order."""
    kept = rows[rows.inference.isin(BOTH_KINDS) & (rows.epoch == EPOCH)]
    return kept.sort_values("experiment", kind="stable")


def remaining(store: str, metric: str, **changes: object) -> dict[str, pd.DataFrame]:
    """Gap of Weighted + WBN to Weighted + BN, as it is and with each intervention, by seed."""
    standard = arm("wlf_sbn", store, **changes)
    weighted = weighted_arms(store, **changes)
    return {label: paired([(1, rows), (-1, standard)], metric) for label, rows in weighted.items()}


def arm_means(store: str, metric: str, **changes: object) -> pd.DataFrame:
    """Means of both weighted methods, and of WBN with each intervention, with 95 % intervals.

    Columns arm, experiment, inference, mean, low, high, n and sd.
    """
    standard = _averages_or_pooled(arm("wlf_sbn", store, **changes))
    known = {METHODS["wlf_sbn"]: standard, **weighted_arms(store, **changes)}
    rows = pd.concat(known, names=["arm"]).reset_index("arm")
    return intervals(rows, ["arm", "experiment", "inference"], metric)


def gap(store: str, metric: str, **changes: object) -> pd.DataFrame:
    """Weighted + WBN minus Weighted + BN in the same setting and seed, at every stored epoch."""
    standard, weighted = (arm(method, store, **changes) for method in WEIGHTED_LOSS)
    return paired([(1, weighted), (-1, standard)], metric)


def parts(store: str, **changes: object) -> pd.DataFrame:
    """The `gap` in balanced accuracy, and what a shift of WBN frozen at zero leaves of it.

    "regained" is what freezing gives back and "left" the gap then. With two classes, both are
    also taken at the threshold that suits each network best: what no threshold can repair.
    Columns part, experiment, inference, mean, low, high, n and sd.
    """
    standard, weighted = (arm(method, store, **changes) for method in WEIGHTED_LOSS)
    frozen = arm("wlf_wbn", store, **FROZEN, **changes)
    pairs = {
        "gap": (weighted, standard),
        "regained": (frozen, weighted),
        "left": (frozen, standard),
    }
    metrics = {"": "accuracy_balanced", ", best threshold": "accuracy_best_threshold"}
    tables = {
        label + suffix: paired([(1, first), (-1, second)], metric)
        for label, (first, second) in pairs.items()
        for suffix, metric in metrics.items()
        if metric in weighted and (label, suffix) != ("regained", ", best threshold")
    }
    return _averages_or_pooled(pd.concat(tables, names=["part"]).reset_index("part"))


def drifts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shift and gain of the references in the networks, and in the counting model.

    Both normalizers of the loss; columns experiment, method, loss_normalizer, seed, epoch, shift
    and gain.
    """
    networks, model = [], []
    for experiment, method, normalizer in itertools.product(
        EXPERIMENTS, WEIGHTED_LOSS, NORMALIZERS
    ):
        names = {"experiment": experiment, "method": method, "loss_normalizer": normalizer}
        rows = arm(**names, inference="pooled")
        networks.append(rows[["seed", "epoch", "shift", "gain"]].assign(**names))
        seeds = range(rows.seed.min(), rows.seed.max() + 1)
        model.append(predicted(Protocol.paper(**names), seeds).assign(**names))
    return pd.concat(networks), pd.concat(model)


def farther_drifts() -> pd.DataFrame:
    """Mean shift in (iii) where more changes than the normalizer, and in the counting model.

    Columns shift (of the networks) and predicted; nothing was declared about these.
    """
    rows = {}
    for label, (method, changes) in FARTHER.items():
        runs = arm(method, experiment="iii", inference="pooled", **changes)
        seeds = range(runs.seed.min(), runs.seed.max() + 1)
        model = predicted(Protocol.paper("iii", method, **changes), seeds)
        last = (table[table.epoch == table.epoch.max()]["shift"].mean() for table in (runs, model))
        rows[label] = dict(zip(("shift", "predicted"), last, strict=True))
    return pd.DataFrame(rows).T
