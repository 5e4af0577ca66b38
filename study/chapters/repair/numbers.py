"""Numbers of the repaired layer, and of what else one could use."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pandas as pd

from study.chapters.predictions import scoreboard
from study.chapters.repair.comparisons import ADJUSTED, CANDIDATES, FINALISTS, WEIGHTED_LOSS, leads
from study.chapters.repair.predictions import BALANCED, REPAIR, against, balance
from study.chapters.statement import Statement
from study.engine.data import EXPERIMENTS, LONG_TAILED
from study.engine.protocol import FAMILY
from study.figures.text import count, percent
from study.stores.plan import load_or_run


@cache
def lead() -> pd.DataFrame:
    """Mean leads of class averages over standard BN: losses as rows, problems as columns."""
    found = leads()
    of_averages = found[found.arm == BALANCED]
    return of_averages.pivot(index="loss", columns="experiment", values="mean")


def on_two_classes(loss: str) -> list[str]:
    """The leads in (i), (ii) and (iii)."""
    return [percent(lead().loc[loss, name], 2) for name in EXPERIMENTS]


def on_ten_classes() -> list[str]:
    """Smallest and largest lead at the ratios of ten classes, over both losses."""
    ratios = [name for name in LONG_TAILED if name in lead()]
    values = lead()[ratios]
    return [percent(values.min(axis=None), sign=True), percent(values.max(axis=None), sign=True)]


def by_epochs() -> list[str]:
    """Balanced accuracy of Weighted + BN in (iii) after 10 and 20 epochs, reference reading."""
    rows = load_or_run("family", method="wlf_sbn", experiment="iii", **FAMILY[0])
    at = rows.groupby("epoch").accuracy_balanced.mean()
    return [percent(at[epoch], 2) for epoch in (10, 20)]


def means(table: pd.DataFrame) -> Sequence[str]:
    """Mean differences in (i), (ii) and (iii)."""
    by_experiment = table.set_index("experiment")["mean"]
    return [percent(by_experiment[name], 2, sign=True) for name in EXPERIMENTS]


STORE = "results/repair and repair_ten, study.chapters.repair.comparisons.leads"
CONTROLLED = "results/repair and repair_control, 40 seeds"

REPAIRS = (
    Statement(
        "{} candidates keep the idea",
        "study.chapters.repair.comparisons.CANDIDATES",
        lambda: [count(len(CANDIDATES)).capitalize()],
    ),
    Statement(
        "chooses {} finalists for each loss",
        "study.chapters.repair.comparisons.FINALISTS",
        lambda: [count(FINALISTS)],
    ),
    Statement(
        "ahead of standard BN by {}, {} and {} points of balanced accuracy in (i), (ii) and (iii) "
        "with a weighted loss",
        STORE,
        lambda: on_two_classes(WEIGHTED_LOSS),
    ),
    Statement("by {}, {} and {} with logit adjustment", STORE, lambda: on_two_classes(ADJUSTED)),
    Statement("between {} and {} points on ten classes", STORE, on_ten_classes),
    Statement(
        "in (iii) a weighted loss with standard BN has {} % after 10 epochs and {} % after 20",
        "results/family, reference reading",
        by_epochs,
    ),
    Statement(
        "with logit adjustment class averages are {}, {} and {} points ahead of the same averages "
        "without balance",
        CONTROLLED,
        lambda: means(balance(ADJUSTED)),
    ),
    Statement(
        "with a weighted loss they are {}, {} and {} points ahead of them",
        CONTROLLED,
        lambda: means(balance(WEIGHTED_LOSS)),
    ),
    Statement(
        "logit adjustment minus a weighted loss, both with standard BN: {}, {} and {} points",
        "results/repair",
        lambda: means(against(ADJUSTED, WEIGHTED_LOSS)),
    ),
    Statement(
        "{} of {} predictions about repairs held",
        "study.chapters.repair.predictions",
        lambda: [
            count((scoreboard(REPAIR).outcome == "held").sum()).capitalize(),
            count(len(REPAIR)),
        ],
    ),
)
