"""The result in one picture, as the introduction, the README and the report show it.

``python -m study.chapters.report.hero FOLDER`` writes it there, for light and for dark pages.
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from study.engine.data import EXPERIMENTS
from study.engine.protocol import EPOCH, FAMILY, METHODS
from study.figures.style import (
    INK,
    MARKERS,
    METHOD_COLORS,
    in_the_dark,
    panels,
    use_house_style,
)
from study.stats.intervals import intervals
from study.stats.table_2 import TABLE_2
from study.stores.plan import load_or_run

REFERENCE = "reference"
METRIC = "accuracy_overall"
PANELS = {
    "batch_average": "evaluated as the text says",
    "evaluation_set": "with the test set's statistics",
}
FILES = {"light": "hero-light.svg", "dark": "hero-dark.svg"}
OTHER = FAMILY[0] | {"loss_normalizer": "dataset"}


def hero_rows() -> pd.DataFrame:
    """Means of overall accuracy with 95 % intervals, of the reference reading and one other.

    Returns
    -------
    pandas.DataFrame
        Rows by inference (a key of `PANELS`), reading (`REFERENCE`, or "data set's normalizer",
        which has been evaluated as the text says only), experiment and method, with mean, low,
        high and n.
    """
    runs = {
        REFERENCE: load_or_run("evaluation", epoch=EPOCH, inference=list(PANELS)),
        "data set's normalizer": load_or_run(
            "family", epoch=EPOCH, method=["wlf_sbn", "wlf_wbn"], **OTHER
        ),
    }
    keys = ["inference", "reading", "experiment", "method"]
    return intervals(pd.concat(runs, names=["reading"]).reset_index("reading"), keys, METRIC)


def hero(rows: pd.DataFrame) -> Figure:
    """The three methods in the three experiments, evaluated in two ways, under Table 2's numbers.

    Marks of the reference reading are filled, those of the other reading hollow.

    Parameters
    ----------
    rows
        Of `hero_rows`.
    """
    figure, axes = panels(2.3, columns=2, sharex=True, sharey=True)
    for axis, (inference, title) in zip(axes, PANELS.items(), strict=True):
        axis.set_title(title, size="small")
        _panel(axis, rows[rows.inference == inference])
    axes[0].set_yticks(
        [4 * n + 1 for n in range(len(EXPERIMENTS))], [f"({e})" for e in EXPERIMENTS]
    )
    axes[0].invert_yaxis()
    figure.supxlabel("overall accuracy after 20 epochs (%)", size="small")
    drawn = [
        Line2D([], [], color=METHOD_COLORS[m], marker=MARKERS[m], linestyle="none", label=name)
        for m, name in METHODS.items()
    ]
    cross = Line2D([], [], color=INK, marker="x", linestyle="none", mew=2, label="the paper")
    figure.legend(
        handles=[*drawn, cross], loc="outside upper center", ncols=4, columnspacing=1,
        handletextpad=0, borderaxespad=0, fontsize="small",
    )  # fmt: skip
    return figure


def _panel(axis: Axes, rows: pd.DataFrame) -> None:
    printed = (
        TABLE_2[TABLE_2.metric == METRIC].set_index(["experiment", "method"]).paper.astype(float)
    )
    for n, experiment in enumerate(EXPERIMENTS):
        if n:
            axis.axhline(4 * n - 1, color=INK, linewidth=0.5, alpha=0.5)
        for y, method in enumerate(METHODS, 4 * n):
            of_cell = (rows.experiment == experiment) & (rows.method == method)
            for row in rows[of_cell].itertuples():
                # Rounded, so that the last bits of a sum do not show in the file.
                mean, low, high = (round(100 * end, 2) for end in (row.mean, row.low, row.high))
                color = METHOD_COLORS[method]
                axis.plot([low, high], [y, y], color=color, linewidth=1.5)
                filled = color if row.reading == REFERENCE else "none"
                axis.plot(
                    mean, y, MARKERS[method], color=color, markerfacecolor=filled, markersize=5
                )
            axis.plot(printed[experiment, method], y, "x", color=INK, markersize=6, mew=2)


def drawings() -> dict[str, str]:
    """The picture as SVG for each of `FILES`, the same bytes each time."""
    with plt.rc_context():
        use_house_style()
        # matplotlib brings this font along, so that no machine takes another.
        plt.rcParams["font.family"] = "DejaVu Sans"
        figure, file = hero(hero_rows()), io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None}, pad_inches=0)
        plt.close(figure)
    light = file.getvalue()
    return {"light": light, "dark": re.sub("#[0-9a-f]{6}", lambda c: in_the_dark(c[0]), light)}


if __name__ == "__main__":
    for ground, drawing in drawings().items():
        (Path(sys.argv[1]) / FILES[ground]).write_text(drawing, encoding="utf-8")
