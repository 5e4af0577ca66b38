"""Figures of which weighted BN works."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from study.engine.data import EXPERIMENTS
from study.figures.style import INK, panels

MARKS = ("o", "D", "s")
PROBLEMS = {
    **{name: f"({name})" for name in EXPERIMENTS},
    **{f"lt{ratio}": f"ratio {ratio}" for ratio in (50, 100, 200)},
}


def leads_by_problem(leads: pd.DataFrame, names: Mapping[str, str] = PROBLEMS) -> Figure:
    """Each finalist's lead over standard BN with the same loss, in points, with 95 % intervals.

    Parameters
    ----------
    leads
        Of `study.chapters.repair.comparisons.leads`.
    names
        Problems from top to bottom, and what to call them.
    """
    losses = leads.groupby("loss", sort=False)
    figure, axes = panels(2.6 + 0.3 * len(names), columns=losses.ngroups, sharex=True, sharey=True)
    places = {problem: place for place, problem in enumerate(names)}
    marks, handles = dict(zip(leads.arm.unique(), MARKS, strict=False)), {}
    for axis, (loss, rows) in zip(axes, losses, strict=True):
        axis.axvline(0, color=INK, lw=1)
        arms = rows.groupby("arm", sort=False)
        for number, (arm, of_arm) in enumerate(arms):
            heights = of_arm.experiment.map(places) + 0.24 * (number - (arms.ngroups - 1) / 2)
            mean = 100 * of_arm["mean"]
            sides = 100 * (of_arm["mean"] - of_arm.low), 100 * (of_arm.high - of_arm["mean"])
            handles[arm] = axis.errorbar(
                mean, heights, xerr=sides, fmt=marks[arm], color=INK, ms=5, lw=1.5, label=arm,
                mfc=INK if number == 0 else "none",
            )  # fmt: skip
        axis.set_title(loss, fontsize=9)
    if len(handles) > 1:
        figure.legend(handles.values(), handles, loc="outside upper left")
    figure.supxlabel("points ahead of standard BN", fontsize=10)
    axes[0].set_yticks(range(len(names)), names.values())
    axes[0].invert_yaxis()
    return figure
