"""MNIST, the imbalanced training sets of the paper's Table 1, and long-tailed ones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torchvision.datasets import MNIST

from wbn.experiments.fetch import data_folder
from wbn.weights import class_counts


@dataclass(frozen=True)
class TwoClasses:
    """One column of Table 1: two digits, one of them cut down to a few images."""

    digits: tuple[int, int]
    minority: int
    minority_count: int


EXPERIMENTS = {
    "i": TwoClasses(digits=(0, 1), minority=1, minority_count=45),
    "ii": TwoClasses(digits=(1, 8), minority=1, minority_count=45),
    "iii": TwoClasses(digits=(4, 7), minority=4, minority_count=39),
}
# Beyond the paper: all ten digits, with the ratio of the largest class to the smallest.
LONG_TAILED = {"lt10": 10, "lt50": 50, "lt100": 100, "lt200": 200}
LARGEST = 5000  # images of digit 0 in these; MNIST has at least 5421 of each digit


@dataclass(frozen=True)
class Split:
    """Images and labels of one imbalanced experiment.

    Attributes
    ----------
    digits : tuple of int
        The digit that each class index stands for.
    train_images, test_images : Tensor
        uint8, shape (N, 28, 28).
    train_labels, test_labels : Tensor
        Class indices, int64, shape (N,).
    train_index : Tensor
        Rows of MNIST's training set that the training images are.
    """

    digits: tuple[int, ...]
    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor
    train_index: Tensor

    @property
    def counts(self) -> Tensor:
        """Class sizes `N_k` of the training set."""
        return class_counts(self.train_labels, len(self.digits))

    @property
    def minority(self) -> int:
        """Index of the smallest training class."""
        return int(self.counts.argmin())


@cache
def load_mnist(train: bool) -> tuple[Tensor, Tensor]:
    """Images (uint8, (N, 28, 28)) and digits (int64, (N,)) of MNIST, as fetched by `wbn data`."""
    try:
        dataset = MNIST(data_folder(), train=train)
    except RuntimeError as error:
        raise FileNotFoundError(
            f"no MNIST in {data_folder()}: fetch it with `wbn data`, or point WBN_DATA to it"
        ) from error
    return dataset.data, dataset.targets


def stream(seed: int, purpose: str) -> torch.Generator:
    """A generator of its own for each seed and purpose.

    What one purpose draws never shifts what another draws, so that methods
    compared on one seed share the split, the initialization and the batch order.

    Examples
    --------
    >>> a, b = (torch.rand(1, generator=stream(0, p)) for p in ("split", "order"))
    >>> bool(a == b)
    False
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def imbalanced(labels: Tensor, counts: dict[int, int], seed: int) -> Tensor:
    """Row numbers of `counts[k]` randomly drawn points of each label `k`.

    The rows come class by class, in the order of `counts`, and in increasing
    order within a class. What is drawn of a class depends on the seed and on the
    class, not on the other classes.

    Parameters
    ----------
    labels : Tensor
        Labels of the full data set, shape (N,).
    counts : dict
        How many points to draw of each label.
    seed : int
        Determines the draw.

    Examples
    --------
    >>> imbalanced(torch.tensor([7, 4, 7, 7]), {4: 1, 7: 3}, seed=0)
    tensor([1, 0, 2, 3])
    """
    chosen = []
    for label, count in counts.items():
        rows = (labels == label).nonzero().squeeze(1)
        if not 0 < count <= len(rows):
            raise ValueError(
                f"cannot draw {count} points of class {label}: give between 1 and {len(rows)}, "
                "the number there are"
            )
        order = torch.randperm(len(rows), generator=stream(seed, f"split/{label}"))
        chosen.append(rows[order[:count]].sort().values)
    return torch.cat(chosen)


def long_tail_counts(n_max: int, ratio: float, classes: int) -> list[int]:
    """``n_max * ratio ** (-k / (classes - 1))`` points for class ``k``, rounded.

    The exponential profile of Cui et al. (2019): the first class has `n_max`
    points, the last one `ratio` times fewer.

    Examples
    --------
    >>> long_tail_counts(5000, 100, 3)
    [5000, 500, 50]
    """
    if classes < 2 or ratio < 1 or n_max < ratio:
        raise ValueError(
            f"need classes >= 2, ratio >= 1 and n_max >= ratio, got classes={classes}, "
            f"ratio={ratio}, n_max={n_max}"
        )
    return [round(n_max * ratio ** (-k / (classes - 1))) for k in range(classes)]


def _subset(train: bool, digits: tuple[int, ...], index: Tensor) -> tuple[Tensor, Tensor]:
    images, targets = load_mnist(train)
    labels = torch.full((10,), -1)
    labels[list(digits)] = torch.arange(len(digits))
    return images[index], labels[targets[index]]


def _training_sizes(experiment: str) -> dict[int, int]:
    """How many training images an experiment takes of each of its digits."""
    if experiment in LONG_TAILED:
        return dict(enumerate(long_tail_counts(LARGEST, LONG_TAILED[experiment], classes=10)))
    if experiment not in EXPERIMENTS:
        known = ", ".join((*EXPERIMENTS, *LONG_TAILED))
        raise ValueError(f"no experiment {experiment!r}: there are {known}")
    two, targets = EXPERIMENTS[experiment], load_mnist(True)[1]
    whole = {d: int((targets == d).sum()) for d in two.digits}
    return whole | {two.minority: two.minority_count}


def load_split(experiment: str, seed: int) -> Split:
    """The training and test set of one column of Table 1, or of a long-tailed experiment.

    Of Table 1, the majority class is taken whole and the minority class is drawn at random
    by `seed`. Of a long-tailed experiment, class k is digit k, and each class is drawn: 5000
    images of digit 0, fewer and fewer of the others (`long_tail_counts`); what a seed draws
    of a class at a higher ratio is part of what it draws at a lower one. Test classes are
    taken whole.

    Parameters
    ----------
    experiment : {"i", "ii", "iii", "lt10", "lt50", "lt100", "lt200"}
        Zero against one, one against eight, four against seven; or ten digits, of which the
        first has 10 to 200 times as many images as the last.
    seed : int
        Determines which images are drawn.

    Examples
    --------
    >>> load_split("i", seed=0).counts
    tensor([5923.,   45.], dtype=torch.float64)
    >>> load_split("lt100", seed=0).counts.int().tolist()
    [5000, 2997, 1797, 1077, 646, 387, 232, 139, 83, 50]
    """
    sizes = _training_sizes(experiment)
    digits, test_targets = tuple(sizes), load_mnist(False)[1]
    train_index = imbalanced(load_mnist(True)[1], sizes, seed)
    test_index = torch.cat([(test_targets == d).nonzero().squeeze(1) for d in digits])
    return Split(
        digits,
        *_subset(True, digits, train_index),
        *_subset(False, digits, test_index),
        train_index=train_index,
    )
