"""Numbers of class-balanced weights."""

from __future__ import annotations

from functools import cache

import pandas as pd

from study.chapters.betas.comparisons import STEPS, by_reading, chosen_betas, contrasts
from study.chapters.numbers import states
from study.engine.protocol import EPOCH
from study.figures.text import count
from study.stores.plan import load_or_run

METRIC = "accuracy_balanced"
AT_END = {"epoch": EPOCH, "inference": "batch_average"}


@cache
def runs() -> pd.DataFrame:
    """Rows of `results/betas` at the last epoch, with their readings."""
    return by_reading(load_or_run("betas", "beta", "loss_normalizer", "output_norm", **AT_END))


@states("{} values of \u2026 are run in {} readings")
def values_and_readings() -> tuple:
    """Values of beta and readings in `results/betas`."""
    return count(runs().beta.nunique()), count(runs().reading.nunique())


@cache
def steps_of_beta() -> pd.DataFrame:
    """What the declared steps of beta change in WBN's balanced accuracy, with output BN."""
    normalized = runs()[runs().output_norm != "none"]
    steps = {step[0]: contrasts(normalized, *step, METRIC, ["reading"]) for step in STEPS.values()}
    found = pd.concat(steps, names=["beta"]).reset_index("beta")
    return found[found.contrast == "wlf_wbn"]


@states("up to {:g} costs WBN nothing")
def harmless_beta() -> float:
    """Largest step from beta = 0 that WBN does not lose by (intervals from `results/betas`)."""
    costs = (steps_of_beta().high < 0).groupby(steps_of_beta().beta).any()
    return costs.index[~costs].max()


@states(
    "stronger weights cost it: {} points in (iii) in the reference reading, {} with the data set's "
    "loss normalizer"
)
def cost_of_full_weights() -> tuple:
    """What WBN loses in (iii) from beta = 0 to 1, `results/betas`: reference, loss: data set."""
    step = steps_of_beta().query("beta == 1 and experiment == 'iii'").set_index("reading")["mean"]
    return -step["reference"], -step["loss: data set"]


@states("costs standard BN {} and {} points against its best")
def cost_of_choosing() -> tuple:
    """Weighted + BN in (ii) and (iii): best beta minus the one from `results/beta_folds`."""
    chosen = chosen_betas(load_or_run("beta_folds", "beta", "fold"), METRIC)
    beta = chosen[chosen.method == "wlf_sbn"].set_index("experiment").beta
    standard = runs().query("reading == 'reference' and method == 'wlf_sbn'")
    means = standard.pivot_table(METRIC, "beta", "experiment")
    return tuple(means[name].max() - means[name][beta[name]] for name in ("ii", "iii"))
