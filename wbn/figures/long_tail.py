"""Figures of the comparison on long-tailed data, 5 inches wide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from wbn.analysis.long_tail import ARMS
from wbn.experiments.data import LONG_TAILED
from wbn.figures.style import MARKERS, METHOD_COLORS, WIDTH

OTHERS = {"sampler": ("#CC79A7", "D", "-."), "logit adj.": ("black", "v", ":")}
LINE = {"linewidth": 1.3, "markersize": 5}
HOLLOW = {"linestyle": "--", "markerfacecolor": "white"}
SETTING_STYLES = (
    {"color": "black", "marker": "o"},
    {"color": "black", "marker": "o"} | HOLLOW,
    {"color": "#0072B2", "marker": "s"},
    {"color": "#0072B2", "marker": "s"} | HOLLOW,
    {"color": "#D55E00", "marker": "D", "linestyle": ":"},
)


def arm_style(arm: str) -> dict:
    """Color, marker and line of an arm: the method's, dashed and hollow for inverse frequency."""
    method, beta, *_ = ARMS[arm]
    color, marker, line = OTHERS.get(arm, (METHOD_COLORS[method], MARKERS[method], "-"))
    style = {"color": color, "marker": marker, "linestyle": line}
    return style | (HOLLOW if beta == 1 else {})


def gains_by_ratio(rows: pd.DataFrame, baseline: str) -> Figure:
    """Points ahead of one arm against the imbalance ratio, a line for each other arm.

    Parameters
    ----------
    rows
        Of `wbn.analysis.long_tail.gains`, one for each experiment and arm; bars are their
        95 % intervals.
    baseline
        The arm that the others are compared with: the line at zero.
    """
    figure, axis = plt.subplots(figsize=(WIDTH, 3.8))
    axis.axhline(0, color=arm_style(baseline)["color"], label=baseline)
    _lines(axis, {arm: (rows[rows.method == arm], arm_style(arm)) for arm in ARMS})
    axis.set_xlabel("images of the largest class for one of the smallest")
    axis.set_ylabel(f"ahead of {baseline} (points)")
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def gaps_by_ratio(rows: pd.DataFrame) -> Figure:
    """Points that weighted BN is ahead of standard BN, a line for each setting.

    Parameters
    ----------
    rows
        Of `wbn.analysis.long_tail.wbn_minus_sbn`, one for each experiment, weights and
        setting, with up to five settings in the column setting; bars are their 95 % intervals.
    """
    names = rows.setting.unique()
    if len(names) > len(SETTING_STYLES):
        raise ValueError(f"{len(names)} settings, but looks for {len(SETTING_STYLES)}: draw fewer")
    settings = dict(zip(names, SETTING_STYLES, strict=False))
    figure, axes = plt.subplots(1, 2, figsize=(WIDTH, 3.8), sharey=True)
    for axis, (weights, mine) in zip(axes, rows.groupby("weights"), strict=True):
        axis.axhline(0, color="black", linewidth=0.8)
        _lines(axis, {s: (mine[mine.setting == s], style) for s, style in settings.items()})
        axis.set_title(weights)
    axes[0].set_ylabel("WBN ahead of sBN (points)")
    figure.supxlabel("images of the largest class for one of the smallest", fontsize="medium")
    handles = axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside upper center", ncols=2)
    return figure


def _lines(axis: Axes, lines: Mapping[str, tuple[pd.DataFrame, dict]]) -> None:
    """Means in points with their intervals, side by side at each imbalance ratio."""
    lines = {name: line for name, line in lines.items() if len(line[0])}
    for place, (name, (rows, style)) in enumerate(lines.items()):
        line = rows.set_index("experiment").reindex(LONG_TAILED).dropna()
        aside = 1.03 ** (place - (len(lines) - 1) / 2)
        reach = 100 * np.stack([line["mean"] - line.low, line.high - line["mean"]])
        axis.errorbar(
            [LONG_TAILED[e] * aside for e in line.index], 100 * line["mean"], yerr=reach,
            label=name, **LINE, **style,
        )  # fmt: skip
    axis.set_xscale("log")
    axis.set_xticks(list(LONG_TAILED.values()), list(LONG_TAILED.values()))
    axis.minorticks_off()


def by_class_size(panels: Mapping[str, pd.DataFrame], counts: Sequence[int]) -> Figure:
    """Accuracy of each class, the classes in order of their size, a line for each arm.

    Parameters
    ----------
    panels
        For each title, rows of `wbn.analysis.intervals.summarize` of one experiment, one for
        each class and arm.
    counts
        Training images of each class.
    """
    figure, axes = plt.subplots(
        len(panels), 1, figsize=(WIDTH, 1.1 + 2.1 * len(panels)), sharex=True, squeeze=False
    )
    for axis, (title, rows) in zip(axes[:, 0], panels.items(), strict=True):
        for arm in ARMS:
            mine = rows[rows.method == arm].set_index("metric")
            if len(mine):
                means = mine.loc[[f"accuracy_{k}" for k in range(len(counts))], "mean"]
                axis.plot(100 * means.to_numpy(), label=arm, **LINE, **arm_style(arm))
        axis.set_title(title)
        axis.set_ylabel("accuracy (%)")
    axes[-1, 0].set_xticks(range(len(counts)), [f"{k}\n{n}" for k, n in enumerate(counts)])
    axes[-1, 0].tick_params(axis="x", labelsize=9)
    axes[-1, 0].set_xlabel("digit, and its training images")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
