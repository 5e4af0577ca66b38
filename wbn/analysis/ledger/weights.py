"""Numbers of class-balanced weights and of ten long-tailed classes."""

from __future__ import annotations

from functools import cache

import pandas as pd

from wbn.analysis.batches import lacks_some_class
from wbn.analysis.betas import STEPS, by_reading, contrasts
from wbn.analysis.claims import EPOCH
from wbn.analysis.ledger.argument import BATCH, sizes
from wbn.analysis.ledger.statement import Statement, rows
from wbn.analysis.long_tail import THIRDS, convolutions, gaps, settings
from wbn.analysis.predictions_long_tail import HIGH, LONG_TAIL
from wbn.analysis.predictions_mismatch import pooling_changes
from wbn.analysis.text import count, percent
from wbn.experiments.data import ALL_EXPERIMENTS, LONG_TAILED

WITHOUT = ("no output BN", "no output BN, data set")


def values_and_readings() -> list[str]:
    """How many values of beta are run, and in how many readings."""
    table = by_reading(rows("betas", "beta", "loss_normalizer", "output_norm"))
    return [count(table.beta.nunique()), count(table.reading.nunique())]


def harmless_beta() -> list[float]:
    """The largest declared step of beta that costs WBN with output BN nothing beyond doubt."""
    choices = ("beta", "loss_normalizer", "output_norm")
    table = by_reading(rows("betas", *choices, epoch=EPOCH, inference="batch_average"))
    normalized = table[table.output_norm != "none"]
    steps = {
        beta: contrasts(normalized, beta, baseline, "accuracy_balanced", by=["reading"])
        for beta, baseline in STEPS.values()
    }
    costs = {
        beta: (found.contrast == "wlf_wbn") & (found.high < 0) for beta, found in steps.items()
    }
    return [max(beta for beta, below in costs.items() if not below.any())]


def classes() -> list[str]:
    """How many classes the long-tailed experiments have."""
    (number,) = {len(ALL_EXPERIMENTS[name].sizes) for name in LONG_TAILED}
    return [count(number)]


@cache
def differences() -> pd.DataFrame:
    """WBN minus standard BN with the same weights, in both networks and all settings."""
    both = {"paper's": gaps(settings()), "convolutional": gaps(convolutions())}
    return pd.concat(both, names=["network"]).reset_index("network")


def most_behind() -> str:
    """Points, with output BN and averages over mini-batches."""
    return percent(-differences().query("setting == 'output BN'")["mean"].min())


def most_ahead() -> str:
    """Points, without output BN and with averages over mini-batches."""
    return percent(differences().query("setting in @WITHOUT")["mean"].max())


def behind_from() -> int:
    """The lowest ratio from which on the interval lies below zero, for both kinds of weights."""
    gap = differences().query("setting == 'output BN' and network == \"paper's\"")
    behind = (gap.high < 0).groupby(gap.experiment.map(LONG_TAILED)).all().sort_index()
    return int(behind.index[behind[::-1].cummin()[::-1]][0])


def held() -> list[str]:
    """How many of the predictions held, and how many there are."""
    outcomes = [prediction.verdict().outcome for prediction in LONG_TAIL]
    return [count(outcomes.count("held")), count(len(outcomes))]


def lacking() -> list[object]:
    """Classes, the lowest ratio at which nine batches of ten lack some class, and their size."""
    lack = {ratio: lacks_some_class(sizes(name), BATCH) for name, ratio in LONG_TAILED.items()}
    return [*classes(), min(ratio for ratio, chance in lack.items() if chance > 0.9), BATCH]


def pooling_helped() -> list[str]:
    """In how many of the paper's experiments pooled statistics raise WBN's minority accuracy."""
    changes = pooling_changes()
    return [count(((changes.method == "wlf_wbn") & (changes.low > 0)).sum())]


TEN = "experiments lt10 to lt200"
SAME_WEIGHTS = (
    "results/long_tail, bare_output and convolution, last epoch, averages over mini-batches: "
    "balanced accuracy, WBN minus standard BN with the same weights, "
)
BEHIND = f"{SAME_WEIGHTS}with output BN, smallest mean"
AHEAD = f"{SAME_WEIGHTS}without output BN, largest mean"

WEIGHTS = (
    Statement(
        "{} values of \u2026 are run in {} readings",
        "plan of results/betas",
        values_and_readings,
    ),
    Statement(
        "up to {} costs WBN nothing",
        f"results/betas, epoch {EPOCH}, averages over mini-batches, output BN: the largest "
        "declared step of beta at which no interval of the change in balanced accuracy lies below "
        "zero",
        harmless_beta,
    ),
)
TEN_CLASSES = (
    *(
        Statement(words, TEN, classes)
        for words in (
            "{} digits, long-tailed",
            "with {} outputs",
            "{} long-tailed classes",
            "with {} classes",
            "hold for {}, and what",
        )
    ),
    Statement("has {}, {}, {} or {} times the images of the smallest", TEN, LONG_TAILED.values),
    Statement(
        "ratios of {} to {}", TEN, lambda: [min(LONG_TAILED.values()), max(LONG_TAILED.values())]
    ),
    Statement(
        "a small convolutional network at {}",
        "plan of results/convolution",
        lambda: [LONG_TAILED[name] for name in rows("convolution").experiment.unique()],
    ),
    Statement(
        "{} predictions, made before any result",
        "wbn.analysis.predictions_long_tail",
        lambda: [count(len(LONG_TAIL))],
    ),
    Statement("{} of {} predictions held", "wbn.analysis.predictions_long_tail, judged", held),
    Statement("up to {} points behind standard BN", BEHIND, lambda: [most_behind()]),
    Statement("up to {} points of balanced accuracy behind", BEHIND, lambda: [most_behind()]),
    Statement("level with it or up to {} points ahead", AHEAD, lambda: [most_ahead()]),
    Statement(
        "level with standard BN or ahead by at most {} points", AHEAD, lambda: [most_ahead()]
    ),
    Statement(
        "from a ratio of {} on, by at most {} points",
        f"{BEHIND}; from which ratio on the intervals of both kinds of weights lie below zero",
        lambda: [behind_from(), most_behind()],
    ),
    Statement(
        "at {} and {} nearly all of it is on the {} rarest classes",
        "ratios and thirds of prediction 5, wbn.analysis.predictions_long_tail",
        lambda: [*(LONG_TAILED[name] for name in HIGH), count(len(THIRDS["smallest"]))],
    ),
    Statement(
        "{} classes of {} to 1 or more, nearly every batch of {} lacks a class",
        f"{TEN}: the ratio from which on more than nine batches of ten do, by inclusion and "
        "exclusion",
        lacking,
    ),
    Statement(
        "helped WBN in {} of the paper's experiments",
        "results/evaluation: in how many the interval of what pooling changes is above zero",
        pooling_helped,
    ),
)
