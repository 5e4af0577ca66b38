"""Numbers of the repaired layer, and of what else one could use."""

from __future__ import annotations

from functools import cache

import pandas as pd

from study.chapters.numbers import states
from study.chapters.repair.comparisons import ADJUSTED, CANDIDATES, FINALISTS, WEIGHTED_LOSS, leads
from study.chapters.repair.predictions import BALANCED, against, balance
from study.engine.data import EXPERIMENTS
from study.engine.protocol import FAMILY
from study.figures.text import count, percent
from study.stores.plan import load_or_run


@states("{0} candidates keep the idea", "chooses {1} finalists for each loss")
def candidates() -> tuple:
    """Declared candidates, and how many of them validation keeps for each loss."""
    return count(len(CANDIDATES)), count(FINALISTS)


@cache
def lead_of_averages() -> pd.DataFrame:
    """Mean leads of class averages over standard BN: losses as rows, problems as columns."""
    found = leads()
    return found[found.arm == BALANCED].pivot(index="loss", columns="experiment", values="mean")


def in_points(means: pd.Series, sign: bool = False) -> list[str]:
    """The means in (i), (ii) and (iii), with two digits."""
    return [percent(means[name], 2, sign) for name in EXPERIMENTS]


@states(
    "ahead of standard BN by {}, {} and {} points of balanced accuracy in (i), (ii) and (iii) with "
    "a weighted loss",
    "by {3}, {4} and {5} with logit adjustment",
)
def on_two_classes() -> tuple:
    """Class averages minus standard BN, `results/repair`: weighted loss, logit adjustment."""
    lead = lead_of_averages()
    return *in_points(lead.loc[WEIGHTED_LOSS]), *in_points(lead.loc[ADJUSTED])


@states("between {} and {} points on ten classes")
def on_ten_classes() -> tuple:
    """Class averages minus standard BN, smallest and largest mean, `results/repair_ten`."""
    found = lead_of_averages().drop(columns=list(EXPERIMENTS))
    return tuple(percent(end, sign=True) for end in (found.min(axis=None), found.max(axis=None)))


@states(
    "with logit adjustment class averages are {}, {} and {} points ahead of the same averages "
    "without balance",
    "with a weighted loss they are {3}, {4} and {5} points ahead of them",
)
def due_to_balance() -> tuple:
    """Class averages minus running averages, `results/repair` and `repair_control`, 40 seeds."""
    found = [balance(loss).set_index("experiment")["mean"] for loss in (ADJUSTED, WEIGHTED_LOSS)]
    return *in_points(found[0], sign=True), *in_points(found[1], sign=True)


@states("logit adjustment minus a weighted loss, both with standard BN: {}, {} and {} points")
def adjustment() -> tuple:
    """Balanced accuracy with standard BN, `results/repair`."""
    means = against(ADJUSTED, WEIGHTED_LOSS).set_index("experiment")["mean"]
    return tuple(in_points(means, sign=True))


@states("in (iii) a weighted loss with standard BN has {} % after 10 epochs and {} % after 20")
def by_epochs() -> tuple:
    """Balanced accuracy of Weighted + BN in (iii), reading 1 of `results/family`."""
    runs = load_or_run("family", method="wlf_sbn", experiment="iii", **FAMILY[0])
    means = runs.groupby("epoch").accuracy_balanced.mean()
    return tuple(percent(means[epoch], 2) for epoch in (10, 20))
