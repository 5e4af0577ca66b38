"""Numbers of class-balanced weights and of ten long-tailed classes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pandas as pd

from study.chapters.argument.batches import lacks_some_class
from study.chapters.argument.numbers import BATCH, sizes
from study.chapters.betas.comparisons import STEPS, by_reading, chosen_betas, contrasts
from study.chapters.long_tail.comparisons import THIRDS, convolutions, gaps, settings
from study.chapters.long_tail.predictions import HIGH, LONG_TAIL
from study.chapters.open_choices.effects import STATED
from study.chapters.statement import Statement, rows
from study.chapters.three_experiments.predictions import pooling_changes
from study.chapters.why.cause import gap
from study.engine.data import ALL_EXPERIMENTS, LONG_TAILED
from study.engine.protocol import EPOCH
from study.figures.text import count, percent

WITHOUT = ("no output BN", "no output BN, data set")
WITHOUT_POOLED = tuple(f"{setting}, pooled" for setting in WITHOUT)


def values_and_readings() -> list[str]:
    """How many values of beta are run, and in how many readings."""
    table = by_reading(rows("betas", "beta", "loss_normalizer", "output_norm"))
    return [count(table.beta.nunique()), count(table.reading.nunique())]


@cache
def steps_of_beta() -> pd.DataFrame:
    """What the declared steps of beta change in balanced accuracy, with output BN."""
    choices = ("beta", "loss_normalizer", "output_norm")
    table = by_reading(rows("betas", *choices, epoch=EPOCH, inference=STATED))
    normalized = table[table.output_norm != "none"]
    steps = {
        beta: contrasts(normalized, beta, baseline, "accuracy_balanced", by=["reading"])
        for beta, baseline in STEPS.values()
    }
    return pd.concat(steps, names=["beta"]).reset_index("beta")


def harmless_beta() -> list[float]:
    """The largest declared step of beta that costs WBN nothing beyond doubt."""
    found = steps_of_beta()[steps_of_beta().contrast == "wlf_wbn"]
    costs = (found.high < 0).groupby(found.beta).any()
    return [costs.index[~costs].max()]


def cost_of_full_weights(experiment: str) -> list[str]:
    """What the step to beta = 1 costs WBN: the batch's normalizer, the data set's."""
    found = steps_of_beta()
    step = (found.contrast == "wlf_wbn") & (found.beta == 1) & (found.experiment == experiment)
    means = found[step].set_index("reading")["mean"]
    return [percent(-means[reading]) for reading in ("reference", "loss: data set")]


def cost_of_choosing(*experiments: str) -> list[str]:
    """Points of BN between the beta that validation chose and the best on the test set."""
    chosen = chosen_betas(rows("beta_folds", "beta", "fold"), "accuracy_balanced")
    beta = chosen[chosen.method == "wlf_sbn"].set_index("experiment").beta
    only = {"epoch": EPOCH, "inference": STATED, "method": "wlf_sbn", "loss_normalizer": "batch"}
    means = rows("betas", "beta", **only).groupby(["experiment", "beta"]).accuracy_balanced.mean()
    return [percent(means[e].max() - means[e, beta[e]]) for e in experiments]


def classes() -> list[str]:
    """How many classes the long-tailed experiments have."""
    (number,) = {len(ALL_EXPERIMENTS[name].sizes) for name in LONG_TAILED}
    return [count(number)]


@cache
def differences() -> pd.DataFrame:
    """WBN minus standard BN with the same weights, in both networks and all settings."""
    both = {"paper's": gaps(settings()), "convolutional": gaps(convolutions())}
    return pd.concat(both, names=["network"]).reset_index("network")


def most_behind(setting: str = "output BN") -> str:
    """Points, with output BN; averages over mini-batches, or "output BN, pooled"."""
    means = differences()["mean"][differences().setting == setting]
    return percent(-means.min())


def extremes(settings: Sequence[str]) -> tuple[float, float]:
    """Smallest and largest mean difference in some settings."""
    means = differences()["mean"][differences().setting.isin(settings)]
    return means.min(), means.max()


def most_ahead() -> str:
    """Points, without output BN and with averages over mini-batches."""
    return percent(extremes(WITHOUT)[1])


def with_both_statistics() -> list[str]:
    """Points behind with output BN, averages and pooled, and the largest gap without."""
    apart = max(map(abs, extremes(WITHOUT + WITHOUT_POOLED)))
    return [most_behind(), most_behind("output BN, pooled"), percent(apart)]


def in_short() -> list[object]:
    """Points behind at the largest ratio on two sets of seeds; ahead and behind without output BN.

    The ratio; points and seeds of results/long_tail and of results/cause_ten, with averages; points
    of both with pooled statistics; then the extremes without output BN.
    """
    largest = max(LONG_TAILED, key=LONG_TAILED.get)
    first = [most_behind(), count(rows("long_tail").seed.nunique())]
    own = gap("cause_ten", "accuracy_balanced", experiment=largest, epoch=EPOCH)
    second = {row.inference: percent(-row["mean"]) for _, row in own.iterrows()}
    again = [second["batch_average"], count(int(own.n.iloc[0]))]
    pooled = [most_behind("output BN, pooled"), second["pooled"]]
    low, high = extremes(WITHOUT + WITHOUT_POOLED)
    return [LONG_TAILED[largest], *first, *again, *pooled, percent(high), percent(-low)]


def on_other_seeds() -> list[object]:
    """Points behind at the largest ratio on the seeds of results/cause_ten, and how many."""
    *_, again, seeds, _, pooled, _, _ = in_short()
    return [again, pooled, seeds]


def pooled_without_output() -> list[str]:
    """Points ahead and behind without output BN, with pooled statistics."""
    low, high = extremes(WITHOUT_POOLED)
    return [percent(high), percent(-low)]


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


BETAS = (
    f"results/betas, epoch {EPOCH}, averages over mini-batches, output BN: change in balanced "
    "accuracy from beta = 0"
)
TEN = "experiments lt10 to lt200"
SAME_WEIGHTS = (
    "results/long_tail, bare_output and convolution, last epoch: balanced accuracy, WBN minus "
    "standard BN with the same weights, "
)
BEHIND = f"{SAME_WEIGHTS}averages over mini-batches, with output BN, smallest mean"
AHEAD = f"{SAME_WEIGHTS}averages over mini-batches, without output BN, largest mean"

WEIGHTS = (
    Statement(
        "{} values of \u2026 are run in {} readings",
        "plan of results/betas",
        values_and_readings,
    ),
    Statement(
        "up to {} costs WBN nothing",
        f"{BETAS}: the largest declared step at which no interval lies below zero",
        harmless_beta,
    ),
    Statement(
        "stronger weights cost it: {} points in (iii) in the reference reading, {} with the data "
        "set's loss normalizer",
        f"{BETAS}: Weighted + WBN at beta = 1",
        lambda: cost_of_full_weights("iii"),
    ),
    Statement(
        "costs standard BN {} and {} points against its best",
        f"results/beta_folds chooses; results/betas, epoch {EPOCH}, averages over mini-batches, "
        "reference reading: balanced accuracy of Weighted + BN in (ii) and (iii), largest mean "
        "minus that of the choice",
        lambda: cost_of_choosing("ii", "iii"),
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
            "For {} classes",
            "explains {} classes",
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
        "study.chapters.long_tail.predictions",
        lambda: [count(len(LONG_TAIL))],
    ),
    Statement("{} of {} predictions held", "study.chapters.long_tail.predictions, judged", held),
    *(
        Statement(
            f"at a ratio of {{}} by {{}} points{of} on {{}} seeds and by {{}} on {{}} others "
            "({} and {} with pooled statistics), and between {} points ahead and {} behind",
            f"{SAME_WEIGHTS}output BN, at the largest ratio, and results/cause_ten; largest and "
            "smallest mean without output BN, of both kinds",
            in_short,
        )
        for of in ("", " of balanced accuracy")
    ),
    Statement(
        "level with standard BN or ahead by at most {} points", AHEAD, lambda: [most_ahead()]
    ),
    Statement(
        "from a ratio of {} on, by at most {} points with averages over mini-batches and {} with "
        "pooled statistics",
        f"{BEHIND}; from which ratio on the intervals of both kinds of weights lie below zero",
        lambda: [behind_from(), most_behind(), most_behind("output BN, pooled")],
    ),
    Statement(
        "{} and {} on the {} other seeds",
        "results/cause_ten at the largest ratio: points behind with averages over mini-batches and "
        "with pooled statistics",
        on_other_seeds,
    ),
    Statement(
        "by up to {} points with averages over mini-batches at inference and up to {} with pooled "
        "statistics; without one, the two are within {} points of each other under either kind",
        f"{SAME_WEIGHTS}with both kinds of statistics, with and without output BN",
        with_both_statistics,
    ),
    Statement(
        "between {} ahead and {} behind with pooled statistics",
        f"{SAME_WEIGHTS}without output BN, pooled statistics",
        pooled_without_output,
    ),
    Statement(
        "at {} and {} nearly all of it is on the {} rarest classes",
        "ratios and thirds of prediction 5, study.chapters.long_tail.predictions",
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
