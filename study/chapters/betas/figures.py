"""Figures of sweeps over the beta of class-balanced weights."""

from __future__ import annotations

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from study.engine.protocol import METHODS
from study.figures.runs import interval
from study.figures.style import INK, MARKERS, METHOD_COLORS, fitted


def beta_curves(table: pd.DataFrame, metric: str, title: str) -> Figure:
    """A metric's mean against 1 - beta with 95 % bands: rows by experiment, columns by reading.

    The axis is logarithmic, runs from beta = 0 on the left to beta = 1 on the right, and is
    broken at the dotted line before the latter, where 1 - beta is 0.

    Parameters
    ----------
    table
        Rows of `comparisons.by_reading` at one epoch, with one kind of inference, a
        column ``beta``, and beta = 1 among the betas.
    metric
        A column.
    title
        What the vertical axis shows.
    """
    beta = table["beta"]
    end = int(np.ceil(np.round(-np.log10(1 - beta[beta < 1].max()), 6))) + 1
    power = -np.log10((1 - beta).where(beta < 1, 10.0**-end))
    grid = sns.relplot(
        table.assign(power=power, percent=100 * table[metric]), kind="line", x="power",
        y="percent", row="experiment", col="reading", hue="method", style="method",
        palette=METHOD_COLORS, markers=MARKERS, dashes=False, markeredgewidth=0, markersize=5,
        errorbar=interval, facet_kws={"margin_titles": True, "sharey": "row"},
    )  # fmt: skip
    grid.refline(x=end - 0.5, color=INK, linestyle=":")
    grid.set(xticks=[*range(0, end - 1, 2), end])
    grid.set_xticklabels([*(f"$10^{{-{p}}}$" if p else "1" for p in range(0, end - 1, 2)), "0"])
    grid.set_titles(row_template="", col_template="{col_name}")
    for text in grid.legend.texts:
        text.set_text(METHODS[text.get_text()])
    grid.set_xlabels("1 − β")
    for axis, experiment in zip(grid.axes[:, 0], grid.row_names, strict=True):
        axis.set_ylabel(f"({experiment}) %")
    grid.figure.supylabel(title, size="medium")
    return fitted(grid, 1.1 + 1.4 * len(grid.axes))
