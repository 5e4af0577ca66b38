"""Figures of the study of what the paper does not say."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from study.figures.runs import interval
from study.figures.style import INK, MAJORITY, MINORITY, fitted

PROBES = {"minority_weight": "minority's weight", "majority_weight": "majority's weight"}


def either_weight(runs: Mapping[str, pd.DataFrame]) -> Figure:
    """Share of test images taken for the minority, with either weight, and 95 % intervals.

    Parameters
    ----------
    runs
        For each label, from top to bottom, rows of ``sweep`` of one protocol with the probes
        "minority_weight" and "majority_weight", at one epoch.
    """
    table = pd.concat(runs, names=["label"]).reset_index("label")
    table["minority images"] = 100 * table["accuracy_minority"]
    table["majority images"] = 100 * (1 - table["accuracy_majority"])
    rows = table.assign(weight=table["inference"].map(PROBES)).melt(
        ["label", "weight"], ["minority images", "majority images"], "images", "taken"
    )
    grid = sns.catplot(
        rows, kind="point", x="taken", y="label", col="images", hue="weight",
        hue_order=PROBES.values(), palette=[MINORITY, MAJORITY], markers=["D", "o"],
        linestyle="none", markersize=5, linewidth=1.5, errorbar=interval,
    )  # fmt: skip
    means = rows.groupby(["images", "label", "weight"])["taken"].mean().unstack()
    for images, axis in grid.axes_dict.items():
        ends = means.loc[images].loc[list(runs)]
        axis.hlines(range(len(runs)), ends.min(axis=1), ends.max(axis=1), INK, lw=1, zorder=0)
    grid.set(xlim=(-4, 104), xticks=[0, 50, 100])
    grid.set_titles("{col_name}")
    grid.set_axis_labels("", "")
    grid.figure.supxlabel("taken for the minority (%)", size="medium")
    return fitted(grid, 1.2 + 0.36 * len(runs), columns=2)
