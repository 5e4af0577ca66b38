"""Numbers of ten long-tailed classes."""

from __future__ import annotations

from functools import cache

import pandas as pd

from study.chapters.argument.batches import lacks_some_class
from study.chapters.argument.numbers import BATCH, sizes
from study.chapters.long_tail.comparisons import THIRDS, convolutions, gaps, settings
from study.chapters.long_tail.predictions import HIGH
from study.chapters.numbers import states
from study.chapters.three_experiments.predictions import pooling_changes
from study.chapters.variants import TEN
from study.chapters.why.cause import BOTH_KINDS, gap
from study.engine.data import LONG_TAILED
from study.engine.protocol import EPOCH
from study.figures.text import count
from study.stores.plan import load_or_run


@states(
    "{} digits, long-tailed",
    "with {} outputs",
    "{} long-tailed classes",
    "with {} classes",
    "hold for {}, and what",
    "For {} classes",
    "explains {} classes",
)
def classes() -> str:
    """Classes of the long-tailed experiments."""
    return count(len(sizes("lt200")))


@states("has {0}, {1}, {2} or {3} times the images of the smallest", "ratios of {0} to {3}")
def ratios() -> tuple:
    """Ratios of the largest class to the smallest in lt10 to lt200."""
    return tuple(LONG_TAILED.values())


@states("a small convolutional network at {}")
def ratio_of_convolutions() -> int:
    """The ratio in `results/convolution`."""
    (experiment,) = load_or_run("convolution").experiment.unique()
    return LONG_TAILED[experiment]


@states("at {} and {} nearly all of it is on the {} rarest classes")
def rarest_classes() -> tuple:
    """Ratios and classes of prediction 10.5."""
    return *(LONG_TAILED[name] for name in HIGH), count(len(THIRDS["smallest"]))


@states("{} classes of {} to 1 or more, nearly every batch of {} lacks a class")
def lacking() -> tuple:
    """Classes, and the lowest ratio at which over 90 % of full batches lack a class; their size."""
    lack = {ratio: lacks_some_class(sizes(name), BATCH) for name, ratio in LONG_TAILED.items()}
    return classes(), min(ratio for ratio, chance in lack.items() if chance > 0.9), BATCH


@states("helped WBN in {} of the paper's experiments")
def pooling_helped() -> str:
    """Experiments of the paper in which pooled statistics raise WBN's minority accuracy."""
    changes = pooling_changes()
    return count(((changes.method == "wlf_wbn") & (changes.low > 0)).sum())


@cache
def differences() -> pd.DataFrame:
    """Balanced accuracy, WBN minus standard BN with the same weights: both networks, last epoch."""
    both = {"paper's": gaps(settings()), "convolutional": gaps(convolutions())}
    return pd.concat(both, names=["network"]).reset_index("network")


def extremes(*names: str) -> tuple[float, float]:
    """How far WBN is behind at most, and how far ahead, in these settings."""
    means = differences()["mean"][differences().setting.isin(names)]
    return -means.min(), means.max()


@states("from a ratio of {} on")
def behind_from() -> int:
    """Lowest ratio from which on WBN is behind with both kinds of weights (`results/long_tail`)."""
    found = differences().query("setting == 'output BN' and network == \"paper's\"")
    behind = (found.high < 0).groupby(found.experiment.map(LONG_TAILED)).all().sort_index()
    return behind.index[behind[::-1].cummin()[::-1]][0]


@states(
    "by at most {0} points with averages over mini-batches and {1} with pooled statistics",
    "by up to {0} points with averages over mini-batches at inference and up to {1} with pooled "
    "statistics",
)
def behind_with_output_bn() -> tuple:
    """How far WBN is behind at most, `results/long_tail`, `convolution`: averages, pooled."""
    return tuple(extremes(setting)[0] for setting in ("output BN", "output BN, pooled"))


@states(
    "at a ratio of 200 by {0} points on {2} seeds",
    "at a ratio of 200 by {0} points of balanced accuracy on {2} seeds",
    "seeds and by {3} on {5} others ({1} and {4} with pooled statistics)",
    "{3} and {4} on the {5} other seeds",
)
def behind_at_200() -> tuple:
    """How far WBN is behind at 200, averages and pooled: `results/long_tail`, then `cause_ten`."""
    found = gap(TEN, "accuracy_balanced", experiment="lt200", epoch=EPOCH).set_index("inference")
    first = differences()[differences().experiment == "lt200"].groupby("setting")["mean"].min()
    ours, again = first[["output BN", "output BN, pooled"]], found["mean"][list(BOTH_KINDS)]
    seeds = load_or_run("long_tail").seed.nunique()
    return *-ours, count(seeds), *-again, count(found.n.iloc[0])


@states(
    "level with standard BN or ahead by at most {1} points",
    "between {3} ahead and {2} behind with pooled statistics",
    "and between {5} points ahead and {4} behind",
    "the two are within {6} points of each other under either kind",
)
def without_output_bn() -> tuple:
    """WBN behind, ahead at most, `results/bare_output`, `convolution`: averages, pooled, both."""
    averages = "no output BN", "no output BN, data set"
    pooled = tuple(f"{setting}, pooled" for setting in averages)
    both = extremes(*averages, *pooled)
    return *extremes(*averages), *extremes(*pooled), *both, max(both)
