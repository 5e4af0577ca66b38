"""The recurring picture of a mini-batch as SVG, which several figures move."""

from __future__ import annotations

import math
from collections.abc import Callable

from matplotlib.ticker import MaxNLocator
from torch import Tensor

from study.figures.batches import heights
from study.figures.interactive.frame import diamond
from study.figures.text import MINUS

RADIUS = 2.2  # of a disc of weight 1, in pixels
DIAMOND = diamond(RADIUS)
KEY = f"""\
<circle class="majority" cx="8" cy="10" r="{2 * RADIUS}"/>
<text class="key" x="18" y="15">majority</text>
<svg x="108" y="10"><path class="minority" d="{DIAMOND}" transform="scale(2)"/></svg>
<text class="key" x="118" y="15">minority</text>"""


def ends(x: Tensor, digits: int = 3) -> tuple[float, float]:
    """Of an axis on which all signals find room, with some to spare."""
    margin = 0.18 * (x.max() - x.min()).item()
    return round(x.min().item() - margin, digits), round(x.max().item() + margin, digits)


def places(low: float, high: float) -> Callable[[float], str]:
    """From a signal to its place on the axis, in percent of the picture's width."""
    return lambda value: f"{100 * (value - low) / (high - low):.2f}%"


def points(x: Tensor, minority: Tensor, weight: float, low: float, high: float) -> str:
    """Discs of weight 1 and diamonds of another weight, whose area is the weight."""
    place = places(low, high)
    disc = f'<circle class="point majority" data-x="{{}}" cx="{{}}" cy="{{:.1f}}" r="{RADIUS}"/>'
    path = (
        f'<svg x="{{1}}" y="{{2:.1f}}"><path class="point minority" data-x="{{0}}" '
        f'd="{DIAMOND}" transform="scale({math.sqrt(weight):.4f})"/></svg>'
    )
    drawn = zip(x.tolist(), minority.tolist(), 120 - 55 * heights(minority), strict=True)
    return "\n".join((path if rare else disc).format(v, place(v), y) for v, rare, y in drawn)


def number(value: float, form: str = ".2f") -> str:
    """A number as it is printed, with a minus sign."""
    return f"{value:{form}}".replace("-", MINUS)


def axis(low: float, high: float) -> str:
    """The axis of the signals, with its ticks."""
    place = places(low, high)
    ticks = [t + 0.0 for t in MaxNLocator(5).tick_values(low, high).round(6) if low < t < high]
    return "\n".join(
        [
            '<line class="axis" x1="0" x2="100%" y1="195" y2="195"/>',
            *(
                f'<text class="tick" x="{place(tick)}" y="212">{number(tick, "g")}</text>'
                for tick in ticks
            ),
        ]
    )


def means(bn: str, wbn: str) -> str:
    """BN's mean, dashed and named above the points, and WBN's, solid and named below the axis."""
    return f"""\
<line class="bn" x1="{bn}" x2="{bn}" y1="44" y2="195"/>
<text class="bn" x="{bn}" y="38">BN's mean</text>
<line class="wbn" x1="{wbn}" x2="{wbn}" y1="44" y2="220"/>
<text class="wbn" x="{wbn}" y="236">WBN's mean</text>"""
