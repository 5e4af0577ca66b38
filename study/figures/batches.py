"""Pictures of mini-batches and of training sets."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from torch import Tensor

from study.figures.style import (
    ACCENTS,
    INK,
    MAJORITY,
    MINORITY,
    WIDTH,
    fitted,
    panels,
    steady_jitter,
)
from wbn.functional import weighted_moments

HELD = ["no minority sample", "one", "two or more"]
ROWS = 42  # of squares in the picture of a training set


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
    figure, (axis,) = panels(2.2)
    height = heights(minority)
    area = 10 * sample_weight / sample_weight.median()
    disc = np.pi / 4  # a disc covers less than a diamond of the same size
    for mask, color, marker, size, name in (
        (~minority, MAJORITY, "o", area, "majority"),
        (minority, MINORITY, "D", disc * area, "minority"),
    ):
        axis.scatter(
            x[mask], height[mask.numpy()], s=size[mask], color=color, marker=marker, alpha=0.8,
            linewidths=0, label=name,
        )  # fmt: skip
    for weight, style, name in ((None, "--", "BN's mean"), (sample_weight, "-", "WBN's mean")):
        mean, _ = weighted_moments(x[:, None], weight)
        axis.axvline(mean.item(), color=INK, linestyle=style, linewidth=2, label=name)
    axis.set_ylim(-1.4, 1.4)
    axis.margins(x=0.1)
    axis.set_yticks([])
    axis.spines["left"].set_visible(False)
    axis.set_xlabel("signal before normalization")
    legend = figure.legend(loc="outside upper center", ncols=4, columnspacing=1, handlelength=1.5)
    for handle in legend.legend_handles[:2]:
        handle.set_sizes([30])
    return figure


def weight_in_loss(
    majority: np.ndarray, minority: np.ndarray, normalizers: Mapping[str, np.ndarray]
) -> Figure:
    """What each class weighs in the loss of a batch, by its minority samples, as stacked bars.

    Parameters
    ----------
    majority, minority
        Total weight of each class in a batch with 0, 1, ... minority samples.
    normalizers
        For each title, what the loss of such a batch is divided by.
    """
    classes = {"majority": majority, "minority": minority}
    rows = pd.concat(
        pd.DataFrame({"title": title, "class": name, "weight": weight / z}).rename_axis("samples")
        for title, z in normalizers.items()
        for name, weight in classes.items()
    ).reset_index()
    grid = sns.displot(
        rows, x="samples", weights="weight", col="title", hue="class", multiple="stack",
        hue_order=["minority", "majority"], palette=[MINORITY, MAJORITY], discrete=True,
        shrink=0.7, alpha=1, linewidth=0,
    )  # fmt: skip
    grid.set(xticks=range(len(majority)))
    grid.set_titles("{col_name}")
    grid.set_axis_labels("", "weight in the loss")
    grid.figure.supxlabel("minority samples in the batch", size="medium")
    return fitted(grid, 2.8)


def variance_ratios(ratios: Mapping[int, np.ndarray]) -> Figure:
    """Histograms of a batch's variance relative to the training set's, on a logarithmic axis.

    Parameters
    ----------
    ratios
        For two batch sizes, the ratios: the first is drawn filled, the second as a line.
    """
    figure, (axis,) = panels(2.6)
    looks = zip(ACCENTS, (True, False), strict=True)
    for (size, values), (color, fill) in zip(ratios.items(), looks, strict=True):
        sns.histplot(
            x=values, ax=axis, color=color, fill=fill, element="step", log_scale=True, bins=50,
            binrange=(-1.5, 1), linewidth=2, alpha=0.6 if fill else 1, label=f"{size} images",
        )  # fmt: skip
    axis.set(xlabel="variance of a batch / of the training set", ylabel="frequency", yticks=[])
    axis.set_xticks([0.1, 1, 10], ["0.1", "1", "10"])
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def _held(ones: Tensor) -> pd.Categorical:
    """Which of `HELD` each batch is, by its number of minority samples."""
    return pd.cut(ones.numpy(), [-1, 0, 1, np.inf], labels=HELD)


def spread_of_means(bn: Tensor, wbn: Tensor, ones: Tensor) -> Figure:
    """Histograms of BN's and WBN's mean of many mini-batches, on the same axes.

    Parameters
    ----------
    bn, wbn
        Means of each batch, shape (B,).
    ones
        Number of minority samples in each batch, shape (B,).
    """
    samples = _held(ones)
    rows = pd.concat(
        pd.DataFrame({"title": title, "mean": means.numpy(), "samples": samples})
        for title, means in (("BN's mean", bn), ("WBN's mean", wbn))
    )
    grid = sns.displot(
        rows, x="mean", row="title", hue="samples", multiple="stack", bins=90, alpha=1,
        element="step", palette=[INK, *ACCENTS], linewidth=0,
    )  # fmt: skip
    grid.set_titles(row_template="{row_name}")
    grid.set_axis_labels("mean of a mini-batch", "batches")
    return fitted(grid, 3.6)


def places_of_batches(place: Tensor, ones: Tensor, lines: Mapping[str, float]) -> Figure:
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
    figure, (axis,) = panels(3)
    rows = pd.DataFrame({"ones": ones.numpy(), "place": place.numpy()})
    with steady_jitter():
        sns.stripplot(
            rows, x="ones", y="place", hue=_held(ones), palette=[INK, *ACCENTS],
            native_scale=True, jitter=0.3, size=5, alpha=0.8, legend=False, ax=axis,
        )  # fmt: skip
    for (name, height), style in zip(lines.items(), ("--", "-"), strict=True):
        axis.axhline(height, color=INK, linestyle=style, linewidth=1.5, label=name)
    axis.set(xlabel="minority samples in the mini-batch", ylabel="WBN's mean")
    axis.set_yticks([0, 0.5, 1], ["majority", "halfway", "minority"])
    figure.legend(loc="outside upper center", ncols=2)
    return figure


def share_of_images(counts: Mapping[str, tuple[int, int]]) -> Figure:
    """A square for each training image of each experiment, the minority's in a block of its own.

    Parameters
    ----------
    counts
        Minority and majority class size for each title.
    """
    sizes = [
        (rare, int(np.ceil(rare**0.5)), many, -(-many // ROWS)) for rare, many in counts.values()
    ]
    pitch = 72 * WIDTH / max(side + 2 + columns for _, side, _, columns in sizes)
    width, tall = 0.72 * pitch, (ROWS + 10) * pitch  # of a square and of an experiment, points
    figure = plt.figure(figsize=(WIDTH, tall * len(counts) / 72))
    axis = figure.add_axes((0, 0, 1, 1), xlim=(0, 72 * WIDTH), ylim=(tall * len(counts), 0))
    axis.axis("off")
    for n, (title, (rare, side, many, columns)) in enumerate(zip(counts, sizes, strict=True)):
        axis.text(0, n * tall + 7.5 * pitch, f"{title} {rare} of {many + rare}")
        for number, rows, left, color in (
            (many, ROWS, 0, MAJORITY),
            (rare, side, (columns + 2) * pitch, MINORITY),
        ):
            for row in range(rows):  # a line whose dashes are as long as they are thick
                end = left + (len(range(row, number, rows)) - 1) * pitch + width
                axis.plot(
                    [left, end], [(n + 1) * tall - (row + 0.5) * pitch] * 2, color=color,
                    linewidth=width, dashes=(1, pitch / width - 1), dash_capstyle="butt",
                )  # fmt: skip
    return figure


def digit_sheets(sheets: Mapping[str, Tensor], columns: int = 9) -> Figure:
    """Sheets of digits side by side, each under its title."""
    rows = max(-(-len(images) // columns) for images in sheets.values())
    figure, axes = panels(0.4 + 5 * rows / columns / len(sheets), columns=len(sheets))
    figure.get_layout_engine().set(w_pad=0.1)
    for axis, (title, images) in zip(axes, sheets.items(), strict=True):
        axis.imshow(tile(images, columns), cmap="gray_r", interpolation="none")
        axis.set_title(title)
        axis.axis("off")
    return figure
