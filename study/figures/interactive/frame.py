"""What interactive figures share: the page around the picture, its style, and its marks."""

from __future__ import annotations

import json
import math
from importlib.resources import files
from string import Template

from IPython.display import HTML

from study.figures.style import (
    MAJORITY,
    MAJORITY_IN_THE_DARK,
    METHOD_COLORS,
    MINORITY,
    MINORITY_IN_THE_DARK,
    in_the_dark,
)

# A dark page has other colors than a light one, and the reader can turn from one to the other.
COLORS = {
    "majority-light": MAJORITY,
    "minority-light": MINORITY,
    "majority-dark": MAJORITY_IN_THE_DARK,
    "minority-dark": MINORITY_IN_THE_DARK,
    **{f"{method}-light": color for method, color in METHOD_COLORS.items()},
    **{f"{method}-dark": in_the_dark(color) for method, color in METHOD_COLORS.items()},
}


def diamond(radius: float) -> str:
    """Path of a diamond with the area of a disc of that radius, around the origin."""
    corner = round(radius * math.sqrt(math.pi / 2), 3)
    return f"M0-{corner}L{corner} 0 0 {corner}-{corner} 0z"


def slider(id: str, label: str, range: str) -> str:
    """A range input under its label; `range` holds its other attributes."""
    return f'<label for="{id}">{label}</label>\n<input id="{id}" type="range" {range}>'


def html_table(caption: str, titles: list[str], rows: list[list[str]]) -> str:
    """A table whose first column names its rows."""
    head = "".join(f'<th scope="col">{title}</th>' for title in titles)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>{"".join(f"<td>{cell}</td>" for cell in rest)}</tr>'
        for first, *rest in rows
    )
    return f'<table class="table">\n<caption>{caption}</caption>\n<tr>{head}</tr>\n{body}\n</table>'


def button(id: str, label: str) -> str:
    """A button, large enough to touch."""
    return f'<button id="{id}" type="button">{label}</button>'


def choice(id: str, label: str, options: list[str]) -> str:
    """A menu under its label, the first option chosen; options are numbered from 0."""
    lines = "".join(f'<option value="{n}">{text}</option>' for n, text in enumerate(options))
    menu = f'<label for="{id}">{label}</label>\n<select id="{id}">{lines}</select>'
    return f'<div class="choice">\n{menu}\n</div>'


def page(
    name: str, controls: dict[str, str], script: str, settings: dict, needs: str, **parts: str
) -> HTML:
    """The frame, filled in.

    Parameters
    ----------
    name
        The figure's id, different for each figure of a page.
    controls
        Sliders, buttons and menus, by their ids.
    script
        A file of this folder with one JavaScript function, of the figure and its settings.
    settings
        What the function needs to know, in terms of JSON.
    needs
        What does not work without JavaScript, and its verb: "The slider needs".
    parts
        picture, readout, table and caption.
    """
    folder = files(__package__)
    frame = Template((folder / "frame.html").read_text(encoding="utf-8"))
    return HTML(
        frame.substitute(
            parts,
            name=name,
            colors="; ".join(f"--{use}: {color}" for use, color in COLORS.items()),
            style=(folder / "frame.css").read_text(encoding="utf-8"),
            controls="\n".join(controls.values()),
            inputs=" ".join(controls),
            needs=needs,
            script=(folder / script).read_text(encoding="utf-8").rstrip(),
            settings=json.dumps(settings, separators=(",", ":")),
        )
    )
