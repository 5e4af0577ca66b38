"""The five predictions of chapter 3, about the size mismatch and its price."""

from __future__ import annotations

import pandas as pd

from study.chapters.claims import CLAIMS
from study.chapters.predictions import Prediction, evidence_of
from study.chapters.why.interventions import runs_by_batch_size
from study.engine.protocol import EPOCH, FAMILY
from study.stats.intervals import intervals, paired_difference
from study.stores.plan import load_or_run

DECLARED = "chapter 3, 2026-11-16 02:43 UTC"
EARLY = 2  # the epoch at which the noise of the first epochs is looked at
UNMOVED = 0.005  # half a point


def minority_gains() -> pd.DataFrame:
    """Minority accuracy, Weighted + WBN minus Weighted + BN, in each experiment and reading."""
    family, claim = load_or_run("family"), CLAIMS[2]
    gains = pd.concat(claim.under(reading, family).evidence for reading in FAMILY)
    return gains[gains.metric == "accuracy_minority"]


def scale_changes() -> pd.DataFrame:
    """Overall accuracy of Weighted + WBN, the scale mean_one minus the paper's, in each reading."""
    runs, claim = pd.concat([load_or_run("family"), load_or_run("corrections")]), CLAIMS[4]
    changes = pd.concat(claim.under(reading, runs).evidence for reading in FAMILY)
    return changes[changes.method == "scale mean_one"]


def pooling_changes() -> pd.DataFrame:
    """Minority accuracy with pooled statistics minus averages, on the same networks."""
    runs = load_or_run("evaluation", epoch=EPOCH, inference=["batch_average", "pooled"])
    return pd.concat(
        _pooled_minus_average(networks).assign(method=method)
        for method, networks in runs.groupby("method")
    )


def pooling_by_batch_size() -> pd.DataFrame:
    """The same for Weighted + WBN in batches of 100, 200 and 500, in (ii) and (iii)."""
    return pd.concat(
        _pooled_minus_average(networks.assign(epoch=EPOCH)).assign(batch_size=size)
        for size, networks in runs_by_batch_size().groupby("batch_size")
    )


def early_spread() -> pd.DataFrame:
    """Standard deviation over seeds of the minority accuracy after the first epochs."""
    runs = load_or_run("family", epoch=EARLY, method=["wlf_sbn", "wlf_wbn"], **FAMILY[0])
    return intervals(runs, ["experiment", "method"], "accuracy_minority")


def _pooled_minus_average(networks: pd.DataFrame) -> pd.DataFrame:
    kinds = networks.assign(method=networks.inference, inference="both")
    return paired_difference(kinds, "pooled", "batch_average", "accuracy_minority")


def _moves_weighted_only(changes: pd.DataFrame) -> bool:
    weighted = changes.method == "wlf_wbn"
    moved = (changes.low > 0) | (changes.high < 0)
    inside = (changes.low > -UNMOVED) & (changes.high < UNMOVED)
    return bool(moved[weighted].all() and inside[~weighted].all())


def _shrinks(changes: pd.DataFrame) -> bool:
    by_size = changes.pivot(index="batch_size", columns="experiment", values="mean").abs()
    return bool((by_size.sort_index().diff().iloc[1:] < 0).all(axis=None))


def _weighted_spreads_more(spread: pd.DataFrame) -> bool:
    sd = spread.pivot(index="experiment", columns="method", values="sd")
    return bool((sd["wlf_wbn"] > sd["wlf_sbn"]).all())


MISMATCH = (
    Prediction(
        name="3.1 mismatch",
        words=(
            "If the mismatch is what hurts, then (c) has a better minority accuracy than (b), in "
            "all three experiments and under every reading of what the paper leaves open."
        ),
        declared=DECLARED,
        criterion="The 95 % intervals of the 24 paired differences, (c) minus (b), are above zero.",
        evidence=minority_gains,
        judge=lambda gains: bool((gains.low > 0).all()),
    ),
    Prediction(
        name="3.2 scale",
        words=(
            "On the scales paper and mean_one, (c) gives the same accuracies up to the spread "
            "over seeds."
        ),
        declared=DECLARED,
        criterion="None of the 24 intervals of the difference in overall accuracy excludes zero.",
        evidence=scale_changes,
        judge=lambda changes: bool(((changes.low <= 0) & (changes.high >= 0)).all()),
    ),
    Prediction(
        name="3.3 inference",
        words=(
            "Pooled statistics in place of averages over batches change the accuracies of (c) and "
            "leave those of (a) and (b) as they are."
        ),
        declared=DECLARED,
        criterion=(
            "In each experiment the interval of the change in minority accuracy excludes zero for "
            "(c), and lies within half a point of zero for (a) and (b)."
        ),
        evidence=pooling_changes,
        judge=_moves_weighted_only,
    ),
    Prediction(
        name="3.4 batch size",
        words=(
            "In larger batches a missing minority sample is rarer, so the change of prediction 3 "
            "shrinks."
        ),
        declared=DECLARED,
        criterion=(
            "In (ii) and (iii) the mean change of (c) is smaller in size in batches of 200 than "
            "of 100, and of 500 than of 200."
        ),
        evidence=pooling_by_batch_size,
        judge=_shrinks,
    ),
    Prediction(
        name="3.5 noise",
        words=(
            "From seed to seed, the minority accuracy of (c) after the first epochs varies more "
            "than that of (b)."
        ),
        declared=DECLARED,
        criterion="In each experiment its standard deviation after epoch 2 is larger.",
        evidence=early_spread,
        judge=_weighted_spreads_more,
    ),
)
JUDGED = tuple(MISMATCH[n - 1] for n in (1, 2, 3, 5))  # by the runs of this chapter


def evidence(number: str) -> pd.DataFrame:
    """The numbers that decide one of these predictions, such as "3.1"."""
    return evidence_of(MISMATCH, number)
