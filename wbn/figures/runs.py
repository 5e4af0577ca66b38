"""Figures of results, 5 inches wide, so that their text is legible on a phone."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from wbn.analysis.table_2 import TABLE_2
from wbn.experiments.protocol import METHODS
from wbn.figures.style import MAJORITY, MARKERS, METHOD_COLORS, MINORITY, WIDTH

LINES = {
    "accuracy_majority": ("majority", MAJORITY, "--"),
    "accuracy_minority": ("minority", MINORITY, "-"),
    "accuracy_overall": ("overall", "#444444", ":"),
}


def trajectories(summary: pd.DataFrame) -> Figure:
    """Accuracy against epochs, a panel for each experiment and method, with 95 % bands.

    Parameters
    ----------
    summary
        Of `wbn.analysis.intervals.summarize`, one protocol for each experiment and method.
    """
    experiments, methods = summary.experiment.unique(), summary.method.unique()
    figure, axes = plt.subplots(
        len(experiments),
        len(methods),
        figsize=(WIDTH, 0.8 + 1.4 * len(experiments)),
        sharex=True,
        sharey=True,
        squeeze=False,
    )
    for (experiment, method), panel in summary.groupby(["experiment", "method"]):
        axis = axes[list(experiments).index(experiment), list(methods).index(method)]
        for metric, (label, color, style) in LINES.items():
            curve = panel[panel.metric == metric].sort_values("epoch")
            axis.plot(curve.epoch, 100 * curve["mean"], style, color=color, label=label)
            axis.fill_between(
                curve.epoch, 100 * curve.low, 100 * curve.high, color=color, alpha=0.2, linewidth=0
            )
    for axis, method in zip(axes[0], methods, strict=True):
        axis.set_title(METHODS[method])
    for axis in axes[-1]:
        axis.set_xlabel("epoch")
    for axis, experiment in zip(axes[:, 0], experiments, strict=True):
        axis.set_ylabel(f"({experiment}) %")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def single_runs(table: pd.DataFrame, metric: str) -> Figure:
    """A dot for each run, in rows by experiment and method, with Table 2's number on them.

    Parameters
    ----------
    table
        Rows of ``sweep`` at one epoch, with one protocol for each experiment and method.
    metric
        A column.
    """
    experiments = table.experiment.unique()
    figure, axes = plt.subplots(
        len(experiments), 1, figsize=(WIDTH, 0.9 + 1.25 * len(experiments)), sharex=True
    )
    printed = TABLE_2[TABLE_2.metric == metric].set_index(["experiment", "method"]).paper
    for axis, experiment in zip(axes, experiments, strict=True):
        for row, method in enumerate(METHODS):
            mine = (table.experiment == experiment) & (table.method == method)
            runs = 100 * table.loc[mine, metric]
            jitter = np.random.default_rng(0).uniform(-0.28, 0.28, len(runs))
            color, marker = METHOD_COLORS[method], MARKERS[method]
            axis.scatter(runs, row + jitter, s=14, color=color, marker=marker, alpha=0.7)
            paper = float(printed[experiment, method])
            axis.plot(paper, row, "x", color="black", markersize=9, markeredgewidth=2,
                      label="Table 2" if not row else None)  # fmt: skip
        axis.set_yticks(range(len(METHODS)), METHODS.values())
        axis.set_ylim(len(METHODS) - 0.5, -0.5)
        axis.set_title(f"({experiment})")
    axes[-1].set_xlabel(f"{LINES[metric][0]} accuracy of a run (%)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center")
    return figure


def differences(evidence: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Differences with their 95 % intervals, a panel for each experiment.

    Parameters
    ----------
    evidence
        For each label, in the order of its lines from top to bottom, rows with experiment,
        baseline, mean, low and high: two baselines at the most.
    title
        What the horizontal axis shows.
    """
    experiments = next(iter(evidence.values())).experiment.unique()
    figure, axes = plt.subplots(
        1, len(experiments), figsize=(WIDTH, 1.1 + 0.42 * len(evidence)), sharex=True, sharey=True
    )
    for axis, experiment in zip(axes, experiments, strict=True):
        axis.axvline(0, color="black", linewidth=1)
        for line, rows in enumerate(evidence.values()):
            mine = rows[rows.experiment == experiment]
            for offset, row in zip((-0.16, 0.16), mine.itertuples(), strict=False):
                axis.errorbar(
                    100 * row.mean,
                    line + offset,
                    xerr=[[100 * (row.mean - row.low)], [100 * (row.high - row.mean)]],
                    fmt=MARKERS[row.baseline],
                    color=METHOD_COLORS[row.baseline],
                    markersize=5,
                    label=f"to {METHODS[row.baseline]}" if not line else None,
                )
        axis.set_title(f"({experiment})")
    axes[0].set_yticks(range(len(evidence)), evidence.keys())
    axes[0].set_ylim(len(evidence) - 0.5, -0.5)
    figure.supxlabel(title, fontsize=11)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def margins(margin: Mapping[str, np.ndarray], minority: np.ndarray) -> Figure:
    """Histograms of a classifier's margin for both classes, one panel above the other.

    Parameters
    ----------
    margin
        For each title, the margin of each test image: positive is taken for the minority.
    minority
        Whether each test image belongs to the minority class.
    """
    figure, axes = plt.subplots(
        len(margin), 1, figsize=(WIDTH, 0.9 + 1.2 * len(margin)), sharex=True
    )
    ends = np.quantile(np.concatenate(list(margin.values())), [0.001, 0.999])
    for axis, (title, values) in zip(axes, margin.items(), strict=True):
        for mask, color, name in (
            (~minority, MAJORITY, "majority"),
            (minority, MINORITY, "minority"),
        ):
            axis.hist(values[mask], np.linspace(*ends, 50), color=color, alpha=0.65, label=name)
        axis.axvline(0, color="black", linestyle="--", label="threshold")
        axis.set_title(title)
        axis.set_ylabel("images")
    axes[-1].set_xlabel("logit of the minority minus logit of the majority")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


