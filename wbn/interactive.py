"""Figures that a reader can move: SVG and a little JavaScript, no kernel and no network.

The picture is complete before any script runs, and the same input gives the same bytes.
"""

from __future__ import annotations

import math
from string import Template

import torch
from IPython.display import HTML
from matplotlib.ticker import MaxNLocator
from torch import Tensor

from wbn.functional import weighted_moments
from wbn.plots import MAJORITY, MINORITY, heights
from wbn.weights import effective_sample_size

LARGEST_WEIGHT = 200
RADIUS = 2.2  # of a disc of weight 1, in pixels
CORNER = round(RADIUS * math.sqrt(math.pi / 2), 3)  # of a diamond with the same area

FRAME = Template("""\
<figure id="$name">
<style>
#$name { margin: 0; --majority: $majority; --minority: $minority }
html[data-theme="dark"] #$name { --majority: #56B4E9; --minority: #E69F00 }
#$name > svg { display: block; width: 100%; height: 15rem; font-size: 0.85rem }
#$name svg svg { overflow: visible }
#$name text { fill: var(--pst-color-text-base, currentColor); text-anchor: middle }
#$name text.key { text-anchor: start }
#$name line { stroke: var(--pst-color-text-base, currentColor); stroke-width: 2 }
#$name line.axis { stroke-width: 1 }
#$name line.bn { stroke-dasharray: 5 4 }
#$name .majority { fill: var(--majority); fill-opacity: 0.7 }
#$name .minority { fill: var(--minority); fill-opacity: 0.7 }
#$name :is(label, input, output) { display: block; width: 100% }
#$name label { margin-top: 0.5rem }
#$name input { height: 2.75rem; margin: 0; accent-color: var(--pst-color-primary, auto) }
#$name :is(td, th) { padding: 0.3rem; white-space: normal; text-align: right }
#$name figcaption { margin: 1rem 0; text-align: left }
</style>
$picture
<div class="control" hidden>
<label for="$name-slider">$label</label>
<input id="$name-slider" type="range" $range>
</div>
<output for="$name-slider" aria-live="polite">$readout</output>
<noscript><p>The slider needs JavaScript; the table below has other values.</p></noscript>
<details><summary>As a table</summary>
$table
</details>
<figcaption>$caption</figcaption>
<script>
(() => {
  const figure = document.getElementById("$name");
  const find = (selector) => figure.querySelector(selector);
  const slider = find("input");
$script
  slider.addEventListener("input", show);
  find(".control").hidden = false;
  show();
})();
</script>
</figure>
""")

PICTURE = Template(f"""\
<svg role="img" aria-label="$summary">
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

SCRIPT = Template("""\
  const diamonds = [...figure.querySelectorAll(".point.minority")];
  const circles = [...figure.querySelectorAll(".point.majority")];
  const sum = (points) => points.reduce((total, point) => total + Number(point.dataset.x), 0);

  function show() {
    const weight = Number(slider.value);
    const total = circles.length + weight * diamonds.length;
    const squares = circles.length + weight ** 2 * diamonds.length;
    const mean = (sum(circles) + weight * sum(diamonds)) / total;
    const place = `$${100 * (mean - $low) / ($high - $low)}%`;
    for (const x of ["x1", "x2"]) find("line.wbn").setAttribute(x, place);
    find("text.wbn").setAttribute("x", place);
    for (const diamond of diamonds) {
      diamond.setAttribute("transform", `scale($${Math.sqrt(weight)})`);
    }
    slider.setAttribute("aria-valuetext", `$${weight} times a majority sample`);
    find(".weight").textContent = weight;
    find(".mean").textContent = mean.toFixed(2);
    find(".size").textContent = (total ** 2 / squares).toFixed(2);
  }""")


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
    page = FRAME.substitute(
        name=name,
        majority=MAJORITY,
        minority=MINORITY,
        picture=_picture(x, minority, weight, low, high),
        label="Weight of a minority sample (a majority sample weighs 1)",
        range=f'min="1" max="{LARGEST_WEIGHT}" value="{weight}" '
        f'aria-valuetext="{weight} times a majority sample"',
        readout=_readout(x, minority, weight),
        table=_table(x, minority, sorted({1, 10, 50, 100, weight, LARGEST_WEIGHT})),
        caption="Each point has the area of its weight. The more a minority sample weighs, the "
        "nearer WBN's mean is to it, and the fewer samples the batch is worth.",
        script=SCRIPT.substitute(low=low, high=high),
    )
    return HTML(page)


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
    titles = "weight", "BN's mean", "WBN's mean", "effective sample size"
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    row = '<tr><th scope="row">{}</th><td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td></tr>'
    rows = "\n".join(row.format(w, *_statistics(x, minority, w)) for w in weights)
    return f'<table class="table">\n<tr>{head}</tr>\n{rows}\n</table>'


def _picture(x: Tensor, minority: Tensor, weight: int, low: float, high: float) -> str:
    def place(value: float) -> str:
        return f"{100 * (value - low) / (high - low):.2f}%"

    bn, wbn, _ = _statistics(x, minority, weight)
    ticks = [t + 0.0 for t in MaxNLocator(5).tick_values(low, high).round(6) if low < t < high]
    diamond = f"M0-{CORNER}L{CORNER} 0 0 {CORNER}-{CORNER} 0z"
    circle = f'<circle class="point majority" data-x="{{}}" cx="{{}}" cy="{{:.1f}}" r="{RADIUS}"/>'
    path = (
        f'<svg x="{{1}}" y="{{2:.1f}}"><path class="point minority" data-x="{{0}}" '
        f'd="{diamond}" transform="scale({math.sqrt(weight):.4f})"/></svg>'
    )
    points = zip(x.tolist(), minority.tolist(), 120 - 55 * heights(minority), strict=True)
    return PICTURE.substitute(
        summary=f"A mini-batch of {len(x)} signals as points, {int(minority.sum())} of them from "
        "the minority class. BN's mean is a dashed line among the majority; WBN's mean, a solid "
        "line, lies nearer to the minority the more it weighs.",
        diamond=diamond,
        points="\n".join(
            (path if rare else circle).format(value, place(value), y) for value, rare, y in points
        ),
        ticks="\n".join(f'<text x="{place(tick)}" y="212">{tick:g}</text>' for tick in ticks),
        bn=place(bn),
        wbn=place(wbn),
    )
