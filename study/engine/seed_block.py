"""Training and evaluation sets of several seeds, and the order of their mini-batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import torch
from torch import Tensor

from study.engine.data import load_split, stream
from study.engine.protocol import FOLDS, Protocol
from wbn.weights import (
    SCHEMES,
    class_counts,
    inverse_frequency,
    logit_adjustment,
    per_sample,
    rescale,
)


class Block:
    """Training and evaluation sets of several seeds, as rows of one pool of images.

    Attributes
    ----------
    data_set
        The data set from which all images come.
    pool
        Training images of the classes, shape (images, pixels).
    rows, labels
        Training set of each seed: rows of the pool and their labels, shape (S, N).
    classes, counts, minority
        Number of classes K, class sizes N_k of the training sets, shape (K,), and the smallest
        class.
    class_weight, weights
        Weight of each class, shape (K,), and of each sample, shape (S, N, 1); None if all are 1.
        Batch normalization may use them, and the loss does unless it is `plain`.
    plain
        Whether the loss has no weights.
    normalizer
        Divisor of the loss, a number or "batch".
    logit_offset
        What the loss adds to the logits of each class, shape (K,).
    eval_images, eval_labels
        Evaluation set of each seed, shapes (S, T, pixels) and (S, T). A test set is sorted by
        class.
    file_order
        Places of the test images in the order of the data set's file, shape (T,).
    """

    def __init__(self, protocol: Protocol, seeds: list[int]) -> None:
        splits = [load_split(protocol.experiment, seed) for seed in seeds]
        self.data_set, digits = splits[0].data_set, splits[0].digits
        self.classes, self.dtype = len(digits), getattr(torch, protocol.dtype)
        images, labels = self.data_set.load(True)
        kept = torch.isin(labels, torch.tensor(digits))
        self.pool = self.data_set.scaled(images[kept], self.dtype)
        place = kept.cumsum(0) - 1
        self.rows = torch.stack([place[split.train_index] for split in splits])
        self.labels = torch.stack([split.train_labels for split in splits])
        self.file_order = splits[0].test_index.argsort()
        if protocol.evaluate_on == "test":
            test = self.data_set.scaled(splits[0].test_images, self.dtype)
            self.eval_images = test.expand(len(seeds), *test.shape)
            self.eval_labels = splits[0].test_labels.expand(len(seeds), -1)
        else:
            held_out = torch.stack([
                fold_numbers(labels, seed) == protocol.fold
                for labels, seed in zip(self.labels, seeds, strict=True)
            ])  # fmt: skip
            self.eval_images = self.pool[_where(held_out, self.rows)]
            self.eval_labels = _where(held_out, self.labels)
            self.rows, self.labels = (_where(~held_out, t) for t in (self.rows, self.labels))
        self.standard = None
        if protocol.input_scaling == "standardized_apart":
            self.standard = _stacked_moments(self.pool[rows] for rows in self.rows)
            self.eval_images = _standardized(self.eval_images, _stacked_moments(self.eval_images))
        self.counts = class_counts(self.labels[0], self.classes)
        self.minority = int(self.counts.argmin())
        self.plain = protocol.weighting == "uniform"
        self.class_weight = self._class_weight(protocol)
        self.weights = None
        if self.class_weight is not None:
            self.weights = per_sample(self.class_weight, self.labels).to(self.dtype).unsqueeze(-1)
        dataset = protocol.loss_normalizer == "dataset" and not self.plain
        self.normalizer = self.weights.double().mean().item() if dataset else "batch"
        self.logit_offset = logit_adjustment(self.counts, protocol.logit_adjustment).to(self.dtype)

    def _class_weight(self, protocol: Protocol) -> Tensor | None:
        weighting = protocol.norm_weighting if self.plain else protocol.weighting
        if weighting is None:
            return None
        return rescale(SCHEMES[weighting](self.counts, protocol.beta), self.counts, protocol.scale)

    def batch(self, index: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Images, labels and weights at the places `index` (S, n) of each training set."""
        rows, labels = self.rows.gather(1, index), self.labels.gather(1, index)
        images = self.pool.index_select(0, rows.flatten()).view(*rows.shape, -1)
        if self.standard is not None:
            images = _standardized(images, self.standard)
        weights = self.weights
        return images, labels, weights if weights is None else weights.gather(1, index[..., None])


