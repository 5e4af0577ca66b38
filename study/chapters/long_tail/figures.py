"""Figures of the comparison on long-tailed data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from study.engine.data import LONG_TAILED
from study.figures.runs import GIVEN, low_mean_high
from study.figures.style import INK, METHOD_COLORS, fitted
from study.figures.words import STATISTICS

RATIO = "images of the largest class for one of the smallest"
# Color, marker and line. Inverse frequencies are dashed; what is no method of the paper is gray.
LOOKS = {
    "Plain + BN": (METHOD_COLORS["lf_sbn"], "s", "-"),
    "CB-weighted + BN": (METHOD_COLORS["wlf_sbn"], "^", "-"),
    "CB-weighted + WBN": (METHOD_COLORS["wlf_wbn"], "o", "-"),
    "IF-weighted + BN": (METHOD_COLORS["wlf_sbn"], "v", "--"),
    "IF-weighted + WBN": (METHOD_COLORS["wlf_wbn"], "X", "--"),
    "Sampler + BN": (INK, "D", "-."),
    "Adjusted + BN": (INK, "P", ":"),
}
DASHES = {"-": "", "--": (4, 2), "-.": (4, 1.5, 1, 1.5), ":": (1, 1.5)}
# Differences between weighted and standard BN, by the statistics at inference.
KIND_LOOKS = {
    "batch_average": (METHOD_COLORS["wlf_wbn"], "o", "-"),
    "pooled": (INK, "X", "--"),
}


def gains_by_ratio(rows: pd.DataFrame, baseline: str) -> Figure:
    """Points ahead of one variant against the imbalance ratio, a line for each other variant.

    Parameters
    ----------
    rows
        Of `comparisons.gains`, one for each experiment and variant; bars are their
        95 % intervals.
    baseline
        The variant that the others are compared with: the line at zero.
    """
    shown = rows["method"].unique()
    looks = {variant: look for variant, look in LOOKS.items() if variant in shown}
    grid = _by_ratio(rows, "method", looks, aspect=1.3)
    grid.set_axis_labels(RATIO, f"ahead of {baseline} (points)")
    return fitted(grid, 4, columns=2)


def gaps_by_ratio(rows: pd.DataFrame) -> Figure:
    """Points that weighted BN is ahead of standard BN, a panel for each kind of weights and output.

    Parameters
    ----------
    rows
        Of `comparisons.gaps`, one for each experiment, weights, output and kind of
        inference; bars are their 95 % intervals.
    """
    looks = {STATISTICS[kind]: look for kind, look in KIND_LOOKS.items()}
    table = rows.assign(
        statistics=rows["inference"].map(STATISTICS),
        output=rows["output"].map(lambda output: fill(output, 18)),
    )
    grid = _by_ratio(table, "statistics", looks, row="weights", col="output", margin_titles=True)
    grid.set_titles(row_template="", col_template="{col_name}", size="small")
    grid.set_axis_labels("", "")
    for axis, weights in zip(grid.axes[:, 0], grid.row_names, strict=True):
        axis.set_ylabel(f"{weights}:\nWBN ahead (points)")
    grid.tick_params(axis="x", labelsize="x-small")
    grid.figure.supxlabel(RATIO, size="medium")
    return fitted(grid, 4.6, columns=2)


def _by_ratio(
    rows: pd.DataFrame, hue: str, looks: Mapping[str, tuple[str, str, str]], **facets: object
) -> sns.FacetGrid:
    """Means in points with their intervals, side by side at each imbalance ratio."""
    colors, markers, lines = zip(*looks.values(), strict=True)
    table = low_mean_high(rows.assign(ratio=rows["experiment"].map(LONG_TAILED)))
    grid = sns.catplot(
        table, kind="point", x="ratio", y="points", hue=hue, hue_order=list(looks),
        native_scale=True, log_scale=(True, False), palette=list(colors), markers=list(markers),
        linestyles=list(lines), markersize=5, linewidth=1.5, dodge=0.15, **GIVEN, **facets,
    )  # fmt: skip
    grid.refline(y=0, color=INK, linestyle="-", linewidth=1)
    ratios = list(LONG_TAILED.values())
    grid.set(xticks=ratios)
    grid.set_xticklabels(ratios)
    for axis in grid.axes.flat:
        axis.minorticks_off()
    return grid


def by_class_size(panels: Mapping[str, pd.DataFrame], counts: Sequence[int]) -> Figure:
    """Mean accuracy of each class, the classes in order of their size, a line for each variant.

    Parameters
    ----------
    panels
        For each title, rows of `comparisons.compared` of one experiment at one epoch,
        with one kind of inference.
    counts
        Training images of each class.
    """
    table = pd.concat(panels, names=["title"]).reset_index("title")
    classes = {f"accuracy_{k}": k for k in range(len(counts))}
    rows = table.melt(["title", "method"], list(classes), "class", "accuracy")
    rows = rows.assign(digit=rows["class"].map(classes), percent=100 * rows["accuracy"])
    colors, markers, lines = zip(*LOOKS.values(), strict=True)
    grid = sns.relplot(
        rows, kind="line", x="digit", y="percent", row="title", hue="method", style="method",
        hue_order=[variant for variant in LOOKS if variant in set(rows["method"])],
        dashes={variant: DASHES[line] for variant, line in zip(LOOKS, lines, strict=True)},
        palette=dict(zip(LOOKS, colors, strict=True)), markeredgewidth=0, markersize=6,
        markers=dict(zip(LOOKS, markers, strict=True)), errorbar=None,
    )  # fmt: skip
    grid.set(xticks=range(len(counts)))
    grid.set_xticklabels([f"{k}\n{n}" for k, n in enumerate(counts)])
    grid.set_titles(row_template="{row_name}")
    grid.set_axis_labels("digit, and its training images", "accuracy (%)")
    return fitted(grid, 1.3 + 2 * len(panels), columns=2)
