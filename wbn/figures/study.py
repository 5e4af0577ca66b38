"""Figures of the study of what the paper does not say, 5 inches wide."""

from __future__ import annotations

from collections.abc import Mapping

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from wbn.analysis.intervals import mean_interval
from wbn.figures.style import MAJORITY, MINORITY, WIDTH


def chances(fits: pd.DataFrame) -> Figure:
    """A dot for each point of a design and epoch: how likely single runs rank as Table 2 does.

    Parameters
    ----------
    fits
        Of `wbn.analysis.study.table_2_at_points`.
    """
    kinds = list(fits.inference.unique())
    figure, axis = plt.subplots(figsize=(WIDTH, 1.1 + 0.45 * len(kinds)))
    marks = {"on": ("o", MAJORITY, "with output BN"), "none": ("D", MINORITY, "without")}
    for output, (marker, color, label) in marks.items():
        mine = fits[fits.output_norm == output]
        jitter = np.random.default_rng(0).uniform(-0.3, 0.3, len(mine))
        rows = mine.inference.map(kinds.index) + jitter
        axis.scatter(100 * mine.chance, rows, s=16, marker=marker, color=color, alpha=0.6,
                     label=label)  # fmt: skip
    axis.set_yticks(
        range(len(kinds)), [kind.replace("evaluation", "test").replace("_", " ") for kind in kinds]
    )
    axis.set_ylim(len(kinds) - 0.5, -0.5)
    axis.set_xlabel("chance of the paper's ranking (%)")
    figure.legend(*axis.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure


def either_weight(runs: Mapping[str, pd.DataFrame]) -> Figure:
    """Share of test images taken for the minority, with either weight, and 95 % intervals.

    Parameters
    ----------
    runs
        For each label, from top to bottom, rows of ``sweep`` of one protocol with the probes
        "minority_weight" and "majority_weight", at one epoch.
    """
    figure, axes = plt.subplots(
        1, 2, figsize=(WIDTH, 1.3 + 0.42 * len(runs)), sharex=True, sharey=True
    )
    marks = {"minority_weight": ("D", MINORITY), "majority_weight": ("o", MAJORITY)}
    for line, rows in enumerate(runs.values()):
        shares = {"minority images": rows.accuracy_minority,
                  "majority images": 1 - rows.accuracy_majority}  # fmt: skip
        for axis, (title, share) in zip(axes, shares.items(), strict=True):
            means = []
            for probe, (marker, color) in marks.items():
                mean, low, high, *_ = mean_interval(share[rows.inference == probe])
                axis.errorbar(
                    100 * mean, line, xerr=[[100 * (mean - low)], [100 * (high - mean)]],
                    fmt=marker, color=color, markersize=6, zorder=3,
                    label=probe.replace("_", "'s ") if not line else None,
                )  # fmt: skip
                means.append(100 * mean)
            axis.plot(means, [line, line], color="#999999", linewidth=1.5, zorder=1)
            axis.set_title(title, fontsize=11)
    axes[0].set_yticks(range(len(runs)), runs.keys())
    axes[0].set_ylim(len(runs) - 0.5, -0.5)
    axes[0].set_xlim(-4, 104)
    figure.supxlabel("taken for the minority (%)", fontsize=11)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
