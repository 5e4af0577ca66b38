"""Tables of chapter 9: what steps of beta do, a remedy, and the beta that validation chooses."""

from __future__ import annotations

import pandas as pd

from study.chapters.betas.comparisons import (
    STEPS,
    by_reading,
    chosen_betas,
    contrasts,
    paired_by_beta,
)
from study.engine.protocol import EPOCH
from study.figures.text import in_percent, written
from study.stats.intervals import intervals
from study.stores.plan import load_or_run

METRIC = "accuracy_balanced"
BETAS = [0, 0.9, 0.99, 0.999, 0.9999, 0.99999, 1]
LABELS = pd.Index([str(beta) for beta in BETAS], name="beta")


def final_runs() -> pd.DataFrame:
    """Rows of the sweep over beta after the last epoch, with their `by_reading`."""
    choices = ("beta", "loss_normalizer", "output_norm")
    return by_reading(load_or_run("betas", *choices, epoch=EPOCH))


def steps(runs: pd.DataFrame) -> pd.DataFrame:
    """The `contrasts` of each of `STEPS` in balanced accuracy, under each reading."""
    return pd.concat(
        contrasts(runs, *step, METRIC, by=["reading"]).assign(step=name)
        for name, step in STEPS.items()
    )


def whole_step(runs: pd.DataFrame) -> pd.DataFrame:
    """What the step from 0 to 1 does under WBN minus what it does under standard BN."""
    step = contrasts(runs, *STEPS["0 to 1"], METRIC, ["reading"])
    return step[step.contrast == "difference"]


def remedies(reference: pd.DataFrame) -> pd.DataFrame:
    """The correction for reliability weights minus the scale for frequency weights, by beta.

    Parameters
    ----------
    reference
        Rows of `final_runs` under the reference reading, averages over mini-batches.
    """
    other = load_or_run("beta_remedies", "beta", epoch=EPOCH, inference="batch_average")
    scaled = reference[(reference.method == "wlf_wbn") & reference.beta.isin(other.beta)]
    both = [scaled.assign(method="frequency"), other.assign(method="reliability")]
    return paired_by_beta(pd.concat(both), "reliability", "frequency", METRIC)


def validated(reference: pd.DataFrame) -> pd.DataFrame:
    """The beta that validation chooses, how many are tied, and balanced accuracies (%).

    Parameters
    ----------
    reference
        As in `remedies`.
    """
    chosen = chosen_betas(load_or_run("beta_folds", "beta", "fold"), METRIC)
    cell = ["experiment", "method", "beta"]
    result = chosen.merge(intervals(reference, cell, METRIC), on=cell)
    result = result.set_index(["experiment", "method"])
    scores = in_percent(result[["validation"]]).assign(**{"test set": written(result)})
    return result[["beta", "tied"]].join(scores)