def heat_map(cells: pd.DataFrame, limit: float) -> Figure:
    """Changes in points as colored numbers, bold where the 95 % interval excludes zero.

    Parameters
    ----------
    cells
        Columns row and column (labels, in their order of appearance), group (columns of a group
        stand together under its name), mean, low and high.
    limit
        Points at which the color is full.
    """
    rows, groups = list(cells.row.unique()), list(cells.group.unique())
    figure, axes = plt.subplots(
        1, len(groups), figsize=(WIDTH, 0.9 + 0.3 * len(rows)), sharey=True, squeeze=False
    )
    for axis, group in zip(axes[0], groups, strict=True):
        mine = cells[cells.group == group]
        columns = list(mine.column.unique())
        grid = np.full((len(rows), len(columns)), np.nan)
        for cell in mine.itertuples():
            place = rows.index(cell.row), columns.index(cell.column)
            grid[place] = 100 * cell.mean
            points, clear = round(100 * cell.mean), cell.low > 0 or cell.high < 0
            axis.text(
                place[1], place[0], f"{points:+d}".replace("-", "\u2212") if points else "0",
                ha="center", va="center", fontsize=9, fontweight="bold" if clear else "normal",
                color="white" if abs(100 * cell.mean) > 0.6 * limit else "black",
            )  # fmt: skip
        axis.imshow(grid, cmap="PuOr", vmin=-limit, vmax=limit, aspect="auto")
        axis.set_xticks(range(len(columns)), columns)
        axis.set_title(group, fontsize=10)
        axis.tick_params(length=0)
        axis.spines[:].set_visible(False)
    axes[0, 0].set_yticks(range(len(rows)), rows)
    return figure
