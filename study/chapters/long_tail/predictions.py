"""The ten predictions of chapter 10, about ten long-tailed classes.

They are conditions on means, at epoch 20 (10 for the convolutional network), with averages over
mini-batches at inference where they don't say otherwise. CB is beta = 0.999, IF is beta = 1.
"""

from __future__ import annotations

from functools import cache

import pandas as pd

from study.chapters.long_tail.comparisons import (
    THIRDS,
    WEIGHTS,
    convolutions,
    gaps,
    settings,
    variant_means,
    wbn_minus_sbn,
)
from study.chapters.predictions import Prediction
from study.engine.protocol import EPOCH, FAMILY
from study.stats.intervals import paired_difference
from study.stores.plan import load_or_run

DECLARED = "plans of long_tail, bare_output and convolution, 2026-11-16 10:43 UTC"
HIGH = ["lt100", "lt200"]
UNMOVED = 0.005  # half a point
STANDARD, WEIGHTED = ([f"{weights} + {bn}" for weights in WEIGHTS] for bn in ("BN", "WBN"))

_settings = cache(settings)


def _gap(setting: str) -> pd.DataFrame:
    """Balanced accuracy, WBN minus standard BN with the same weights."""
    return wbn_minus_sbn(_settings()[setting])


def by_ratio(rows: pd.DataFrame) -> pd.DataFrame:
    """Means with a row for each kind of weights and a column for each ratio."""
    return rows.pivot_table("mean", "weights", "experiment", sort=False)


def sign_grows(gap: pd.DataFrame) -> bool:
    """Prediction 1, from the gap with output BN."""
    mean = by_ratio(gap)
    return bool((mean < 0).all(axis=None) and (mean.lt200 < mean.lt10).all())


def two_and_ten_classes() -> pd.DataFrame:
    """The gap with inverse frequencies, in experiment (iii) and with ten classes."""
    two = load_or_run("family", experiment="iii", epoch=EPOCH, **FAMILY[0])
    two = paired_difference(two, "wlf_wbn", "wlf_sbn", "accuracy_balanced")
    ten = _gap("output BN")
    return pd.concat([two, ten[ten.weights == "IF-weighted"]], ignore_index=True)


def smaller_than_two(gap: pd.DataFrame) -> bool:
    """Prediction 2."""
    mean = gap.set_index("experiment")["mean"]
    return bool((mean.drop("iii") > mean["iii"]).all())


def full_weights_cost_more(gap: pd.DataFrame) -> bool:
    """Prediction 3."""
    mean = by_ratio(gap)[HIGH]
    return bool((mean.loc["IF-weighted"] < mean.loc["CB-weighted"]).all())


def pooling() -> pd.DataFrame:
    """What pooling changes for each variant, and what the gap is then.

    The sampler is left out: the training set as one batch is not what it trained on.
    """
    means = variant_means(_settings())
    change = (means["output BN, pooled"] - means["output BN"]).drop("Sampler + BN")
    gap = by_ratio(_gap("output BN, pooled"))
    return pd.concat({"change": change, "gap": gap}, names=["quantity", "of"])


def pooling_raises(evidence: pd.DataFrame) -> bool:
    """Prediction 4."""
    change, gap = evidence.loc["change"], evidence.loc["gap"]
    raised = (change.loc[WEIGHTED, HIGH] > 0).all(axis=None)
    unmoved = (change.loc[["Plain + BN", *STANDARD]].abs() < UNMOVED).all(axis=None)
    return bool(raised and (gap[HIGH] < 0).all(axis=None) and unmoved)


def by_third() -> pd.DataFrame:
    """The gap on the largest, middle and smallest classes at high ratios."""
    rows = pd.concat(
        wbn_minus_sbn(_settings()["output BN"], f"accuracy_{third}").assign(third=third)
        for third in THIRDS
    )
    return rows[rows.experiment.isin(HIGH)]


def smallest_lose(gap: pd.DataFrame) -> bool:
    """Prediction 5."""
    mean = gap.pivot(index=["weights", "experiment"], columns="third", values="mean")
    return bool((mean.idxmin(axis=1) == "smallest").all() and (mean["largest"] >= 0).all())


def alternatives_rank(means: pd.DataFrame) -> bool:
    """Prediction 6."""
    ranked = ["IF-weighted + WBN", "Sampler + BN", "IF-weighted + BN"]
    between = means.loc[ranked].diff().iloc[1:] > 0
    return bool(between.all(axis=None) and (means[HIGH].idxmax() == "Adjusted + BN").all())


def without_output() -> pd.DataFrame:
    """The gap with and without output BN, in the paper's network and the convolutional one."""
    paper = gaps({name: _settings()[name] for name in ("output BN", "no output BN")})
    rows = pd.concat([paper.assign(network="paper's"), gaps(convolutions()).assign(network="conv")])
    return rows[rows.experiment.isin(HIGH)]


def smaller_without(gap: pd.DataFrame) -> bool:
    """Prediction 9."""
    keys = ["network", "weights", "experiment"]
    mean = gap.pivot(index=keys, columns="setting", values="mean")
    return bool((mean["no output BN"] > mean["output BN"]).all())


