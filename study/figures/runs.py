"""Figures of runs: accuracies and their differences over seeds."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from study.engine.protocol import METHODS
from study.figures.style import (
    INK,
    MAJORITY,
    MARKERS,
    METHOD_COLORS,
    MINORITY,
    fitted,
    panels,
    steady_jitter,
)
from study.figures.text import percent
from study.stats.intervals import mean_interval
from study.stats.table_2 import TABLE_2

CLASSES = {
    "accuracy_majority": "majority",
    "accuracy_minority": "minority",
    "accuracy_overall": "overall",
}
CLASS_COLORS = {"majority": MAJORITY, "minority": MINORITY, "overall": INK}
CLASS_DASHES = {"majority": (4, 2), "minority": "", "overall": (1, 1.5)}
LONGEST_FLAT = 5  # characters; a longer name over a narrow column is turned
# Of low, mean and high the median is the mean, and all they span is the interval.
GIVEN = {"estimator": "median", "errorbar": ("pi", 100)}


def interval(percents: pd.Series) -> tuple[float, float]:
    """Ends of `mean_interval` of accuracies in percent, as seaborn asks for them."""
    _, low, high, *_ = mean_interval(percents / 100)
    return 100 * low, 100 * high


def low_mean_high(table: pd.DataFrame) -> pd.DataFrame:
    """Three rows for each row, with its low, mean and high in points: what `GIVEN` draws."""
    ends = ["low", "mean", "high"]
    long = table.melt([c for c in table if c not in ends], ends, value_name="points")
    return long.assign(points=100 * long["points"])


def trajectories(table: pd.DataFrame) -> Figure:
    """Mean accuracy against epochs with 95 % bands, a panel for each experiment and method.

    Parameters
    ----------
    table
        Rows of ``sweep``, with one protocol and kind of inference for each experiment and method.
    """
    rows = table.rename(columns=CLASSES).melt(
        ["experiment", "method", "epoch"], list(CLASSES.values()), "class", "accuracy"
    )
    grid = sns.relplot(
        rows.assign(accuracy=100 * rows["accuracy"], method=rows["method"].map(METHODS)),
        kind="line", x="epoch", y="accuracy", row="experiment", col="method", hue="class",
        style="class", palette=CLASS_COLORS, dashes=CLASS_DASHES, errorbar=interval,
        facet_kws={"margin_titles": True},
    )  # fmt: skip
    grid.set_titles(row_template="", col_template="{col_name}")
    for axis, experiment in zip(grid.axes[:, 0], grid.row_names, strict=True):
        axis.set_ylabel(f"({experiment}) %")
    return fitted(grid, 1 + 1.3 * len(grid.axes))


def single_runs(table: pd.DataFrame, metric: str) -> Figure:
    """A dot for each run, in rows by experiment and method, with Table 2's number on them.

    Parameters
    ----------
    table
        Rows of ``sweep`` at one epoch, with one protocol for each experiment and method.
    metric
        A column.
    """
    colors = {METHODS[method]: color for method, color in METHOD_COLORS.items()}
    with steady_jitter():
        grid = sns.catplot(
            table.assign(accuracy=100 * table[metric], method=table["method"].map(METHODS)),
            kind="strip", x="accuracy", y="method", row="experiment", order=METHODS.values(),
            hue="method", palette=colors, jitter=0.28, size=3.5, alpha=0.7, legend=False,
        )  # fmt: skip
    printed = TABLE_2[TABLE_2["metric"] == metric].set_index(["experiment", "method"])["paper"]
    for experiment, axis in grid.axes_dict.items():
        papers = [float(printed[experiment, method]) for method in METHODS]
        crosses = axis.plot(papers, range(len(METHODS)), "x", color=INK, ms=9, mew=2.5, zorder=3)
    grid.set_titles(row_template="({row_name})")
    grid.set_axis_labels(f"{CLASSES[metric]} accuracy of a run (%)", "")
    grid.figure.legend(crosses, ["Table 2"], loc="outside upper center")
    return fitted(grid, 0.9 + 1.15 * len(grid.axes))


def differences(evidence: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Differences with their 95 % intervals, a panel for each experiment.

    Parameters
    ----------
    evidence
        For each label, in the order of its lines from top to bottom, rows with experiment,
        baseline, mean, low and high.
    title
        What the horizontal axis shows.
    """
    rows = low_mean_high(pd.concat(evidence, names=["label"]).reset_index("label"))
    baselines = rows["baseline"].unique()
    grid = sns.catplot(
        rows, kind="point", x="points", y="label", col="experiment", hue="baseline",
        palette=METHOD_COLORS, markers=[MARKERS[b] for b in baselines], linestyle="none",
        markersize=4, linewidth=1.5, dodge=0.35 * (len(baselines) - 1), **GIVEN,
    )  # fmt: skip
    grid.refline(x=0, color=INK, linestyle="-", linewidth=1)
    for text in grid.legend.texts:
        text.set_text(f"to {METHODS[text.get_text()]}")
    grid.set_titles("({col_name})")
    grid.set_axis_labels("", "")
    grid.figure.supxlabel(title, size="medium")
    return fitted(grid, 1.1 + 0.36 * len(evidence))


