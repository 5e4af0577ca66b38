"""Numbers that follow from Table 1 and from one mini-batch, before any training."""

from __future__ import annotations

from functools import cache
from math import ceil

import numpy as np
from scipy.stats import hypergeom

from study.chapters.argument.batches import example_batch, lacks_class
from study.chapters.numbers import states
from study.engine.data import EXPERIMENTS, load_split
from study.engine.fetch import MNIST_FILES
from study.engine.protocol import Protocol
from study.figures.text import count, share
from wbn.functional import weighted_moments
from wbn.weights import effective_sample_size, inverse_frequency, per_sample

BATCH = Protocol.paper("i", "wlf_wbn").resolved().batch_size


@cache
def sizes(experiment: str) -> tuple[int, ...]:
    """Training images of each class, in the order of the class indices."""
    return tuple(load_split(experiment, seed=0).counts.int().tolist())


@states("all {} experiments", "the {} experiments", "{} two-class problems", "{} training sets")
def experiments() -> str:
    """Experiments of the paper (Table 1)."""
    return count(len(EXPERIMENTS))


@states("what {0} classes showed", "weighs less than with {0}", "equal Table 1 in all {1} numbers")
def classes() -> tuple:
    """Classes of an experiment; class sizes in Table 1, for training and for testing."""
    return count(len(sizes("i"))), count(2 * sum(len(sizes(name)) for name in EXPERIMENTS))


@states("the {} original files")
def files() -> str:
    """Files of MNIST that are downloaded."""
    return count(len(MNIST_FILES))


@states(
    "all {1} minority images among {2} digits",
    "{0} images of the digit 0, the majority, and {1} of the digit 1",
)
def first_experiment() -> tuple:
    """Training images in experiment (i): majority, minority and both."""
    return *sizes("i"), sum(sizes("i"))


@states("reduced to {0} or {1} images", "Which {1} (or {0}) minority images")
def minorities() -> tuple:
    """Sizes of the minority class in the three training sets."""
    return tuple(sorted({min(sizes(name)) for name in EXPERIMENTS}))


@states("fewer than {} % of the training images", "fewer than {} % minority images")
def largest_minority() -> int:
    """The largest share of minority images in a training set, in percent, rounded up."""
    return ceil(100 * max(min(sizes(name)) / sum(sizes(name)) for name in EXPERIMENTS))


@states(
    "An image of a 0 weighs {0:.2f} and the image of a 1 weighs {1:.2f}",
    "counts one image as {1:.0f}",
)
def weights() -> tuple:
    """Inverse class frequencies of experiment (i)."""
    return tuple(inverse_frequency(sizes("i")).tolist())


@states("{:.0f} % of the loss is gone")
def loss_gone() -> float:
    """Percent of the loss log 2 that is gone when (i) is predicted at its base rate."""
    p = np.array(sizes("i")) / sum(sizes("i"))
    return 100 * (1 + (p @ np.log(p)) / np.log(2))


@states("About {} of the batches hold no minority sample")
def batches_without_minority() -> str:
    """Probability that a batch has no minority image, about the same in each experiment."""
    (same,) = {share(lacks_class(sizes(name), BATCH).max()) for name in EXPERIMENTS}
    return same


@states("about {} of the total instead of {}")
def majority_shares() -> tuple:
    """The majority's mean share of the loss in (i): divided by the batch weight; by a constant."""
    majority, minority = sizes("i")
    zero, one = weights()
    ones = np.arange(min(minority, BATCH) + 1)
    chance = hypergeom(majority + minority, minority, BATCH).pmf(ones)
    zeros = (BATCH - ones) * zero
    mean_total = len(sizes("i")) * BATCH
    return share(chance @ (zeros / (zeros + ones * one))), share(chance @ zeros / mean_total)


@states("in batches of {0}, more in a batch of {1}", "the last batch of {2} images")
def batches() -> tuple:
    """Size of a mini-batch, and of the last one in experiment (iii)."""
    last = sum(sizes("iii")) % BATCH
    return BATCH, last, count(last)


@states("one minority sample in a batch of {} leaves an effective size of {:.2f}")
def worth_with_one() -> tuple:
    """Kish's effective sample size of a batch with one minority image, experiment (i)."""
    sample_weight = per_sample(inverse_frequency(sizes("i")), [0] * (BATCH - 1) + [1])
    return BATCH, effective_sample_size(sample_weight).item()


@states(
    "A mini-batch of {0} images",
    "{1} images of the digit 0 and a single image of the digit 1",
    "subtracts {2:.2f}, a mean in the middle of the majority; the weighted mean is {3:.2f}",
)
def picture() -> tuple:
    """The mini-batch in the picture: images, majority images, mean and weighted mean of a unit."""
    batch = example_batch("i", seed=0)
    x = batch.signals[:, batch.unit, None]
    means = (weighted_moments(x, w)[0].item() for w in (None, batch.sample_weight))
    return len(batch.minority), int((~batch.minority).sum()), *means
