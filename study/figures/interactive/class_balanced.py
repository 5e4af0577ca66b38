"""Class-balanced weights and what follows from them, with sliders over beta and a class size."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from IPython.display import HTML

from study.figures.interactive.frame import diamond, html_table, page, slider
from wbn.weights import (
    class_balanced,
    effective_class_sizes,
    effective_sample_size,
    per_sample,
    rescale,
)

POWERS = 6  # the slider over beta runs from 0 to 1 - 10^-6
MINORITIES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)  # where there are no more
ROW = 86  # pixels
LEAST = 2  # total weight that the frequency correction accepts


class Quantity(NamedTuple):
    """A number of the figure: its place among the axes, its mark and how it is written."""

    title: str
    row: int
    shape: str
    digits: int


CIRCLE = '<circle class="majority" r="6"/>'
DIAMOND = f'<path class="minority" d="{diamond(6)}"/>'
SQUARE, HOLLOW = (f'<path class="{fill}" d="M-5-5h10v10h-10z"/>' for fill in ("ink", "hollow"))
TRIANGLE = '<path class="ink" d="M0-7L7 5H-7z"/>'
QUANTITIES = {
    "majority-weight": Quantity("majority weight", 0, CIRCLE, 2),
    "minority-weight": Quantity("minority weight", 0, DIAMOND, 2),
    "majority-size": Quantity("majority size", 1, CIRCLE, 1),
    "minority-size": Quantity("minority size", 1, DIAMOND, 1),
    "total": Quantity("total weight", 2, SQUARE, 2),
    "raw-total": Quantity("raw total weight", 2, HOLLOW, 3),
    "worth": Quantity("effective sample size", 2, TRIANGLE, 2),
}
ENDS = ((-0.4, 3.9), (-0.4, 3.9), (-2.4, 3.9))  # of each row's axis, powers of ten
KEYS = (  # for each row a title, then where, what and named how
    ("Class weight", ((110, CIRCLE, "majority"), (200, DIAMOND, "minority"))),
    ("Effective class size", ()),
    ("Batch", ((60, SQUARE, "total"), (125, HOLLOW, "raw total"), (215, TRIANGLE, "worth"))),
)


def class_balanced_sliders(
    majority: int, minority: int, beta_power: float, batch_size: int, name: str = "class-balanced"
) -> HTML:
    r"""Weights :math:`w_k = (1 - \beta) / (1 - \beta^{N_k})` of two classes, with sliders.

    One slider is over :math:`-\log_{10}(1 - \beta)`, the other over the size of the minority
    class. They move the class weights on the scale ``"mean_one"``, the effective class sizes
    :math:`w_k N_k` and, of a batch with one minority sample, the total weight :math:`Z_r` on
    that scale and of raw weights, and Kish's effective sample size.

    Parameters
    ----------
    majority
        Size of the majority class.
    minority, beta_power
        Where the sliders start: a class size up to `majority`, and p of
        :math:`\beta = 1 - 10^{-p}`, from 0 to 6 in steps of 0.1.
    batch_size
        Size of the batch, the one minority sample included.
    name
        The figure's id, different for each figure of a page.

    Examples
    --------
    >>> page = class_balanced_sliders(60, 20, beta_power=0, batch_size=10).data
    >>> "effective sample size is <b class=\"worth\">10.00</b>" in page
    True
    """
    counts = sorted({*(n for n in MINORITIES if n < majority), minority, majority})
    now = _numbers(majority, minority, beta_power, batch_size)
    beta, place = f"{1 - 10**-beta_power:.{POWERS}f}", counts.index(minority)
    ids = f"{name}-beta", f"{name}-minority"
    labels = (
        f"β, from 0 to 0.{'9' * POWERS}, by powers of ten of 1 − β",
        f"Size of the minority class (the majority has {majority})",
    )
    ranges = (
        f'min="0" max="{POWERS}" step="0.1" value="{beta_power:g}" aria-valuetext="beta {beta}"',
        f'min="0" max="{len(counts) - 1}" value="{place}" '
        f'aria-valuetext="{minority} minority samples"',
    )
    return page(
        name,
        {id: slider(id, *rest) for id, *rest in zip(ids, labels, ranges, strict=True)},
        picture=_picture(now),
        readout=_readout(now, beta, minority, batch_size),
        table=_table(majority, minority, batch_size),
        caption=f"Class weights (mean one), effective class sizes, and a batch of {batch_size} "
        "with one minority sample: its total weight, that of raw weights, and how many samples it "
        "is worth. As β nears 1 the class sizes meet, the batch is worth few samples, and the "
        "raw total falls below 2, the dashed line.",
        needs="The sliders need",
        script="class_balanced.js",
        settings={
            "counts": counts,
            "shown": {key: [q.digits, *ENDS[q.row]] for key, q in QUANTITIES.items()},
            "majority": majority,
            "others": batch_size - 1,
            "powers": POWERS,
            "least": LEAST,
        },
    )


def _numbers(majority: int, minority: int, beta_power: float, batch_size: int) -> dict[str, float]:
    """Every quantity, by its name."""
    counts, batch = [majority, minority], torch.arange(batch_size) == 0
    raw = class_balanced(counts, 1 - 10**-beta_power)
    weight = rescale(raw, counts, "mean_one")
    w = per_sample(weight, batch.long())
    values = (
        *weight.tolist(),
        *effective_class_sizes(weight, counts).tolist(),
        w.sum().item(),
        per_sample(raw, batch.long()).sum().item(),
        effective_sample_size(w).item(),
    )
    return dict(zip(QUANTITIES, values, strict=True))


def _written(values: dict[str, float]) -> dict[str, str]:
    return {name: f"{value:.{QUANTITIES[name].digits}f}" for name, value in values.items()}


def _readout(values: dict[str, float], beta: str, minority: int, batch_size: int) -> str:
    b = {name: f'<b class="{name}">{text}</b>' for name, text in _written(values).items()}
    verdict = "refuses" if values["raw-total"] < LEAST else "accepts"
    return (
        f'β = <b class="beta">{beta}</b> and <b class="minority-count">{minority}</b> minority '
        f"samples: a majority sample weighs {b['majority-weight']} and a minority sample "
        f"{b['minority-weight']}; the effective class sizes are {b['majority-size']} and "
        f"{b['minority-size']}. A batch of {batch_size - 1} and 1 has the total weight "
        f"{b['total']}; its effective sample size is {b['worth']}. Its raw weights add up to "
        f'{b["raw-total"]}, which the correction "frequency" '
        f'<span class="verdict">{verdict}</span>.'
    )


def _table(majority: int, minority: int, batch_size: int) -> str:
    titles = ["β", *(quantity.title for quantity in QUANTITIES.values())]
    rows = [
        [f"{1 - 10**-p:.{p}f}", *_written(_numbers(majority, minority, p, batch_size)).values()]
        for p in range(POWERS + 1)
    ]
    label = f"Values for {minority} minority samples"
    table = html_table(f"{label}, by beta.", titles, rows)
    return f'<div role="region" tabindex="0" aria-label="{label}">\n{table}\n</div>'


def _place(value: float, row: int) -> str:
    low, high = ENDS[row]
    return f"{100 * (math.log10(value) - low) / (high - low):.2f}%"


def _picture(values: dict[str, float]) -> str:
    parts = []
    for row, (title, marks) in enumerate(KEYS):
        top, (low, high) = ROW * row, ENDS[row]
        parts.append(f'<text class="key" x="0" y="{top + 14}">{title}</text>')
        for x, shape, label in marks:
            parts.append(f'<svg x="{x}" y="{top + 10}">{shape}</svg>')
            parts.append(f'<text class="key" x="{x + 12}" y="{top + 14}">{label}</text>')
        parts.append(f'<line class="axis" x1="0" x2="100%" y1="{top + 52}" y2="{top + 52}"/>')
        for power in range(math.ceil(low), math.floor(high) + 1):
            x = _place(10.0**power, row)
            parts.append(f'<line class="axis" x1="{x}" x2="{x}" y1="{top + 48}" y2="{top + 52}"/>')
            parts.append(f'<text x="{x}" y="{top + 68}">{10.0**power:g}</text>')
    x, top = _place(LEAST, 2), 2 * ROW
    parts.append(f'<line class="bn" x1="{x}" x2="{x}" y1="{top + 22}" y2="{top + 56}"/>')
    parts.append(f'<text x="{x}" y="{top + 68}">{LEAST}</text>')
    for name, value in values.items():
        _, row, shape, _ = QUANTITIES[name]
        x, y = _place(value, row), ROW * row + 38
        parts.append(f'<svg class="mark {name}" x="{x}" y="{y}">{shape}</svg>')
    summary = (
        "Three logarithmic axes: the weights of the two classes, their effective sizes, and the "
        "total weight, raw total weight and effective sample size of a batch. A dashed line on "
        "the last one stands at 2, the least total weight that the frequency correction accepts."
    )
    start = f'<svg role="img" aria-label="{summary}" style="height: 16.5rem">'
    return "\n".join([start, *parts, "</svg>"])
