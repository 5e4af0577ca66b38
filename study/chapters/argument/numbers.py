"""Numbers that follow from the paper's Table 1 and from one mini-batch, before any training."""

from __future__ import annotations

from functools import cache
from math import ceil

import numpy as np
from scipy.stats import hypergeom

from study.chapters.argument.batches import ExampleBatch, example_batch, lacks_class
from study.chapters.statement import Statement
from study.engine.data import EXPERIMENTS, load_split
from study.engine.fetch import MNIST_FILES
from study.engine.protocol import Protocol
from study.figures.text import MINUS, count, percent, share
from wbn.functional import weighted_moments
from wbn.weights import effective_sample_size, inverse_frequency, per_sample

BATCH = Protocol.paper("i", "wlf_wbn").resolved().batch_size


@cache
def sizes(experiment: str) -> tuple[int, ...]:
    """Training images of each class, in the order of the class indices."""
    return tuple(load_split(experiment, seed=0).counts.int().tolist())


@cache
def batch() -> ExampleBatch:
    """The mini-batch of the recurring picture."""
    return example_batch("i", seed=0)


def means() -> tuple[str, str]:
    """Of the unit that the picture shows: the mean of the batch and the weighted mean."""
    x = batch().signals[:, batch().unit, None]
    both = (weighted_moments(x, w)[0].item() for w in (None, batch().sample_weight))
    plain, weighted = (f"{mean:.2f}".replace("-", MINUS) for mean in both)
    return plain, weighted


def largest_share() -> list[int]:
    """Whole percent of the training images above which no minority lies."""
    return [ceil(100 * max(min(sizes(e)) / sum(sizes(e)) for e in EXPERIMENTS))]


def loss_gone() -> float:
    r"""Share of the loss :math:`\log 2` that the base rate takes away, an entropy."""
    p = np.array(sizes("i")) / sum(sizes("i"))
    return 1 + (p @ np.log(p)) / np.log(2)


def batches_without_minority() -> str:
    """The simple fraction that is near the share of such batches in all three experiments."""
    (same,) = {share(lacks_class(sizes(name), BATCH).max()) for name in EXPERIMENTS}
    return same


def majority_shares() -> tuple[str, str]:
    """The majority's mean share of a batch's loss: the batch's normalizer, the data set's."""
    majority, minority = sizes("i")
    weight = inverse_frequency(sizes("i")).numpy()
    ones = np.arange(min(minority, BATCH) + 1)
    chance = hypergeom(majority + minority, minority, BATCH).pmf(ones)
    zeros = (BATCH - ones) * weight[0]
    total = len(sizes("i")) * BATCH  # what a batch weighs on average
    return share(chance @ (zeros / (zeros + ones * weight[1]))), share(chance @ zeros / total)


def worth_with_one() -> str:
    """Kish's effective size of a batch with one minority sample, experiment (i)."""
    labels = [0] * (BATCH - 1) + [1]
    weights = per_sample(inverse_frequency(sizes("i")), labels)
    return f"{effective_sample_size(weights).item():.2f}"


TABLE_1 = "the paper's Table 1, as load_split draws it"
FIRST = f"{TABLE_1}, experiment (i)"
PICTURE = "example_batch, experiment (i), seed 0, at initialization"

ARGUMENT = (
    *(
        Statement(words, "the paper's Table 1", lambda: [count(len(EXPERIMENTS))])
        for words in (
            "all {} experiments",
            "the {} experiments",
            "{} two-class problems",
            "{} training sets",
        )
    ),
    *(
        Statement(words, FIRST, lambda: [count(len(sizes("i")))])
        for words in ("what {} classes showed", "weighs less than with {}")
    ),
    Statement(
        "equal Table 1 in all {} numbers",
        "class sizes for training and for testing in three experiments",
        lambda: [count(2 * sum(len(sizes(name)) for name in EXPERIMENTS))],
    ),
    Statement("the {} original files", "fetch.MNIST_FILES", lambda: [count(len(MNIST_FILES))]),
    Statement(
        "all {} minority images among {} digits",
        FIRST,
        lambda: [sizes("i")[1], sum(sizes("i"))],
    ),
    Statement(
        "{} images of the digit 0, the majority, and {} of the digit 1", FIRST, lambda: sizes("i")
    ),
    Statement(
        "reduced to {} or {} images", TABLE_1, lambda: sorted({min(sizes(e)) for e in EXPERIMENTS})
    ),
    *(
        Statement(words, f"{TABLE_1}: the largest share of a minority, rounded up", largest_share)
        for words in ("fewer than {} % of the training images", "fewer than {} % minority images")
    ),
    Statement(
        "Which {} (or {}) minority images",
        TABLE_1,
        lambda: sorted({min(sizes(e)) for e in EXPERIMENTS}, reverse=True),
    ),
    Statement(
        "counts one image as {}",
        f"{FIRST}: inverse class frequency of a one",
        lambda: [f"{sum(sizes('i')) / sizes('i')[1]:.0f}"],
    ),
    Statement(
        "{} % of the loss is gone",
        f"{FIRST}: cross entropy at the base rate against one half each",
        lambda: [percent(loss_gone(), 0)],
    ),
    Statement(
        "About {} of the batches hold no minority sample",
        f"{TABLE_1}: hypergeometric probabilities for batches of {BATCH}, in each experiment",
        lambda: [batches_without_minority()],
    ),
    Statement(
        "about {} of the total instead of {}",
        f"{FIRST}: the majority's mean share of the loss, by normalizer of a batch",
        majority_shares,
    ),
    Statement(
        "in batches of {}, more in a batch of {}",
        "Protocol.batch_size, and the last batch of experiment (iii)",
        lambda: [BATCH, sum(sizes("iii")) % BATCH],
    ),
    Statement(
        "the last batch of {} images",
        f"{TABLE_1}, experiment (iii), in batches of {BATCH}",
        lambda: [count(sum(sizes("iii")) % BATCH)],
    ),
    Statement(
        "one minority sample in a batch of {} leaves an effective size of {}",
        f"{FIRST}: Kish's effective sample size",
        lambda: [BATCH, worth_with_one()],
    ),
    Statement(
        "{} images of the digit 0 and a single image of the digit 1",
        PICTURE,
        lambda: [int((~batch().minority).sum())],
    ),
    Statement("A mini-batch of {} images", PICTURE, lambda: [len(batch().minority)]),
    Statement(
        "An image of a 0 weighs {} and the image of a 1 weighs {}",
        f"{FIRST}: inverse class frequencies",
        lambda: [f"{weight:.2f}" for weight in inverse_frequency(sizes("i")).tolist()],
    ),
    Statement(
        "subtracts {}, a mean in the middle of the majority; the weighted mean is {}",
        PICTURE,
        means,
    ),
)
