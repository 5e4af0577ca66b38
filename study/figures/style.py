"""The house style: colors, markers, width and theme, each typed once.

A figure is drawn once for light and dark pages: on no ground of its own, in colors that reach a
contrast of 3:1 on white and on near-black alike. No gray reaches the 4.5:1 of small text on both
(the best has 4.2), so the book's style sheet turns the lightness of figures around on dark pages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib.pyplot as plt
import numpy as np
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure

WIDTH = 5.0  # inches, so that text is legible on a phone
INK = "#666666"  # text, axes, and lines that belong to neither class and no method
MAJORITY, MINORITY = "#0072B2", "#D55E00"
METHOD_COLORS = {"lf_sbn": "#9A5AA0", "wlf_sbn": "#A87400", "wlf_wbn": "#00805D"}
ACCENTS = ("#C0437C", "#6B7F00")  # for what is neither a class nor a method
MARKERS = {"lf_sbn": "s", "wlf_sbn": "^", "wlf_wbn": "o"}
# What can follow the page's theme, as interactive figures do, has colors of its own in the dark.
MAJORITY_IN_THE_DARK, MINORITY_IN_THE_DARK = "#56B4E9", "#E69F00"

RC = {
    **dict.fromkeys(
        ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
    ),
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "savefig.dpi": 220,
    "svg.fonttype": "path",
    "svg.hashsalt": "wbn",
}


# The matrix of CSS's hue-rotate(180deg), which with invert(1) turns lightness around.
HUE_ROTATED = ((-0.574, 1.43, 0.144), (0.426, 0.43, 0.144), (0.426, 1.43, -0.856))


def in_the_dark(color: str) -> str:
    """What the book's style sheet makes of a color on dark pages, where no style sheet helps.

    Examples
    --------
    >>> in_the_dark(INK) > INK
    True
    """
    rgb = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    turned = np.clip(np.round(HUE_ROTATED @ (255 - rgb)), 0, 255).astype(int)
    return "#" + "".join(f"{part:02x}" for part in turned)


def use_house_style() -> None:
    """Set seaborn's theme, and have notebooks show figures as SVG that is the same each time."""
    sns.set_theme("paper", "ticks", [MAJORITY, MINORITY], font_scale=1.15, rc=RC)
    if "IPython" in sys.modules:  # the command line does without it
        from IPython import get_ipython
        from matplotlib_inline.config import InlineBackend

        if shell := get_ipython():
            backend = InlineBackend.instance(parent=shell)
            backend.print_figure_kwargs = {"metadata": {"Date": None}, "pad_inches": 0}
            backend.figure_formats = {"svg"}


def panels(
    height: float, rows: int = 1, columns: int = 1, **shared: bool
) -> tuple[Figure, list[Axes]]:
    """A figure of the house's width and its panels in reading order.

    Parameters
    ----------
    height
        Inches.
    rows, columns
        How many panels.
    shared
        ``sharex`` and ``sharey``.
    """
    figure, axes = plt.subplots(
        rows, columns, figsize=(WIDTH, height), layout="constrained", squeeze=False, **shared
    )
    return figure, list(axes.flat)


def fitted(grid: sns.FacetGrid, height: float, columns: int = 3) -> Figure:
    """The figure of a seaborn grid at the house's width, its legend above in some columns."""
    figure = grid.figure
    figure.set_size_inches(WIDTH, height)
    if grid.legend:
        sns.move_legend(grid, "outside upper center", ncols=columns, title=None)
    figure.set_layout_engine("constrained")
    return figure


@contextmanager
def steady_jitter() -> Iterator[None]:
    """Make seaborn's jitter the same each time; it is drawn from numpy's global generator."""
    state = np.random.get_state()  # noqa: NPY002
    np.random.seed(0)  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(state)  # noqa: NPY002
