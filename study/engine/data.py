"""Data sets, and the training sets drawn from them: those of the paper's Table 1, and others."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property

import torch
from torch import Tensor

from study.engine.fetch import MNIST_FILES, File, require_data
from wbn.weights import class_counts


@dataclass(frozen=True)
class DataSet:
    """A data set, which is loaded when it is used.

    Parameters
    ----------
    name, source
        Its name, where it comes from and how it is fetched.
    shape
        Shape of one input: height and width of an image, or the length of a row.
    classes
        Number of classes. Labels are 0 to ``classes - 1``.
    largest
        Largest value of an input. Inputs are divided by it, so that they lie between 0 and 1.
    load
        Gives inputs (N, \\*shape) and labels (N,) of the training set (True) or test set (False).
    files
        Files that `load` verifies and reads; none for data made in memory.
    """

    name: str
    source: str
    shape: tuple[int, ...]
    classes: int
    largest: float
    load: Callable[[bool], tuple[Tensor, Tensor]]
    files: Mapping[str, File] = field(default_factory=dict, hash=False)

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the data: of what ``sha256sum *`` prints in the folder of its files.

        For data made in memory: SHA-256 of the types, shapes and bytes of inputs and labels.

        Examples
        --------
        >>> MNIST.checksum
        '474311efcf1fd213e64768801dc6195673bffb8385179d6c55cd8748b9e2e8ca'
        """
        digest = hashlib.sha256()
        if self.files:
            for name, file in sorted(self.files.items()):
                digest.update(f"{file.sha256}  {name}\n".encode())
        else:
            for tensor in (*self.load(True), *self.load(False)):
                digest.update(f"{tensor.dtype} {tuple(tensor.shape)}\n".encode())
                digest.update(tensor.numpy().tobytes())
        return digest.hexdigest()

    def scaled(self, inputs: Tensor, dtype: torch.dtype) -> Tensor:
        """Inputs (N, \\*shape) as rows of numbers between 0 and 1, as networks take them."""
        return inputs.flatten(1).to(dtype) / self.largest


@cache
def load_mnist(train: bool) -> tuple[Tensor, Tensor]:
    """Images (uint8) and digits (int64) of MNIST, as fetched by `wbn data`.

    Each process verifies the files when it first reads them.
    """
    # datasets.MNIST would read files of its old versions instead, without verifying them.
    from torchvision.datasets.mnist import read_image_file, read_label_file

    part = "train" if train else "t10k"
    raw = require_data({name: MNIST_FILES[name] for name in MNIST_FILES if name.startswith(part)})
    images, digits = raw / f"{part}-images-idx3-ubyte", raw / f"{part}-labels-idx1-ubyte"
    return read_image_file(str(images)), read_label_file(str(digits))


MNIST = DataSet(
    name="MNIST",
    source="LeCun, Bottou, Bengio and Haffner (1998), fetched by `wbn data`",
    shape=(28, 28),
    classes=10,
    largest=255,
    load=load_mnist,
    files=MNIST_FILES,
)


def stream(seed: int, purpose: str) -> torch.Generator:
    """A separate random generator for each seed and purpose.

    What is drawn for one purpose does not change what is drawn for another. So methods that are
    compared on one seed share the split, the initialization and the batch order.

    Examples
    --------
    >>> a, b = (torch.rand(1, generator=stream(0, p)) for p in ("split", "order"))
    >>> bool(a == b)
    False
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def imbalanced(labels: Tensor, counts: dict[int, int | None], seed: int) -> Tensor:
    """Row numbers of `counts[k]` randomly drawn points of each label `k`.

    The rows come class by class, in the order of `counts`, and in increasing order within a
    class. The draw of a class depends on the seed and on the class, but not on the other classes.

    Parameters
    ----------
    labels
        Labels of the full data set, shape (N,).
    counts
        How many points to draw of each label. None takes all.
    seed
        Seed of the draw.

    Examples
    --------
    >>> imbalanced(torch.tensor([7, 4, 7, 7]), {4: 1, 7: 3}, seed=0)
    tensor([1, 0, 2, 3])
    """
    chosen = []
    for label, count in counts.items():
        rows = (labels == label).nonzero().squeeze(1)
        if count is not None:
            if not 0 < count <= len(rows):
                raise ValueError(
                    f"cannot draw {count} points of class {label}, which has {len(rows)}: give "
                    f"a number between 1 and {len(rows)}"
                )
            order = torch.randperm(len(rows), generator=stream(seed, f"split/{label}"))
            rows = rows[order[:count]].sort().values
        chosen.append(rows)
    return torch.cat(chosen)


def long_tail_counts(n_max: int, ratio: float, classes: int) -> list[int]:
    """Class sizes ``n_max * ratio ** (-k / (classes - 1))``, rounded, for class ``k``.

    This is the exponential profile of Cui et al. (2019): the first class has `n_max` points, the
    last one `ratio` times fewer.

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


