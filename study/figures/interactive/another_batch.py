"""The recurring picture of one mini-batch after another, with a button that draws the next."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from IPython.display import HTML
from torch import Tensor

from study.figures.batches import heights
from study.figures.interactive.batch import (
    DIAMOND,
    KEY,
    RADIUS,
    axis,
    ends,
    means,
    number,
    places,
    points,
)
from study.figures.interactive.frame import button, html_table, page
from wbn.functional import weighted_moments

IN_TABLE = 10  # batches
TRACES = {"bn": (262, "BN's means so far"), "wbn": (304, "WBN's means so far")}  # heights, names


def another_batch(
    x: Tensor,
    minority: Tensor,
    weight: float,
    batches: Sequence[Tensor],
    name: str = "another-batch",
) -> HTML:
    r"""Mini-batches in turn, with BN's mean and WBN's, :math:`\sum_\mu w_\mu x_\mu / Z` (Eq. 11).

    Below the picture stand the means of all batches so far. Majority samples have the weight 1;
    signals are rounded to three decimals.

    Parameters
    ----------
    x
        One signal of each sample of the training set, shape (N,).
    minority
        Whether each sample belongs to the minority class, shape (N,).
    weight
        Of a minority sample.
    batches
        Places of the samples of each mini-batch, in the order in which they are drawn.
    name
        The figure's id, different for each figure of a page.

    Examples
    --------
    >>> import torch
    >>> x, minority = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([False, False, True])
    >>> drawn = another_batch(x, minority, weight=8, batches=[torch.arange(3)]).data
    >>> "WBN's mean is <b class=\"wbn\">1.70</b>" in drawn
    True
    """
    x = x.double().round(decimals=3)
    low, high = ends(x)
    pairs = [(x[batch], minority[batch]) for batch in batches]
    first = (*pairs[0], weight, low, high)
    return page(
        name,
        {f"{name}-button": button(f"{name}-button", "Draw another batch")},
        picture=_picture(*first),
        readout=_readout(*pairs[0], weight, len(batches)),
        table=_table(pairs[:IN_TABLE], weight),
        caption="Whoever is in the batch, BN's mean hardly moves. WBN's mean jumps: it stays with "
        "the majority where there is no minority sample, and goes far where there is one.",
        needs="The button needs",
        script="another_batch.js",
        settings={
            "batches": [[_thousandths(x[~rare]), _thousandths(x[rare])] for x, rare in pairs],
            "heights": [
                round(120 - 55 * h, 1) for h in heights(torch.zeros(max(map(len, batches))))
            ],
            "weight": round(weight, 6),
            "low": low,
            "high": high,
            "radius": RADIUS,
            "diamond": DIAMOND,
            "traces": {mean: height for mean, (height, _) in TRACES.items()},
        },
    )


def _thousandths(x: Tensor) -> list[int]:
    return (1000 * x).round().int().tolist()


def _means(x: Tensor, minority: Tensor, weight: float) -> tuple[float, float]:
    w = torch.where(minority, float(weight), 1.0).double()
    return tuple(weighted_moments(x[:, None], by, "none")[0].item() for by in (None, w))


def _readout(x: Tensor, minority: Tensor, weight: float, count: int) -> str:
    bn, wbn = map(number, _means(x, minority, weight))
    return (
        f'Mini-batch <b class="number">1</b> of {count} has <b class="size">{len(x)}</b> samples, '
        f'<b class="held">{int(minority.sum())}</b> of the minority. BN\'s mean is '
        f'<b class="bn">{bn}</b> and WBN\'s mean is <b class="wbn">{wbn}</b>. So far BN\'s went '
        f'from <b class="bn-low">{bn}</b> to <b class="bn-high">{bn}</b>, and WBN\'s from '
        f'<b class="wbn-low">{wbn}</b> to <b class="wbn-high">{wbn}</b>.'
    )


def _table(pairs: list[tuple[Tensor, Tensor]], weight: float) -> str:
    titles = ["mini-batch", "minority samples", "BN's mean", "WBN's mean"]
    rows = [
        [str(n), str(int(rare.sum())), *map(number, _means(x, rare, weight))]
        for n, (x, rare) in enumerate(pairs, 1)
    ]
    return html_table(f"The first {len(rows)} mini-batches.", titles, rows)


def _picture(x: Tensor, minority: Tensor, weight: float, low: float, high: float) -> str:
    place = places(low, high)
    at = dict(zip(TRACES, map(place, _means(x, minority, weight)), strict=True))
    traces = [
        f'<text class="key" x="0" y="{height}">{title}</text>\n<g class="trace {mean}">'
        f'<line x1="{at[mean]}" x2="{at[mean]}" y1="{height + 6}" y2="{height + 20}"/></g>'
        for mean, (height, title) in TRACES.items()
    ]
    summary = (
        "Mini-batches of a training set in turn, each as points, with BN's mean, a dashed line, "
        "and WBN's mean, a solid one. Two rows of ticks below keep the means of all batches that "
        "were drawn: BN's stay together, WBN's spread from the majority to the minority."
    )
    return "\n".join(
        [
            f'<svg role="img" aria-label="{summary}" style="height: 21rem">',
            KEY,
            f'<g class="points">\n{points(x, minority, weight, low, high)}\n</g>',
            means(at["bn"], at["wbn"]),
            axis(low, high),
            *traces,
            "</svg>",
        ]
    )
