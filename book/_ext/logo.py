"""The logo: a mini-batch, points whose area is the weight, both means.

`python book/_ext/logo.py` writes the pictures in `book/_static`.
"""

from __future__ import annotations

from math import sqrt
from pathlib import Path
from typing import NamedTuple

# The figures' colors (Okabe and Ito), brighter on a dark background.
LIGHT = {"majority": "#0072b2", "minority": "#d55e00", "mean": "#222832"}
DARK = {"majority": "#56b4e9", "minority": "#f28e3c", "mean": "#ced6dd"}
EITHER = {"majority": "#2e8fcb", "minority": "#d55e00", "mean": "#7d8794"}


class Batch(NamedTuple):
    """Points of weight 1, one that weighs as much as all, and a canvas."""

    majority: list[tuple[float, float]]
    minority: tuple[float, float]
    size: tuple[int, int]
    radius: float

    @property
    def points(self) -> list[tuple[float, float, float, str]]:
        """Position, weight and class of each point."""
        ones = [(x, y, 1, "majority") for x, y in self.majority]
        return [*ones, (*self.minority, len(ones), "minority")]

    @property
    def means(self) -> tuple[float, float]:
        """Mean position along x, points counted once and by weight."""
        xs = [x for x, *_ in self.points]
        weights = [weight for *_, weight, _ in self.points]
        weighted = sum(w * x for w, x in zip(weights, xs, strict=True))
        return sum(xs) / len(xs), weighted / sum(weights)


LEFT = [(12, 40), (20, 18), (30, 50), (37, 29), (47, 12), (53, 42)]
MIDDLE = [(64, 24), (70, 50), (79, 34)]
WIDE = Batch([*LEFT, *MIDDLE], (164, 32), (200, 64), 6)
SQUARE = Batch([(4, 4.5), (4, 16), (4, 27.5)], (25, 16), (32, 32), 3.8)


def svg(batch: Batch, colors: dict[str, str]) -> str:
    """The picture as SVG text.

    Examples
    --------
    >>> svg(SQUARE, LIGHT).count("<circle")
    4
    """
    (width, height), unit = batch.size, batch.radius
    stroke = f'stroke="{colors["mean"]}" stroke-width="{unit / 3:.3g}"'
    dashes = f' stroke-dasharray="{unit:g} {0.6 * unit:g}"'
    lines = [
        f'<path d="M{x:.4g} 0V{height}" {stroke}{style}/>'
        for x, style in zip(batch.means, (dashes, ""), strict=True)
    ]
    circles = [
        f'<circle cx="{x}" cy="{y}" r="{unit * sqrt(weight):.4g}" '
        f'fill="{colors[kind]}"/>'
        for x, y, weight, kind in batch.points
    ]
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
        f'height="{height}" viewBox="0 0 {width} {height}">'
    )
    return "\n".join([head, *lines, *circles, "</svg>\n"])


def write_card(path: Path, title: str) -> None:
    """The picture that other sites show beside a link, 1200 by 630."""
    from matplotlib.figure import Figure
    from matplotlib.patches import Circle

    ink = LIGHT["mean"]
    figure = Figure(figsize=(12, 6.3), dpi=100, facecolor="white")
    figure.text(0.5, 0.16, title, size=44, ha="center", color=ink)
    axes = figure.add_axes((0.1, 0.3, 0.8, 0.62), aspect="equal")
    axes.set(xlim=(0, WIDE.size[0]), ylim=(WIDE.size[1], 0))
    axes.axis("off")
    for x, style in zip(WIDE.means, ("--", "-"), strict=True):
        axes.axvline(x, color=ink, linestyle=style, linewidth=6, zorder=0)
    for x, y, weight, kind in WIDE.points:
        radius = WIDE.radius * sqrt(weight)
        axes.add_patch(Circle((x, y), radius, color=LIGHT[kind]))
    figure.savefig(path)


PICTURES = {
    "logo-light.svg": svg(WIDE, LIGHT),
    "logo-dark.svg": svg(WIDE, DARK),
    "favicon.svg": svg(SQUARE, EITHER),
}

if __name__ == "__main__":
    static = Path(__file__).parents[1] / "_static"
    for name, text in PICTURES.items():
        (static / name).write_text(text, encoding="utf-8")
