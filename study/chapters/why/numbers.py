"""Numbers of what weighted BN loses and why, on seeds that no other store has used."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pandas as pd

from study.chapters.long_tail.predictions import LONG_TAIL
from study.chapters.predictions import Prediction
from study.chapters.repair.predictions import REPAIR
from study.chapters.statement import Statement, rows
from study.chapters.table_2.predictions import FORENSICS
from study.chapters.three_experiments.numbers import runs
from study.chapters.three_experiments.predictions import MISMATCH
from study.chapters.why.cause import (
    AS_IT_IS,
    BOTH_KINDS,
    NORMALIZERS,
    TEN,
    TWO,
    arm,
    arm_means,
    parts,
    remaining,
)
from study.chapters.why.cause import gap as paired_gap
from study.chapters.why.predictions import CAUSE, shifts
from study.engine.protocol import EPOCH
from study.figures.text import count, percent


@cache
def gap(label: str, normalizer: str = "batch") -> tuple[float, float]:
    """What Weighted + WBN is behind in (iii), with averages and with pooled statistics."""
    found = remaining(TWO, "accuracy_balanced", loss_normalizer=normalizer)[label]
    means = found[found.experiment == "iii"].set_index("inference")["mean"]
    averages, pooled = (-means[kind] for kind in BOTH_KINDS)
    return averages, pooled


def frozen(normalizer: str = "batch") -> list[str]:
    """Points behind as it is and with a frozen shift: averages, then pooled."""
    both = zip(gap(AS_IT_IS, normalizer), gap("shift frozen", normalizer), strict=True)
    return [percent(points) for pair in both for points in pair]


def frozen_under_both() -> list[str]:
    """`frozen` with the batch's normalizer, then with the data set's."""
    return [*frozen("batch"), *frozen("dataset")]


def given_back() -> list[str]:
    """Points that a frozen shift gives back, of those behind: averages, pooled; both normalizers.

    With the data set's normalizer and pooled statistics it is nothing, and only the gap is said.
    """
    pairs = [
        pair
        for normalizer in NORMALIZERS
        for pair in zip(gap(AS_IT_IS, normalizer), gap("shift frozen", normalizer), strict=True)
    ]
    points = [percent(p) for whole, left in pairs for p in (whole - left, whole)]
    return [*points[:6], points[7]]


@cache
def best_left() -> list[str]:
    """Of the gap, what is left at the best threshold, averages and pooled, both normalizers."""
    tables = [
        parts(TWO, experiment="iii", loss_normalizer=n).set_index(["inference", "part"])["mean"]
        for n in NORMALIZERS
    ]
    return [
        percent(-means[kind, part])
        for kind in BOTH_KINDS
        for means in tables
        for part in ("gap, best threshold", "gap")
    ]


def relative_threshold(method: str, inference: str, normalizer: str = "batch") -> str:
    """Where the threshold lies in (iii), in the mean over seeds."""
    only = {"experiment": "iii", "epoch": EPOCH, "loss_normalizer": normalizer}
    return f"{arm(method, inference=inference, **only).relative_threshold.mean():.2f}"


def thresholds() -> list[object]:
    """The epoch; of WBN pooled, averages, with the batch's normalizer and the data set's."""
    return [
        EPOCH,
        *(
            relative_threshold("wlf_wbn", kind, normalizer)
            for normalizer in NORMALIZERS
            for kind in reversed(BOTH_KINDS)
        ),
    ]


def all_of_it_is_order() -> list[int]:
    """The first epoch of the long runs at which no threshold repairs anything, pooled."""
    whole, best = (
        remaining_by_epoch(metric) for metric in ("accuracy_balanced", "accuracy_best_threshold")
    )
    return [int((best <= whole).idxmax())]


def remaining_by_epoch(metric: str) -> pd.Series:
    """Gap of the long runs of (iii) with pooled statistics, by epoch."""
    rows = paired_gap(TWO, metric, experiment="iii", epochs=100, inference="pooled")
    return rows.set_index("epoch")["mean"]


def failures(predictions: Sequence[Prediction]) -> int:
    """How many of them failed."""
    return sum(p.verdict().outcome == "failed" for p in predictions)


@cache
def scores() -> list[object]:
    """Of all predictions: held, all; failed of the mismatch; of the cause, all; of the others."""
    groups = (MISMATCH, CAUSE, LONG_TAIL, FORENSICS, REPAIR)
    failed, everything = [failures(some) for some in groups], sum(map(len, groups))
    first, second, *others = (count(number) for number in failed)
    return [everything - sum(failed), everything, first, second, len(CAUSE), *others]


@cache
def drift() -> tuple[int, str]:
    """How many mean shifts were predicted, and the largest error."""
    found = shifts()
    return len(found), f"{(found['shift'] - found.shift_predicted).abs().max():.2f}"


@cache
def outcomes() -> list[str]:
    """Of all predictions, in order."""
    return [prediction.verdict().outcome for prediction in CAUSE]


def held() -> list[object]:
    """How many predictions there are, and how many held."""
    return [len(outcomes()), count(outcomes().count("held"))]


def lost_with_running_sums() -> list[str]:
    """Percent of the minority that falls short of the threshold."""
    means = arm_means(TWO, "accuracy_minority").set_index(["arm", "experiment", "inference"])[
        "mean"
    ]
    return [percent(1 - means["running sums", "iii", "batch_average"], 0)]


def seeds() -> list[int]:
    """First and last of the two stores."""
    both = [rows(store).seed for store in ("cause", "cause_ten")]
    return [min(map(min, both)), max(map(max, both))]


AT_END = f"results/cause, epoch {EPOCH}, experiment (iii)"
GAP = (
    f"{AT_END}: balanced accuracy, Weighted + WBN minus Weighted + BN, as it is and with a frozen "
    "output shift"
)
JUDGED = "study.chapters.why.predictions, judged"
THRESHOLD = f"{AT_END}: mean of the relative threshold"

CAUSES = (
    Statement(
        "shrinks from {} to {} points of balanced accuracy with averages, and from {} to {} with "
        "pooled statistics; with the data set's normalizer from {} to {}, and not at all with "
        "pooled statistics ({} and {})",
        GAP,
        frozen_under_both,
    ),
    Statement(
        "shrinks from {} to {} points of balanced accuracy with averages over mini-batches at "
        "inference, and from {} to {} with pooled statistics; with the data set's normalizer from "
        "{} to {}, and not at all with pooled statistics ({} and {})",
        GAP,
        frozen_under_both,
    ),
    Statement(
        "{1} points of balanced accuracy behind in (iii) in place of {0} with averages over "
        "mini-batches, {3} in place of {2} with pooled statistics; with the data set's normalizer "
        "{5} in place of {4}, and {7} in place of {6}",
        GAP,
        frozen_under_both,
    ),
    Statement(
        "gives back {} of the {} points of balanced accuracy that weighted BN is behind in (iii) "
        "with averages, and {} of {} with pooled statistics; with the data set's normalizer {} of "
        "{}, and nothing of {}",
        GAP,
        given_back,
    ),
    Statement(
        "{} of {} points of balanced accuracy are left in (iii), and {} of {} with the data set's "
        "normalizer. With pooled statistics {} of {} and {} of {} are left",
        f"{AT_END}: balanced accuracy at each network's best threshold, Weighted + WBN minus "
        "Weighted + BN",
        best_left,
    ),
    *(
        Statement(
            words,
            f"{THRESHOLD} of Weighted + BN",
            lambda: [relative_threshold("wlf_sbn", "pooled")],
        )
        for words in (
            "its threshold is at {} of the way",
            "standard BN has it at {}",
            "in (iii) its threshold is at {}.",
        )
    ),
    *(
        Statement(words, f"{THRESHOLD} of Weighted + WBN, both kinds and normalizers", thresholds)
        for words in (
            "after {} epochs is at {} with pooled statistics at inference and at {} with averages "
            "over mini-batches ({} and {} with the data set's normalizer)",
            "after {} epochs is at {} with pooled statistics and at {} with averages over "
            "mini-batches ({} and {} with the data set's loss normalizer)",
        )
    ),
    Statement("{} mean shifts to within {}", "prediction 7.1, its evidence", drift),
    Statement(
        "in the batches predict, to within {}", "prediction 7.1, its evidence", lambda: drift()[1:]
    ),
    Statement("Of {} predictions, declared before their runs and not blind, {} held", JUDGED, held),
    Statement(
        "Of {} predictions {} held and {} failed",
        JUDGED,
        lambda: [*held(), count(outcomes().count("failed"))],
    ),
    Statement(
        "lose {} % of the minority of (iii)",
        f"{AT_END}: minority accuracy of Weighted + WBN with running sums",
        lost_with_running_sums,
    ),
    Statement(
        "{} of {} held. Of the mismatch (3), {} failed",
        "all predictions, judged",
        lambda: scores()[:3],
    ),
    Statement("Of the causes (7), {} of {} failed", JUDGED, lambda: scores()[3:5]),
    Statement(
        "Of ten classes (10), {} failed",
        "study.chapters.long_tail.predictions, judged",
        lambda: scores()[5:6],
    ),
    Statement(
        "Of where Table 2 could come from (8), {} failed",
        "study.chapters.table_2.predictions, judged",
        lambda: scores()[6:7],
    ),
    Statement(
        "Of repairs (11), {} failed",
        "study.chapters.repair.predictions, judged",
        lambda: scores()[7:],
    ),
    Statement(
        "after {} epochs all of it",
        "results/cause, long runs of (iii), pooled statistics: gap at the best threshold and gap",
        all_of_it_is_order,
    ),
    Statement(
        "nothing else had used ({} runs", "results/cause and cause_ten", lambda: [runs(TWO, TEN)]
    ),
    Statement("on seeds {} to {}", "plans of results/cause and results/cause_ten", seeds),
)
