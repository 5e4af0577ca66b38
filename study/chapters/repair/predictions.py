"""The predictions of chapter 11, about repairs of weighted BN and what else one could use.

Declared with their criteria before the runs of results/repair_folds, repair and repair_ten.
"""

from __future__ import annotations

import pandas as pd

from study.chapters.predictions import Prediction
from study.chapters.repair.comparisons import (
    ADJUSTED,
    CONTROL,
    DECLARED,
    EPOCH,
    METRIC,
    PLAIN,
    SAMPLER,
    STANDARD,
    WEIGHTED_LOSS,
    earned,
    labeled,
    leads,
    primary,
)
from study.stats.intervals import paired_difference

THRESHOLD = "validated threshold"
BALANCED = "class averages"


def baselines(store: str = "repair") -> pd.DataFrame:
    """Rows of the baselines on the paper's experiments, or on ten classes, `method` in words.

    Weighted loss, logit adjustment and oversampling with standard BN at the primary endpoint, and
    on two classes the plain loss with standard BN and a threshold from validation.
    """
    rows = labeled(store)
    standard = primary(rows[rows.arm == STANDARD])
    moved = rows[(rows.loss == PLAIN) & (rows.inference == "validated_threshold")]
    moved = moved[moved.epoch == EPOCH].assign(loss=THRESHOLD)
    table = pd.concat([standard, moved])
    return table.assign(method=table.loss, inference="primary")


def against(method: str, baseline: str, store: str = "repair") -> pd.DataFrame:
    """`paired_difference` of two of `baselines`."""
    return paired_difference(baselines(store), method, baseline, METRIC)


def balance(loss: str = WEIGHTED_LOSS, seeds: int = 40) -> pd.DataFrame:
    """Class averages ahead of running averages that are not balanced, on the first seeds."""
    rows = pd.concat(primary(labeled(store)) for store in ("repair", "repair_control"))
    rows = rows[(rows.loss == loss) & (rows.seed < rows.seed.min() + seeds)]
    rows = rows.assign(method=rows.arm, inference="primary")
    return paired_difference(rows, BALANCED, CONTROL, METRIC)


def _none_earned(loss: str, table: pd.DataFrame) -> bool:
    groups = table[table.loss == loss].groupby("arm")
    return not any(earned(rows) for _, rows in groups)


REPAIR = (
    Prediction(
        "11.1 weighted loss",
        "With a weighted loss no finalist earns its place beside standard BN.",
        DECLARED,
        "no finalist has intervals above zero in two of (i) to (iii) and means of at least -0.5 "
        "points in every problem",
        leads,
        lambda table: _none_earned(WEIGHTED_LOSS, table),
    ),
    Prediction(
        "11.2 logit adjustment",
        "With logit adjustment no finalist earns its place beside standard BN either.",
        DECLARED,
        "as in 11.1",
        leads,
        lambda table: _none_earned(ADJUSTED, table),
    ),
    Prediction(
        "11.3 adjustment on two classes",
        "Logit adjustment with standard BN, the best on ten classes, is behind a weighted loss "
        "with standard BN on the paper's own problems.",
        DECLARED,
        "the intervals of the difference lie below zero in at least two of (i) to (iii)",
        lambda: against(ADJUSTED, WEIGHTED_LOSS),
        lambda table: bool((table.high < 0).sum() >= 2),
    ),
    Prediction(
        "11.4 oversampling",
        "Oversampling is behind a weighted loss with standard BN in (iii).",
        DECLARED,
        "the interval of the difference lies below zero in (iii)",
        lambda: against(SAMPLER, WEIGHTED_LOSS),
        lambda table: bool(table.set_index("experiment").high["iii"] < 0),
    ),
    Prediction(
        "11.5 threshold",
        "A plain loss with a threshold from validation is within a point of a weighted loss with "
        "standard BN in all three experiments.",
        DECLARED,
        "the three mean differences lie between -1 and 1 point",
        lambda: against(THRESHOLD, WEIGHTED_LOSS),
        lambda table: bool((table["mean"].abs() <= 0.01).all()),
    ),
    Prediction(
        "11.6 balance",
        "Balance matters: class averages are ahead of running averages that are not balanced.",
        "wbn/analysis/predictions_repair.py, 2026-11-17, when validation was known, before the "
        "test runs",
        "the intervals of the difference lie above zero in at least two of (i) to (iii), ten seeds",
        lambda: balance(seeds=10),
        lambda table: bool((table.low > 0).sum() >= 2),
    ),
    Prediction(
        "11.7 second finalists",
        "The second finalists of both losses, behind standard BN in validation, do not earn a "
        "place.",
        "wbn/analysis/predictions_repair.py, 2026-11-17, when the first finalists' results were "
        "known, before the runs of the second",
        "as in 11.1 and 11.2, for the finalists other than class averages",
        leads,
        lambda table: all(
            _none_earned(loss, table[table.arm != BALANCED]) for loss in (WEIGHTED_LOSS, ADJUSTED)
        ),
    ),
    Prediction(
        "11.8 balance again",
        "With forty seeds and either loss, class averages are still not ahead of running averages "
        "that are not balanced.",
        "wbn/analysis/predictions_repair.py, 2026-11-17, when ten seeds were known, before the "
        "thirty others",
        "with neither loss do the intervals lie above zero in two of (i) to (iii)",
        lambda: pd.concat(balance(loss).assign(loss=loss) for loss in (WEIGHTED_LOSS, ADJUSTED)),
        lambda table: bool(((table.low > 0).groupby(table.loss).sum() < 2).all()),
    ),
)