@dataclass(frozen=True)
class Experiment:
    """Some classes of a data set, and how many training samples are drawn of each.

    Parameters
    ----------
    data_set
        The data set.
    sizes
        Number of training samples of each label, in the order of the class indices. None takes
        all samples of a label.
    """

    data_set: DataSet
    sizes: dict[int, int | None]

    @property
    def digits(self) -> tuple[int, ...]:
        """The data set's label that each class index stands for."""
        return tuple(self.sizes)


# The columns of Table 1: two digits each, one of them with only a few training images.
EXPERIMENTS = {
    "i": Experiment(MNIST, {0: None, 1: 45}),
    "ii": Experiment(MNIST, {1: 45, 8: None}),
    "iii": Experiment(MNIST, {4: 39, 7: None}),
}
# Beyond the paper: all digits, by the ratio of the largest class to the smallest.
LONG_TAILED = {"lt10": 10, "lt50": 50, "lt100": 100, "lt200": 200}
LARGEST = 5000  # images of digit 0; MNIST has at least 5421 of each digit
# Experiments that a protocol can name. To use other data, add an entry.
ALL_EXPERIMENTS = EXPERIMENTS | {
    name: Experiment(MNIST, dict(enumerate(long_tail_counts(LARGEST, ratio, MNIST.classes))))
    for name, ratio in LONG_TAILED.items()
}


@dataclass(frozen=True)
class Split:
    """Training and test set of one experiment and seed. Inputs are loaded when they are used.

    Parameters
    ----------
    data_set
        The data set from which it was drawn.
    digits
        The data set's label that each class index stands for.
    train_index, test_index
        Rows of the data set's training and test set.
    """

    data_set: DataSet
    digits: tuple[int, ...]
    train_index: Tensor
    test_index: Tensor

    @property
    def train_images(self) -> Tensor:
        """Inputs of the training set, of the data set's type, shape (N, \\*shape)."""
        return self.data_set.load(True)[0][self.train_index]

    @property
    def test_images(self) -> Tensor:
        """Inputs of the test set."""
        return self.data_set.load(False)[0][self.test_index]

    @cached_property
    def train_labels(self) -> Tensor:
        """Class indices of the training set, int64, shape (N,)."""
        return self._classes(self.data_set.load(True)[1][self.train_index])

    @cached_property
    def test_labels(self) -> Tensor:
        """Class indices of the test set."""
        return self._classes(self.data_set.load(False)[1][self.test_index])

    def _classes(self, digits: Tensor) -> Tensor:
        return (digits[:, None] == torch.tensor(self.digits)).long().argmax(1)

    @cached_property
    def counts(self) -> Tensor:
        """Class sizes `N_k` of the training set."""
        return class_counts(self.train_labels, len(self.digits))

    @property
    def minority(self) -> int:
        """Index of the smallest training class."""
        return int(self.counts.argmin())


def load_split(experiment: str, seed: int) -> Split:
    """The training and test set of one column of Table 1, or of a long-tailed experiment.

    Table 1: the majority class is whole, and `seed` draws images of the minority class.
    Long-tailed: class k is digit k, and `seed` draws images of each class, 5000 of digit 0 and
    fewer of each further digit (`long_tail_counts`). The images that a seed draws at a higher
    ratio are among those that it draws at a lower ratio. The test set has all images of its
    classes.

    Parameters
    ----------
    experiment
        "i" (0 and 1), "ii" (1 and 8) or "iii" (4 and 7); or "lt10", "lt50", "lt100" or "lt200",
        all digits, where the first has 10 to 200 times as many images as the last.
    seed
        Seed of the draw.

    Examples
    --------
    >>> load_split("i", seed=0).counts
    tensor([5923.,   45.], dtype=torch.float64)
    >>> load_split("lt100", seed=0).counts.int().tolist()
    [5000, 2997, 1797, 1077, 646, 387, 232, 139, 83, 50]
    """
    if experiment not in ALL_EXPERIMENTS:
        raise ValueError(f"no experiment {experiment!r}: there are {', '.join(ALL_EXPERIMENTS)}")
    data_set, sizes = ALL_EXPERIMENTS[experiment].data_set, ALL_EXPERIMENTS[experiment].sizes
    train, test = (data_set.load(part)[1] for part in (True, False))
    return Split(
        data_set,
        digits=tuple(sizes),
        train_index=imbalanced(train, sizes, seed),
        test_index=imbalanced(test, dict.fromkeys(sizes), seed),
    )
