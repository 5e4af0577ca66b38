"""Tables of chapter 11: the finalists, what else one could use, and the recipe."""

from __future__ import annotations

import pandas as pd

from study.chapters.repair.comparisons import (
    LOSSES,
    METRIC,
    WEIGHTED_LOSS,
    labeled,
    primary,
    ranked,
    secondary,
    verdicts,
)
from study.chapters.repair.predictions import against, balance, baselines
from study.engine.protocol import FAMILY, METHODS
from study.stats.intervals import intervals, paired_difference
from study.stores.plan import load_or_run

RECIPE_EPOCH = 10


def validation() -> pd.DataFrame:
    """Balanced accuracy in validation at the primary endpoint, a column for each loss."""
    return ranked(primary(labeled("repair_folds")))[list(LOSSES)]


def secondary_endpoints() -> pd.DataFrame:
    """The `secondary` endpoints of every finalist, with columns loss, arm and finalist."""
    return pd.concat(
        secondary(loss, arm).assign(loss=loss, arm=arm, finalist=f"{arm}, {loss}")
        for loss, arm in verdicts().index
    )


def balance_by_loss() -> pd.DataFrame:
    """Class averages minus averages without `balance`, for each loss."""
    return pd.concat(balance(loss).assign(loss=loss) for loss in LOSSES)


def baseline_means() -> pd.DataFrame:
    """Balanced accuracy of the `baselines` with 95 % intervals."""
    return intervals(baselines(), ["method", "experiment"], METRIC)


def minus_weighted_loss(store: str = "repair") -> pd.DataFrame:
    """Each other baseline minus the weighted loss, all with standard BN."""
    methods = baselines(store).method.unique()
    return pd.concat(
        against(method, WEIGHTED_LOSS, store).assign(method=method)
        for method in methods
        if method != WEIGHTED_LOSS
    )


def tested_recipe() -> pd.DataFrame:
    """Rows of the recipe on the test set, and of the methods with either normalizer."""
    chosen = load_or_run("recipe_test").assign(method="recipe")
    reference = load_or_run("family", epoch=RECIPE_EPOCH, **FAMILY[0])
    named = {method: f"{name}, data set" for method, name in METHODS.items()}
    dataset = load_or_run("family", epoch=RECIPE_EPOCH, **FAMILY[4]).replace({"method": named})
    return pd.concat([chosen, reference, dataset])


def recipe_leads(tested: pd.DataFrame) -> pd.DataFrame:
    """The recipe minus each other method of `tested_recipe`."""
    methods = tested.method.unique()
    return pd.concat(
        paired_difference(tested, "recipe", method, METRIC)
        for method in methods
        if method != "recipe"
    )