def margin_histograms(margin: Mapping[str, np.ndarray], minority: np.ndarray) -> Figure:
    """Histograms of a classifier's margin for both classes, one panel above the other.

    Parameters
    ----------
    margin
        For each title, the margin of each test image: positive is taken for the minority.
    minority
        Whether each test image belongs to the minority class.
    """
    rows = pd.concat(
        pd.DataFrame({"title": title, "margin": values, "minority": minority})
        for title, values in margin.items()
    ).reset_index(drop=True)
    rows["class"] = np.where(rows["minority"], "minority", "majority")
    grid = sns.displot(
        rows, x="margin", row="title", hue="class", hue_order=["majority", "minority"],
        palette=CLASS_COLORS, element="step", bins=50, alpha=0.5,
        binrange=tuple(rows["margin"].quantile([0.001, 0.999])),
    )  # fmt: skip
    grid.refline(x=0, color=INK, linestyle="--")
    grid.set_titles(row_template="{row_name}")
    grid.set_axis_labels("logit of the minority minus logit of the majority", "images")
    return fitted(grid, 0.9 + 1.2 * len(margin))


def heat_map(table: pd.DataFrame, rows: str, columns: str, groups: str, limit: float) -> Figure:
    """Changes in points as colored numbers, bold where the 95 % interval excludes zero.

    Parameters
    ----------
    table
        Fractions in mean, low and high, and the three columns named by the next parameters;
        their values are the labels, in order of appearance.
    rows, columns, groups
        Names of columns. Columns of a group stand together under its name.
    limit
        Change at which the color is full, a fraction.
    """
    names, labels = table[groups].unique(), table[rows].unique()
    upright = table[columns].astype(str).str.len().max() > LONGEST_FLAT
    height = 0.8 + 0.6 * upright + 0.27 * len(labels)
    figure, axes = panels(height, columns=len(names), sharey=True)
    for axis, name in zip(axes, names, strict=True):
        cells = table[table[groups] == name].set_index([rows, columns])
        grid, low, high = (
            cells[end].unstack(sort=False).reindex(labels) for end in ("mean", "low", "high")
        )
        texts = grid.map(lambda change: percent(change, 0, sign=True))
        sns.heatmap(
            grid, ax=axis, cmap="PuOr", vmin=-limit, vmax=limit, cbar=False, linewidths=0.5,
            linecolor="none", annot=texts, fmt="", annot_kws={"size": "small"},
        )  # fmt: skip
        clear = ((low > 0) | (high < 0)) & (texts != "0")
        for text, bold in zip(axis.texts, clear.to_numpy()[grid.notna()], strict=True):
            text.set_fontweight("bold" if bold else "normal")
        axis.xaxis.tick_top()
        axis.tick_params(length=0, labelrotation=0)
        axis.tick_params("x", labelrotation=90 if upright else 0)
        axis.set(xlabel="", ylabel="")
        axis.set_title(name, size="small")
    return figure
