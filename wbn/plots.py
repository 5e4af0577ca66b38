"""The house figures: one palette, one style, one function for each recurring picture."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

# Okabe and Ito's palette, readable with color-vision deficiencies.
MAJORITY, MINORITY = "#0072B2", "#D55E00"
METHOD_COLORS = {"lf_sbn": "#56B4E9", "wlf_sbn": "#E69F00", "wlf_wbn": "#009E73"}


def use_house_style() -> None:
    """Set matplotlib's defaults for every figure of the book."""
    plt.rcParams.update(
        {
            "figure.dpi": 150,
            "figure.constrained_layout.use": True,
            "font.size": 11,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": 11,
            "axes.titlelocation": "left",
            "legend.frameon": False,
        }
    )


def tile(images: Tensor, columns: int) -> np.ndarray:
    """Images (N, 28, 28) in rows of `columns`, as one picture; the last row is filled with 0."""
    rows = -(-len(images) // columns)
    sheet = np.zeros((rows * columns, 28, 28), dtype=np.uint8)
    sheet[: len(images)] = images.numpy()
    return sheet.reshape(rows, columns, 28, 28).swapaxes(1, 2).reshape(rows * 28, columns * 28)


def share_of_images(counts: dict[str, list[int]]) -> Figure:
    """One square for each training image of each experiment, the minority class colored.

    Parameters
    ----------
    counts : dict
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
    figure, axes = plt.subplots(1, len(sheets), figsize=(7, 1.9))
    figure.get_layout_engine().set(w_pad=0.1)
    for axis, (title, images) in zip(axes, sheets.items(), strict=True):
        axis.imshow(tile(images, columns), cmap="gray_r", interpolation="nearest")
        axis.set_title(title)
        axis.axis("off")
    return figure
