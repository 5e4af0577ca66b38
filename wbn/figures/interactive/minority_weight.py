"""The recurring picture of a mini-batch, with a slider over the weight of its minority."""

from __future__ import annotations

import math
from string import Template

import torch
from IPython.display import HTML
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from wbn.figures.batches import heights
from wbn.figures.interactive.frame import diamond, html_table, page, slider
from wbn.functional import weighted_moments
from wbn.weights import effective_sample_size

LARGEST_WEIGHT = 200
RADIUS = 2.2  # of a disc of weight 1, in pixels

PICTURE = Template(f"""\
<svg role="img" aria-label="$summary" style="height: 15rem">
<circle class="majority" cx="8" cy="10" r="{2 * RADIUS}"/>
<text class="key" x="18" y="15">majority</text>
<svg x="108" y="10"><path class="minority" d="$diamond" transform="scale(2)"/></svg>
<text class="key" x="118" y="15">minority</text>
$points
<line class="axis" x1="0" x2="100%" y1="195" y2="195"/>
$ticks
<line class="bn" x1="$bn" x2="$bn" y1="44" y2="195"/>
<text class="bn" x="$bn" y="38">BN's mean</text>
<line class="wbn" x1="$wbn" x2="$wbn" y1="44" y2="220"/>
<text class="wbn" x="$wbn" y="236">WBN's mean</text>
</svg>""")


def minority_weight_slider(
    x: Tensor, minority: Tensor, weight: int, name: str = "minority-weight"
) -> HTML:
    r"""The recurring picture with a slider over the weight of the minority samples.

    The areas of the points, WBN's mean :math:`\sum_\mu w_\mu x_\mu / Z` (Eq. 11) and Kish's
    effective sample size :math:`Z^2 / \sum_\mu w_\mu^2` follow the slider; majority samples
    have the weight 1. Signals are rounded to three decimals.

    Parameters
    ----------
    x
        One signal of each sample, shape (N,).
    minority
        Whether each sample belongs to the minority class, shape (N,).
    weight
        Where the slider starts, from 1 to 200.
    name
        The figure's id, different for each figure of a page.

    Examples
    --------
    >>> import torch
    >>> x, minority = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([False, False, True])
    >>> page = minority_weight_slider(x, minority, weight=8).data
    >>> "WBN's mean is <b class=\"mean\">1.70</b>" in page
    True
    """
    x = x.double().round(decimals=3)
    margin = 0.18 * (x.max() - x.min()).item()
    low, high = round(x.min().item() - margin, 3), round(x.max().item() + margin, 3)
    control = slider(
        f"{name}-slider",
        "Weight of a minority sample (a majority sample weighs 1)",
        f'min="1" max="{LARGEST_WEIGHT}" value="{weight}" '
        f'aria-valuetext="{weight} times a majority sample"',
    )
    return page(
        name,
        {f"{name}-slider": control},
        picture=_picture(x, minority, weight, low, high),
        readout=_readout(x, minority, weight),
        table=_table(x, minority, sorted({1, 10, 50, 100, weight, LARGEST_WEIGHT})),
        caption="Each point has the area of its weight. The more a minority sample weighs, the "
        "nearer WBN's mean is to it, and the fewer samples the batch is worth.",
        script="minority_weight.js",
        settings={"low": low, "high": high},
    )


def _statistics(x: Tensor, minority: Tensor, weight: int) -> tuple[float, float, float]:
    """BN's mean, WBN's mean and the effective sample size."""
    w = torch.where(minority, float(weight), 1.0).double()
    mean, _ = weighted_moments(x[:, None], w, "none")
    return x.mean().item(), mean.item(), effective_sample_size(w).item()


def _readout(x: Tensor, minority: Tensor, weight: int) -> str:
    bn, wbn, size = _statistics(x, minority, weight)
    return (
        f"With a weight of <b class=\"weight\">{weight}</b>, BN's mean is {bn:.2f} and WBN's "
        f'mean is <b class="mean">{wbn:.2f}</b>; the effective sample size is '
        f'<b class="size">{size:.2f}</b> of {len(x)}.'
    )


def _table(x: Tensor, minority: Tensor, weights: list[int]) -> str:
    titles = ["weight", "BN's mean", "WBN's mean", "effective sample size"]
    rows = [
        [str(weight), *(f"{value:.2f}" for value in _statistics(x, minority, weight))]
        for weight in weights
    ]
    return html_table(titles, rows)


def _picture(x: Tensor, minority: Tensor, weight: int, low: float, high: float) -> str:
    def place(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    bn, wbn, _ = _statistics(x, minority, weight)
    ticks = [t + 0.0 for t in MaxNLocator(5).tick_values(low, high).round(6) if low < t < high]
    shape = diamond(RADIUS)
    circle = f'<circle class="point majority" data-x="{{}}" cx="{{}}" cy="{{:.1f}}" r="{RADIUS}"/>'
    path = (
        f'<svg x="{{1}}" y="{{2:.1f}}"><path class="point minority" data-x="{{0}}" '
        f'd="{shape}" transform="scale({math.sqrt(weight):.4f})"/></svg>'
    )
    points = zip(x.tolist(), minority.tolist(), 120 - 55 * heights(minority), strict=True)
    return PICTURE.substitute(
        summary=f"A mini-batch of {len(x)} signals as points, {int(minority.sum())} of them from "
        "the minority class. BN's mean is a dashed line among the majority; WBN's mean, a solid "
        "line, lies nearer to the minority the more it weighs.",
        diamond=shape,
        points="\n".join(
            (path if rare else circle).format(value, place(value), y) for value, rare, y in points
        ),
        ticks="\n".join(f'<text x="{place(tick)}" y="212">{tick:g}</text>' for tick in ticks),
        bn=place(bn),
        wbn=place(wbn),
    )
