"""What interactive figures share: the page around the picture, its style, and its marks."""

from __future__ import annotations

import math
from string import Template

from IPython.display import HTML

from wbn.figures.style import MAJORITY, MINORITY

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
$style</style>
$picture
<div class="control" hidden>
$controls
</div>
<output for="$inputs" aria-live="polite">$readout</output>
<noscript><p>$needs JavaScript; the table below has other values.</p></noscript>
<details><summary>As a table</summary>
$table
</details>
<figcaption>$caption</figcaption>
<script>
(() => {
  const figure = document.getElementById("$name");
  const find = (selector) => figure.querySelector(selector);
$script
  find(".control").hidden = false;
  show();
})();
</script>
</figure>
""")


def diamond(radius: float) -> str:
    """Path of a diamond with the area of a disc of that radius, around the origin."""
    corner = round(radius * math.sqrt(math.pi / 2), 3)
    return f"M0-{corner}L{corner} 0 0 {corner}-{corner} 0z"


def slider(id: str, label: str, range: str) -> str:
    """A range input under its label; `range` holds its other attributes."""
    return f'<label for="{id}">{label}</label>\n<input id="{id}" type="range" {range}>'


def html_table(titles: list[str], rows: list[list[str]]) -> str:
    """A table whose first column names its rows."""
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return f'<table class="table">\n<tr>{head}</tr>\n{body}\n</table>'


def page(name: str, controls: dict[str, str], style: str = "", **parts: str) -> HTML:
    """The frame, filled in.

    Parameters
    ----------
    name
        The figure's id, different for each figure of a page.
    controls
        The sliders, by their ids.
    style
        Rules beyond the shared ones, each with its line break.
    parts
        picture, readout, table, caption and script, which defines ``show()``.
    """
    return HTML(
        FRAME.substitute(
            name=name,
            majority=MAJORITY,
            minority=MINORITY,
            controls="\n".join(controls.values()),
            inputs=" ".join(controls),
            needs="The slider needs" if len(controls) == 1 else "The sliders need",
            style=style,
            **parts,
        )
    )
