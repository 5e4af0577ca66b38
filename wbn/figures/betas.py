"""Figures of sweeps over the beta of class-balanced weights."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from wbn.experiments.protocol import METHODS
from wbn.figures.style import MARKERS, METHOD_COLORS, WIDTH


def beta_curves(means: pd.DataFrame, title: str) -> Figure:
    """Accuracy against 1 - beta, with 95 % bands: rows by experiment, columns by reading.

    The axis is logarithmic, runs from beta = 0 on the left to beta = 1 on the right, and is
    broken (dotted) before the latter, where 1 - beta is 0.

    Parameters
    ----------
    means
        Of `wbn.analysis.betas.beta_means`, with beta = 1 among the betas.
    title
        What the vertical axis shows.
    """
    experiments, readings = means.experiment.unique(), means.reading.unique()
    figure, axes = plt.subplots(
        len(experiments), len(readings), figsize=(WIDTH, 1.1 + 1.4 * len(experiments)),
        sharex=True, sharey="row", squeeze=False,
    )  # fmt: skip
    end = int(np.ceil(np.round(-np.log10(1 - means.beta[means.beta < 1].max()), 6))) + 1
    for (experiment, reading, method), curve in means.groupby(["experiment", "reading", "method"]):
        axis = axes[list(experiments).index(experiment), list(readings).index(reading)]
        curve = curve.sort_values("beta")
        x = [end if beta == 1 else -np.log10(1 - beta) for beta in curve.beta]
        style = {"color": METHOD_COLORS[method], "marker": MARKERS[method], "markersize": 4}
        axis.plot(x[:-1], 100 * curve["mean"][:-1], label=METHODS[method], **style)
        axis.plot(x[-2:], 100 * curve["mean"][-2:], ":", **style)
        axis.fill_between(
            x, 100 * curve.low, 100 * curve.high, color=style["color"], alpha=0.2, linewidth=0
        )
    powers = ["1", *(f"$10^{{-{power}}}$" for power in range(1, end)), "0"]
    shown = [p if n % 2 == 0 or n == end else "" for n, p in enumerate(powers)]
    for axis, reading in zip(axes[0], readings, strict=True):
        axis.set_title(reading, fontsize=10)
        axis.set_xticks(range(end + 1), shown, fontsize=9)
    for axis, experiment in zip(axes[:, 0], experiments, strict=True):
        axis.set_ylabel(f"({experiment}) %")
    figure.supxlabel("1 − β", fontsize=11)
    figure.supylabel(title, fontsize=11)
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
