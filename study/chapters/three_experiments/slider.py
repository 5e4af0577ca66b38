"""The margins of single networks, with a threshold that one can drag."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import torch
from IPython.display import HTML
from matplotlib.ticker import MaxNLocator

from study.chapters.three_experiments.thresholds import balanced_accuracy
from study.engine.threshold import best_balanced_accuracy
from study.figures.interactive.frame import button, choice, html_table, page, slider
from study.figures.text import MINUS, percent

STEP = 0.05  # of the slider
BINS = 48
TOP, BASE = 34, 150  # of the histograms, in pixels
CURVE = (200, 300)  # heights of balanced accuracies of 100 and 50 %


def threshold_slider(margins: pd.DataFrame, minority: pd.Series, name: str = "threshold") -> HTML:
    r"""Histograms of margins by class, and the balanced accuracy at any threshold.

    An image whose margin is above the threshold is taken for the minority; the network's own
    threshold is 0. The best threshold is the one with the largest balanced accuracy on these
    images: it uses their labels and is a diagnosis, no method.

    Parameters
    ----------
    margins
        A column for each network, the one that is shown first in front; three decimals.
    minority
        Whether each image belongs to the minority class.
    name
        The figure's id, different for each figure of a page.

    Examples
    --------
    >>> margins = pd.DataFrame({"BN": [-2.0, -1.0, -0.5, 1.0]})
    >>> page = threshold_slider(margins, pd.Series([False, False, True, True])).data
    >>> "balanced accuracy is <b class=\"balanced\">75.0</b>" in page
    True
    """
    low = math.floor(margins.min().min()) - 0.5
    high = math.ceil(margins[minority].median().max()) + 1.5
    first = margins.columns[0]
    at_best = {network: best_threshold(margins[network], minority) for network in margins}
    controls = {
        f"{name}-network": choice(f"{name}-network", "Network", list(margins)),
        f"{name}-slider": slider(
            f"{name}-slider",
            "Threshold",
            f'min="{low}" max="{high}" step="{STEP}" value="0" aria-valuetext="0.00"',
        ),
        f"{name}-best": button(f"{name}-best", "Go to the best threshold"),
        f"{name}-own": button(f"{name}-own", "Back to the network's own"),
    }
    return page(
        name,
        controls,
        picture=_picture(margins[first], minority, low, high),
        readout=_readout(margins[first], minority, *at_best[first]),
        table=_table(margins, minority, at_best),
        caption="Drag the line. Where weighted BN has lost the minority, most of what it has lost "
        "comes back at another threshold. Images beyond the axis are counted in its last bars.",
        needs="The slider needs",
        script="threshold.js",
        settings={
            "networks": [
                [_sorted(margins[n][~minority]), _sorted(margins[n][minority]), *at_best[n]]
                for n in margins
            ],
            "low": low,
            "high": high,
            "bins": BINS,
            "box": [TOP, BASE],
            "curve": CURVE,
        },
    )


def best_threshold(margin: pd.Series, minority: pd.Series) -> tuple[float, float]:
    """The threshold with the largest balanced accuracy, the lowest of equals, and that accuracy.

    Examples
    --------
    >>> best_threshold(pd.Series([1.0, 2.0, 3.0, 4.0]), pd.Series([False, True, False, True]))
    (1.0, 0.75)
    """
    best = best_balanced_accuracy(torch.tensor(margin), torch.tensor(minority))
    for threshold in np.sort(margin.unique()):
        if math.isclose(balanced_accuracy(margin, minority, threshold), best):
            return float(threshold), best
    return float(margin.min()) - STEP, best


def _sorted(margin: pd.Series) -> list[int]:
    """In thousandths."""
    return sorted((1000 * margin).round().astype(int).tolist())


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", MINUS)


def _readout(margin: pd.Series, minority: pd.Series, best: float, accuracy: float) -> str:
    taken = margin > 0
    rare, common = taken[minority].mean(), (~taken)[~minority].mean()
    own = percent(balanced_accuracy(margin, minority))
    return (
        f'With the threshold at <b class="at">0.00</b>, <b class="minority">{percent(rare)}</b> % '
        f'of the minority and <b class="majority">{percent(common)}</b> % of the majority are '
        f'right: the balanced accuracy is <b class="balanced">{own}</b> %. With the network\'s own '
        f'threshold, 0, it is <b class="own">{own}</b> %, and with the best one, '
        f'<b class="best-at">{_number(best)}</b>, it is <b class="best">{percent(accuracy)}</b> %.'
    )


def _table(
    margins: pd.DataFrame, minority: pd.Series, at_best: dict[str, tuple[float, float]]
) -> str:
    titles = [
        "network",
        "balanced accuracy at 0, %",
        "best threshold",
        "balanced accuracy there, %",
    ]
    rows = [
        [
            network,
            percent(balanced_accuracy(margins[network], minority)),
            _number(best),
            percent(accuracy),
        ]
        for network, (best, accuracy) in at_best.items()
    ]
    caption = "The networks with their own threshold and with the best one on the test labels."
    return html_table(caption, titles, rows)


def _counts(margin: pd.Series, low: float, high: float) -> np.ndarray:
    """By bin; what lies beyond the axis is counted in the last bin."""
    return np.histogram(margin.clip(low, high), BINS, (low, high))[0]


def _histogram(margin: pd.Series, low: float, high: float, tallest: float) -> str:
    """Outline of a histogram as a path, in a picture that is 100 wide and not yet stretched."""
    counts = _counts(margin, low, high)
    steps = "".join(
        f"V{BASE - (BASE - TOP) * n / tallest:.2f}H{100 * k / BINS:.3f}"
        for k, n in enumerate(counts, 1)
    )
    return f"M0 {BASE}{steps}V{BASE}z"


def _curve(margin: pd.Series, minority: pd.Series, low: float, high: float) -> str:
    top, bottom = CURVE
    at = np.linspace(low, high, 101)
    heights = [
        bottom - 2 * (bottom - top) * (balanced_accuracy(margin, minority, t) - 0.5) for t in at
    ]
    return "M" + "L".join(f"{n} {height:.2f}" for n, height in enumerate(heights))


def _picture(margin: pd.Series, minority: pd.Series, low: float, high: float) -> str:
    def place(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    tallest = max(_counts(margin[mask], low, high).max() for mask in (minority, ~minority))
    ticks = [t + 0.0 for t in MaxNLocator(7).tick_values(low, high) if low < t < high]
    top, bottom = CURVE
    accuracy = bottom - 2 * (bottom - top) * (balanced_accuracy(margin, minority) - 0.5)
    summary = (
        "Above, histograms of the margins of both classes: the majority to the left, the minority "
        "to the right. Below, the balanced accuracy by threshold, a curve with one top. A dashed "
        "line stands at zero, the network's own threshold, a solid one at the threshold that is "
        "chosen."
    )
    return "\n".join(
        [
            f'<svg role="img" aria-label="{summary}" style="height: 328px; touch-action: pan-y">',
            '<svg class="stretched" viewBox="0 0 100 328" preserveAspectRatio="none">',
            *(
                f'<path class="{which}" d="{_histogram(margin[mask], low, high, tallest)}"/>'
                for which, mask in (("majority", ~minority), ("minority", minority))
            ),
            f'<path class="accuracy" d="{_curve(margin, minority, low, high)}"/>',
            "</svg>",
            '<rect class="majority" x="2" y="4" width="12" height="12"/>',
            '<text class="key" x="20" y="15">majority</text>',
            '<rect class="minority" x="108" y="4" width="12" height="12"/>',
            '<text class="key" x="126" y="15">minority</text>',
            f'<line class="axis" x1="0" x2="100%" y1="{BASE}" y2="{BASE}"/>',
            f'<line class="axis" x1="0" x2="100%" y1="{bottom}" y2="{bottom}"/>',
            f'<text class="key" x="0" y="{bottom + 16}">50 %</text>',
            f'<line class="bn" x1="{place(0)}" x2="{place(0)}" y1="{TOP}" y2="{bottom}"/>',
            f'<line class="at" x1="{place(0)}" x2="{place(0)}" y1="{TOP - 10}" y2="{bottom}"/>',
            f'<circle class="ink at" cx="{place(0)}" cy="{accuracy:.2f}" r="5"/>',
            *(
                f'<text class="tick" x="{place(t)}" y="{BASE + 18}">'
                f"{f'{t:g}'.replace('-', MINUS)}</text>"
                for t in ticks
            ),
            f'<text class="key tick" x="0" y="{top - 8}">'
            "balanced accuracy at this threshold</text>",
            "</svg>",
        ]
    )
