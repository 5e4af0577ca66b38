"""Figures of the cause: one curve, the drift of the shift, what interventions leave, probes."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.optimize import isotonic_regression

from study.engine.data import ALL_EXPERIMENTS, EXPERIMENTS
from study.engine.protocol import METHODS
from study.figures.runs import CLASS_COLORS, GIVEN, interval, low_mean_high
from study.figures.style import INK, MAJORITY, MARKERS, METHOD_COLORS, MINORITY, fitted

METHOD_NAMES = {METHODS[method]: color for method, color in METHOD_COLORS.items()}
NAME_MARKERS = {METHODS[method]: marker for method, marker in MARKERS.items()}
KINDS = {"batch_average": "averages", "pooled": "pooled"}
NORMALIZERS = {"batch": "loss normalized by the batch", "dataset": "by the data set"}
PROBES = {"minority_weight": "minority's weight", "majority_weight": "majority's weight"}
DASHES = {"batch": "-", "dataset": "--"}  # as seaborn gives them, the first one first


def one_curve(settings: Mapping[str, pd.DataFrame]) -> Figure:
    """Minority accuracy against the relative threshold, a dot for each setting, with one curve.

    Parameters
    ----------
    settings
        For each experiment the table of `study.chapters.why.threshold_curve.settings`.
    """
    rows = pd.concat(settings, names=["experiment"]).reset_index("experiment")
    named = rows.assign(percent=100 * rows.accuracy_minority, method=rows.method.map(METHODS))
    grid = sns.relplot(
        named, x="relative_threshold", y="percent", col="experiment", hue="method", style="method",
        palette=METHOD_NAMES, markers=NAME_MARKERS, s=28, alpha=0.8,
    )  # fmt: skip
    for experiment, axis in grid.axes_dict.items():
        own = settings[experiment].sort_values("relative_threshold")
        fitted_values = isotonic_regression(own.accuracy_minority, increasing=False).x
        axis.plot(own.relative_threshold, 100 * fitted_values, color=INK, lw=1, zorder=0)
    grid.set_titles("({col_name})")
    grid.set_axis_labels("relative threshold", "minority accuracy (%)")
    return fitted(grid, 2.9, columns=2)


def position_histograms(networks: Mapping[str, pd.DataFrame]) -> Figure:
    """Where test images lie between the training classes, with the threshold, network by network.

    Parameters
    ----------
    networks
        For each title the table of `positions.trained_positions`.
    """
    rows = pd.concat(networks, names=["title"]).reset_index("title")
    rows["class"] = rows["minority"].map({True: "minority", False: "majority"})
    grid = sns.displot(
        rows, x="position", row="title", hue="class", hue_order=["majority", "minority"],
        palette=CLASS_COLORS, element="step", bins=60, alpha=0.5, binrange=(-0.5, 1.5),
    )  # fmt: skip
    for title, axis in grid.axes_dict.items():
        axis.axvline(networks[title].relative_threshold.iloc[0], color=INK, ls="--", lw=1.5)
    grid.set_titles(row_template="{row_name}")
    grid.set(xticks=[-0.5, 0, 0.5, 1, 1.5])
    grid.set_axis_labels("position between the means of the training classes", "images")
    return fitted(grid, 0.9 + 1.1 * len(networks))


def drift_curves(measured: pd.DataFrame, model: pd.DataFrame) -> Figure:
    """The output's shift against epochs: dots are networks, lines the counting model.

    Parameters
    ----------
    measured, model
        Columns experiment, method, loss_normalizer, epoch and shift, a row for each run.
    """
    keys = ["experiment", "method", "loss_normalizer", "epoch"]
    lines, dots = (
        table.groupby(keys, as_index=False)["shift"].mean().replace({"method": METHODS})
        for table in (model, measured)
    )
    grid = sns.relplot(
        lines, kind="line", x="epoch", y="shift", col="experiment", hue="method",
        style="loss_normalizer", palette=METHOD_NAMES, col_order=EXPERIMENTS, legend=False,
    )  # fmt: skip
    for experiment, axis in grid.axes_dict.items():
        sns.scatterplot(
            dots[dots.experiment == experiment], x="epoch", y="shift", hue="method",
            style="method", markers=NAME_MARKERS, palette=METHOD_NAMES, s=30, ax=axis, legend=False,
        )  # fmt: skip
    grid.set_titles("({col_name})")
    grid.set_axis_labels("epoch", "shift of the output")
    looks = [Line2D([], [], color=METHOD_NAMES[name], marker=NAME_MARKERS[name], label=name)
             for name in lines["method"].unique()]  # fmt: skip
    looks += [Line2D([], [], color=INK, ls=style, label=NORMALIZERS[normalizer])
              for normalizer, style in DASHES.items()]  # fmt: skip
    grid.figure.legend(handles=looks, loc="outside upper center", ncols=2)
    return fitted(grid, 2.9)


def remaining_gaps(gaps: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """What is left of the gap after each intervention, with either kind of statistics.

    Parameters
    ----------
    gaps
        For each label, from top to bottom, rows with experiment, inference, mean, low and high.
    title
        What the horizontal axis shows.
    """
    rows = low_mean_high(pd.concat(gaps, names=["label"]).reset_index("label"))
    grid = sns.catplot(
        rows.assign(kind=rows.inference.map(KINDS)), kind="point", x="points", y="label",
        col="experiment", col_order=[e for e in ALL_EXPERIMENTS if e in set(rows.experiment)],
        hue="kind", hue_order=KINDS.values(), palette=[METHOD_COLORS["wlf_wbn"], INK],
        markers=["o", "D"], linestyle="none", markersize=4, linewidth=1.5, dodge=0.3,
        sharex=False, **GIVEN,
    )  # fmt: skip
    grid.refline(x=0, color=INK, linestyle="-", linewidth=1)
    grid.set_titles("({col_name})")
    grid.set_axis_labels("", "")
    grid.figure.supxlabel(title, size="medium")
    return fitted(grid, 1.1 + 0.36 * len(gaps), columns=2)


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