def other_normalizer() -> pd.DataFrame:
    """The gap without output BN and with the data set's normalizer, and who is better still."""
    means = variant_means(_settings())
    standard = means["output BN"].loc[STANDARD, HIGH]
    weighted = means["no output BN, data set"].loc[WEIGHTED, HIGH]
    still = standard.set_axis(WEIGHTS) - weighted.set_axis(WEIGHTS)
    gap = by_ratio(_gap("no output BN, data set"))[HIGH]
    return pd.concat({"gap": gap, "BN with output BN ahead of it": still}, names=["quantity", "of"])


LONG_TAIL = (
    Prediction(
        name="10.1 sign",
        words=(
            "Class-balanced weights with WBN are behind the same weights with standard BN, at "
            "every ratio and for both beta, and farther behind at 200 than at 10."
        ),
        declared=DECLARED,
        criterion="The gap is below zero everywhere, and lower at 200 than at 10, for CB and IF.",
        evidence=lambda: _gap("output BN"),
        judge=sign_grows,
    ),
    Prediction(
        name="10.2 size",
        words=(
            "With inverse frequencies (beta = 1) the gap is smaller than in experiment (iii), even "
            "at a ratio of 200."
        ),
        declared=DECLARED,
        criterion="The gap for IF is nearer to zero than that of (iii), at every ratio.",
        evidence=two_and_ten_classes,
        judge=smaller_than_two,
    ),
    Prediction(
        name="10.3 weights",
        words="At 100 and 200 the gap is larger for beta = 1 than for 0.999.",
        declared=DECLARED,
        criterion="The gap is lower for IF than for CB, at 100 and at 200.",
        evidence=lambda: _gap("output BN"),
        judge=full_weights_cost_more,
    ),
    Prediction(
        name="10.4 inference",
        words=(
            "Pooled statistics raise WBN at 100 and 200, do not bring it ahead of standard BN "
            "there, and move plain and weighted loss with standard BN by less than half a point."
        ),
        declared=DECLARED,
        criterion=(
            "At 100 and 200 pooling changes CB-weighted + WBN and IF-weighted + WBN by more than "
            "zero, and the gap stays below zero; Plain + BN, CB-weighted + BN and IF-weighted + BN "
            "change by less than 0.5 points."
        ),
        evidence=pooling,
        judge=pooling_raises,
    ),
    Prediction(
        name="10.5 classes",
        words=(
            "At 100 and 200 WBN loses most in the three smallest classes and nothing in the three "
            "largest."
        ),
        declared=DECLARED,
        criterion=(
            "Of the three thirds of the classes the gap is lowest on the smallest, and not below "
            "zero on the largest."
        ),
        evidence=by_third,
        judge=smallest_lose,
    ),
    Prediction(
        name="10.6 alternatives",
        words=(
            "The class-balanced sampler lies between the two arms with beta = 1. At 100 and 200 "
            "logit adjustment is the best of all."
        ),
        declared=DECLARED,
        criterion=(
            "IF-weighted + WBN is below Sampler + BN and Sampler + BN below IF-weighted + BN at "
            "every ratio; Adjusted + BN has the largest mean at 100 and 200."
        ),
        evidence=lambda: variant_means(_settings())["output BN"],
        judge=alternatives_rank,
    ),
    Prediction(
        name="10.7 calibration",
        words="WBN has a larger calibration error than standard BN with the same weights.",
        declared=DECLARED,
        criterion="Its error minus that of standard BN is above zero, at every ratio, CB and IF.",
        evidence=lambda: wbn_minus_sbn(_settings()["output BN"], "calibration_error"),
        judge=lambda gap: bool((gap["mean"] > 0).all()),
    ),
    Prediction(
        name="10.8 convolutions",
        words="The sign of the first line carries over.",
        declared=DECLARED,
        criterion="With output BN the gap of the convolutional network is below zero, CB and IF.",
        evidence=lambda: wbn_minus_sbn(convolutions()["output BN"]),
        judge=lambda gap: bool((gap["mean"] < 0).all()),
    ),
    Prediction(
        name="10.9 no output BN",
        words=(
            "Without normalization of the output the gap is smaller than with it, at 100 and 200 "
            "and in the convolutional network, for both beta."
        ),
        declared=DECLARED,
        criterion="The gap without output BN is above the gap with it, in each of these cases.",
        evidence=without_output,
        judge=smaller_without,
    ),
    Prediction(
        name="10.10 the other normalizer",
        words=(
            "With the data set's loss normalizer in addition, WBN is ahead of standard BN at 100 "
            "and 200, for both beta; and standard BN with output BN is better still."
        ),
        declared=DECLARED,
        criterion=(
            "Both are above zero: the gap, and the mean of standard BN with output BN minus that "
            "of WBN without it."
        ),
        evidence=other_normalizer,
        judge=lambda evidence: bool((evidence > 0).all(axis=None)),
    ),
)
