"""Why Weighted + WBN loses the minority: interventions, the gap to Weighted + BN and its parts."""

from __future__ import annotations

import itertools

import pandas as pd

from study.chapters.variants import TWO, paired, variant
from study.chapters.why.shift_model import predicted
from study.engine import EXPERIMENTS, METHODS
from study.engine.protocol import EPOCH, Protocol
from study.figures.words import words
from study.stats.intervals import intervals

HARDER = ("ii", "iii")
WEIGHTED_LOSS, NORMALIZERS = ("wlf_sbn", "wlf_wbn"), ("batch", "dataset")
BOTH_KINDS = ("batch_average", "pooled")
THRESHOLDS = {"its own": "accuracy_balanced", "best": "accuracy_best_threshold"}
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


def beyond_half(changed: pd.DataFrame, store: str, metric: str) -> pd.DataFrame:
    """By how much a variant is nearer to Weighted + BN than to Weighted + WBN, from half way on.

    The metric of the variant minus the mean of the two, paired over seeds. Above zero, more than
    half of the gap is gone.
    """
    standard, weighted = (variant(method, store) for method in WEIGHTED_LOSS)
    return paired([(1, changed), (-0.5, standard), (-0.5, weighted)], metric)


def weighted_variants(store: str, **changes: object) -> dict[str, pd.DataFrame]:
    """Rows of Weighted + WBN as it is and with each intervention, averages and pooled statistics.

    Running sums are the averages of the variant that is trained with them.
    """
    known = {AS_IT_IS: {}} | INTERVENTIONS
    rows = {label: variant("wlf_wbn", store, **own, **changes) for label, own in known.items()}
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
    standard = variant("wlf_sbn", store, **changes)
    weighted = weighted_variants(store, **changes)
    return {label: paired([(1, rows), (-1, standard)], metric) for label, rows in weighted.items()}


def variant_means(store: str, metric: str, **changes: object) -> pd.DataFrame:
    """Means of both weighted methods, and of WBN with each intervention, with 95 % intervals.

    Columns arm, experiment, inference, mean, low, high, n and sd.
    """
    standard = _averages_or_pooled(variant("wlf_sbn", store, **changes))
    known = {METHODS["wlf_sbn"]: standard, **weighted_variants(store, **changes)}
    rows = pd.concat(known, names=["arm"]).reset_index("arm")
    return intervals(rows, ["arm", "experiment", "inference"], metric)


def gap(store: str, metric: str, **changes: object) -> pd.DataFrame:
    """Weighted + WBN minus Weighted + BN in the same setting and seed, at every stored epoch."""
    standard, weighted = (variant(method, store, **changes) for method in WEIGHTED_LOSS)
    return paired([(1, weighted), (-1, standard)], metric)


def gap_at_thresholds(**changes: object) -> pd.DataFrame:
    """The `gap` with two classes in balanced accuracy, at either of `THRESHOLDS`, a column."""
    gaps = {name: gap(TWO, metric, **changes) for name, metric in THRESHOLDS.items()}
    return _named(gaps, "threshold")


def gap_by_loss() -> pd.DataFrame:
    """The `gap` in balanced accuracy in (iii), by what normalizes the loss, in words."""
    gaps = {
        z: gap(TWO, "accuracy_balanced", experiment="iii", loss_normalizer=z) for z in NORMALIZERS
    }
    rows = _by_loss(gaps)
    return rows[rows.inference.isin(BOTH_KINDS)]


def gap_when_frozen() -> pd.DataFrame:
    """The `gap` in balanced accuracy at the end where both methods have a frozen shift."""
    rows = gap(TWO, "accuracy_balanced", **FROZEN)
    return rows[rows.inference.isin(BOTH_KINDS) & (rows.epoch == EPOCH)][::-1]


def freezing(method: str, store: str = TWO, **only: object) -> pd.DataFrame:
    """What a frozen shift changes in a method's balanced accuracy at the end."""
    frozen, learned = (variant(method, store, **changes, **only) for changes in (FROZEN, {}))
    rows = paired([(1, frozen), (-1, learned)], "accuracy_balanced")
    return rows[rows.epoch == EPOCH]


def parts_by_loss() -> pd.DataFrame:
    """The `parts` of the gap with two classes, by what normalizes the loss, in words."""
    return _by_loss({z: parts(TWO, loss_normalizer=z) for z in NORMALIZERS})


def _by_loss(tables: dict[str, pd.DataFrame]) -> pd.DataFrame:
    return _named({f"loss normalized by {words(z)}": rows for z, rows in tables.items()}, "loss")


def _named(tables: dict[str, pd.DataFrame], name: str) -> pd.DataFrame:
    """One table, with the keys in a column."""
    return pd.concat(tables, names=[name]).reset_index(name)


def parts(store: str, **changes: object) -> pd.DataFrame:
    """The `gap` in balanced accuracy, and what a shift of WBN frozen at zero leaves of it.

    "regained" is what freezing gives back and "left" the gap then. With two classes, both are
    also taken at the threshold that suits each network best: what no threshold can repair.
    Columns part, experiment, inference, mean, low, high, n and sd.
    """
    standard, weighted = (variant(method, store, **changes) for method in WEIGHTED_LOSS)
    frozen = variant("wlf_wbn", store, **FROZEN, **changes)
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
        rows = variant(**names, inference="pooled")
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
        runs = variant(method, experiment="iii", inference="pooled", **changes)
        seeds = range(runs.seed.min(), runs.seed.max() + 1)
        model = predicted(Protocol.paper("iii", method, **changes), seeds)
        last = (table[table.epoch == table.epoch.max()]["shift"].mean() for table in (runs, model))
        rows[label] = dict(zip(("shift", "predicted"), last, strict=True))
    return pd.DataFrame(rows).T
