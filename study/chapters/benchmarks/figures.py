"""Figures of what `make bench` has measured."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from study.figures.style import ACCENTS, INK, METHOD_COLORS, panels

# No color of a class, and of a method only where it is the one that is timed.
LAYERS = [(METHOD_COLORS["wlf_wbn"], "o"), (INK, "s"), (ACCENTS[0], "^"), (ACCENTS[1], "D")]
LOOPS = [(ACCENTS[0], "o"), (INK, "s"), (ACCENTS[1], "^"), (ACCENTS[1], "D")]


def ratio_dots(rows: pd.DataFrame, labels: Mapping[str, str]) -> Figure:
    """A dot for each candidate and shape: its time over the one of ``nn.BatchNorm``.

    Lines reach from the lower to the upper quartile of the rounds.

    Parameters
    ----------
    rows
        Of `tables.table("layers")`, of one kind of use and one number of threads.
    labels
        Candidates to draw, at most four, and how they are called.
    """
    shapes = list(rows["shape"].unique())
    figure, (axis,) = panels(1.0 + 0.36 * len(shapes))
    axis.axvline(1, color=INK, linewidth=1, linestyle=":")
    for number, ((candidate, label), (color, marker)) in enumerate(
        zip(labels.items(), LAYERS, strict=False)
    ):
        own = rows[rows["candidate"] == candidate].set_index("shape")
        places = [
            shapes.index(shape) + 0.22 * (number - (len(labels) - 1) / 2) for shape in own.index
        ]
        axis.hlines(places, own["low"], own["high"], color, linewidth=1.5)
        axis.plot(own["ratio"], places, marker, color=color, markersize=5, label=label)
    axis.set(
        xscale="log", xlabel="time, as a multiple of nn.BatchNorm's", yticks=range(len(shapes)),
        yticklabels=[shape.replace("x", "×") for shape in shapes],
    )  # fmt: skip
    low, high = axis.get_xlim()
    ticks = (
        (0.25, 0.5, 1, 2, 4, 8, 16) if high > 8 * low else (0.25, 0.35, 0.5, 0.7, 1, 1.4, 2, 2.8)
    )
    axis.set_xticks([tick for tick in ticks if low < tick < high])
    axis.xaxis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    axis.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3)
    return figure


def replica_times(rows: pd.DataFrame) -> Figure:
    """Time of a replica's step over the number of replicas, of the engine and of its floor.

    Parameters
    ----------
    rows
        Of `tables.table("engine")`, with the replicas varied, of one number of
        threads.
    """
    figure, (axis,) = panels(2.6)
    for (name, own), (color, marker) in zip(rows.groupby("candidate"), LOOPS, strict=False):
        axis.plot(own["size"], own["microseconds_per_replica"] / 1000, f"{marker}-", color=color,
                  markersize=5, linewidth=1.2, label=name)  # fmt: skip
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="replicas trained at once",
        ylabel="ms a step and replica",
    )
    axis.set_xticks(sorted(rows["size"].unique()))
    low, high = axis.get_ylim()
    axis.set_yticks([tick for tick in (0.25, 0.5, 1, 2, 4, 8, 16) if low < tick < high])
    for ticks in (axis.xaxis, axis.yaxis):
        ticks.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
        ticks.set_minor_locator(NullLocator())
    figure.legend(loc="outside upper center", ncols=2)
    return figure
