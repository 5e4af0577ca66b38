"""Pictures of mini-batches and of training sets, and a real mini-batch for them."""

from __future__ import annotations

from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from wbn.experiments.block import cut_batches
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import Trainer
from wbn.figures.style import MAJORITY, METHOD_COLORS, MINORITY
from wbn.functional import weighted_moments


class ExampleBatch(NamedTuple):
    """Hidden signals of a mini-batch before normalization."""

    signals: Tensor  # (N, hidden units)
    sample_weight: Tensor  # (N,)
    minority: Tensor  # (N,), whether a sample belongs to the minority class
    unit: int  # the one in which the minority lies farthest from the mean


def example_batch(experiment: str = "i", seed: int = 0) -> ExampleBatch:
    """The first mini-batch with one minority sample, seen by an untrained hidden layer.

    Examples
    --------
    >>> batch = example_batch()
    >>> batch.signals.shape, int(batch.minority.sum())
    (torch.Size([100, 200]), 1)
    """
    protocol = Protocol.paper(experiment, "wlf_wbn").resolved()
    trainer = Trainer(protocol, [seed])
    for index in cut_batches(next(trainer.orders), protocol):
        images, labels, weights = trainer.data.batch(index)
        minority = labels[0] == trainer.data.minority
        if minority.sum() == 1:
            break
    signals = torch.bmm(images, trainer.network.layers[0].linear.mT)[0]
    distance = (signals[minority][0] - signals.mean(0)).abs() / signals.std(0)
    return ExampleBatch(signals, weights[0, :, 0], minority, int(distance.argmax()))


def tile(images: Tensor, columns: int) -> np.ndarray:
    """Images (N, H, W) in rows of `columns`, as one picture; the last row is filled with 0."""
    rows, (height, width) = -(-len(images) // columns), images.shape[1:]
    sheet = np.zeros((rows * columns, height, width), dtype=np.uint8)
    sheet[: len(images)] = images.numpy()
    grid = sheet.reshape(rows, columns, height, width).swapaxes(1, 2)
    return grid.reshape(rows * height, columns * width)


def heights(minority: Tensor) -> np.ndarray:
    """Where the recurring picture puts its points, from -1 to 1, the minority in the middle."""
    return np.where(minority, 0, np.random.default_rng(0).uniform(-1, 1, len(minority)))


def mini_batch(x: Tensor, sample_weight: Tensor, minority: Tensor) -> Figure:
    """The recurring picture: a mini-batch as points whose area is the weight, with both means.

    Parameters
    ----------
    x
        One signal of each sample, shape (N,).
    sample_weight
        What each sample weighs in the loss, shape (N,).
    minority
        Whether each sample belongs to the minority class, shape (N,).
    """
    figure, axis = plt.subplots(figsize=(7, 2.4))
    height = heights(minority)
    area = 12 * sample_weight / sample_weight.median()
    disc = np.pi / 4  # a disc covers less than a diamond of the same size
    for mask, color, marker, size, name in (
        (~minority, MAJORITY, "o", area, "majority"),
        (minority, MINORITY, "D", disc * area, "minority"),
    ):
        axis.scatter(
            x[mask], height[mask.numpy()], s=size[mask], color=color, marker=marker, alpha=0.6,
            linewidths=0, label=name,
        )  # fmt: skip
    for weight, style, name in ((None, "--", "BN's mean"), (sample_weight, "-", "WBN's mean")):
        mean, _ = weighted_moments(x[:, None], weight)
        axis.axvline(mean.item(), color="black", linestyle=style, linewidth=1.5, label=name)
    axis.set_ylim(-1.4, 1.4)
    axis.margins(x=0.1)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("signal before normalization")
    legend = figure.legend(loc="outside upper center", ncols=4)
    for handle in legend.legend_handles[:2]:
        handle.set_sizes([30])
    return figure


def spread_of_means(bn: Tensor, wbn: Tensor, ones: Tensor) -> Figure:
    """Histograms of BN's and WBN's mean of many mini-batches, on the same axes.

    Parameters
    ----------
    bn, wbn
        Means of each batch, shape (B,).
    ones
        Number of minority samples in each batch, shape (B,).
    """
    figure, (above, below) = plt.subplots(2, 1, figsize=(7, 4), sharex=True, sharey=True)
    bins = np.linspace(min(bn.min(), wbn.min()), max(bn.max(), wbn.max()), 90)
    above.hist(bn, bins, color=METHOD_COLORS["wlf_sbn"])
    above.set_title("BN's mean")
    kinds = {"no minority sample": ones == 0, "one": ones == 1, "two or more": ones > 1}
    below.hist(
        [wbn[kind].numpy() for kind in kinds.values()],
        bins,
        stacked=True,
        color=["#00523D", METHOD_COLORS["wlf_wbn"], "#8FD9C3"],
        label=list(kinds),
    )
    below.set_title("WBN's mean")
    below.legend()
    below.set_xlabel("mean of a mini-batch")
    for axis in (above, below):
        axis.set_ylabel("batches")
    return figure


def places_of_batches(place: Tensor, ones: Tensor, lines: dict[str, float]) -> Figure:
    """WBN's mean of each mini-batch by its number of minority samples, and lines across.

    Parameters
    ----------
    place
        Where each batch's mean lies from the majority's mean (0) to the minority's (1).
    ones
        Number of minority samples in each batch.
    lines
        Places to mark, by name.
    """
    figure, axis = plt.subplots(figsize=(7, 3.2))
    jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(ones))
    for mask, color, marker in ((ones == 0, MAJORITY, "o"), (ones > 0, MINORITY, "D")):
        axis.scatter(ones[mask] + jitter[mask], place[mask], color=color, marker=marker, s=18)
    for (name, height), style in zip(lines.items(), ("--", "-"), strict=True):
        axis.axhline(height, color="black", linestyle=style, linewidth=1.5, label=name)
    axis.set_xlabel("minority samples in the mini-batch")
    axis.set_ylabel("WBN's mean")
    axis.set_yticks([0, 0.5, 1], ["majority", "halfway", "minority"])
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def share_of_images(counts: dict[str, list[int]]) -> Figure:
    """One square for each training image of each experiment, the minority class colored.

    Parameters
    ----------
    counts
        Minority and majority class size for each title.
    """
    figure, axes = plt.subplots(1, len(counts), figsize=(7, 3))
    for axis, (title, (minority, majority)) in zip(axes, counts.items(), strict=True):
        kind = np.full(80 * 80, 2)
        kind[: majority + minority] = np.arange(majority + minority) >= majority
        colors = ListedColormap([MAJORITY, MINORITY, "white"])
        axis.imshow(kind.reshape(80, 80).T, cmap=colors, vmin=0, vmax=2, interpolation="nearest")
        axis.set_title(f"{title} {minority} of {majority + minority}")
        axis.axis("off")
    return figure


def digit_sheets(sheets: dict[str, Tensor], columns: int = 9) -> Figure:
    """Sheets of digits side by side, each under its title."""
    rows = max(-(-len(images) // columns) for images in sheets.values())
    height = 0.4 + 5 * rows / columns / len(sheets)
    figure, axes = plt.subplots(1, len(sheets), figsize=(5, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1)
    for axis, (title, images) in zip(axes, sheets.items(), strict=True):
        axis.imshow(tile(images, columns), cmap="gray_r", interpolation="nearest")
        axis.set_title(title)
        axis.axis("off")
    return figure