def _stacked_moments(sets: Iterable[Tensor]) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of each pixel in each set, shapes (S, 1, pixels)."""
    moments = [torch.std_mean(images, 0, correction=0, keepdim=True) for images in sets]
    deviation, mean = map(torch.stack, zip(*moments, strict=True))
    return torch.where(deviation > 0, deviation, 1), mean


def _standardized(images: Tensor, by: tuple[Tensor, Tensor]) -> Tensor:
    deviation, mean = by
    return (images - mean) / deviation


def _where(mask: Tensor, values: Tensor) -> Tensor:
    """The values under the mask, row by row. Every row must have equally many."""
    return values[mask].view(len(values), -1)


def fold_numbers(labels: Tensor, seed: int) -> Tensor:
    """A random fold from 0 to 4 for each sample; folds have equal shares of each class.

    Examples
    --------
    >>> labels = torch.tensor([0] * 10 + [1] * 5)
    >>> torch.bincount(fold_numbers(labels, seed=0)[:10]).tolist()
    [2, 2, 2, 2, 2]
    """
    generator, folds = stream(seed, "folds"), torch.empty_like(labels)
    for label in labels.unique():
        places = (labels == label).nonzero().squeeze(1)
        shuffled = places[torch.randperm(len(places), generator=generator)]
        folds[shuffled] = torch.arange(len(places)) % FOLDS
    return folds


def batch_orders(protocol: Protocol, seeds: list[int], labels: Tensor) -> Iterator[Tensor]:
    """Yield the order of each seed's n samples, shape (S, n), epoch by epoch; labels are (S, n)."""
    generators = [stream(seed, "order") for seed in seeds]
    n = labels.shape[1]
    draw = {
        "reshuffle": lambda g, y: torch.randperm(n, generator=g),
        "fixed": lambda g, y: torch.randperm(n, generator=g),
        "replacement": lambda g, y: torch.randint(n, (n,), generator=g),
        "sorted": lambda g, y: torch.arange(n),
        "stratified": _deal,
        "balanced": lambda g, y: torch.multinomial(
            per_sample(inverse_frequency(class_counts(y)), y), n, replacement=True, generator=g
        ),
    }[protocol.batch_order]
    constant = protocol.batch_order in ("fixed", "sorted")
    order = torch.stack([draw(g, y) for g, y in zip(generators, labels, strict=True)])
    while True:
        yield order
        if not constant:
            order = torch.stack([draw(g, y) for g, y in zip(generators, labels, strict=True)])


def _deal(generator: torch.Generator, labels: Tensor) -> Tensor:
    """A random order in which each class is spread evenly over all places."""
    place = torch.empty(len(labels), dtype=torch.float64)
    for label in labels.unique():
        members = (labels == label).nonzero().squeeze(1)
        shuffled = members[torch.randperm(len(members), generator=generator)]
        start = torch.rand(1, generator=generator, dtype=torch.float64)
        place[shuffled] = (torch.arange(len(members)) + start) / len(members)
    return place.argsort()


def cut_batches(order: Tensor, protocol: Protocol) -> list[Tensor]:
    """The order (S, n), cut into mini-batches; `Protocol.last_batch` may drop a short last one."""
    batches = list(order.split(protocol.batch_size, dim=1))
    if protocol.last_batch == "drop" and batches[-1].shape[1] < protocol.batch_size:
        batches.pop()
    if not batches or batches[-1].shape[1] < 2:
        raise ValueError(
            f"{order.shape[1]} training samples in batches of {protocol.batch_size} give no batch, "
            "or a last batch of one sample without variance: change batch_size or last_batch"
        )
    return batches
