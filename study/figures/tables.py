"""Tables as a page shows them: a caption, one row of headers, words, true minus signs."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from numbers import Integral

import numpy as np
import pandas as pd

from study.figures.text import MINUS
from study.figures.words import words

AS_THEY_ARE = ("learning_rate", "beta")  # set by hand, so that they have no digits to round off
NUMBER = re.compile(rf"([+{MINUS}]?[\d.,/]+(?:\u00a0%)?)(?: (\[.*\]|to [{MINUS}\d.]+))?")
WORDY = 32  # characters; a cell with more of them is prose and breaks into lines


@dataclass(frozen=True)
class Captioned:
    """A table of texts that shows itself as HTML or, where there is none, as lines.

    Parameters
    ----------
    caption
        Which numbers these are, in which unit, and over how many runs.
    header
        Of each column; the first is of the rows' own names.
    groups
        For each group of rows its heading, "" if there is none, and its rows. The first text of
        a row is its name.
    """

    caption: str
    header: list[str]
    groups: list[tuple[str, list[list[str]]]]

    def __repr__(self) -> str:
        lines = [self.caption, " | ".join(self.header).replace("\n", ", ")]
        for heading, rows in self.groups:
            lines += [f"{heading}:"] if heading else []
            lines += [" | ".join(row) for row in rows]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [row for _, rows in self.groups for row in rows]
        columns = list(zip(*rows, strict=True))[1:]
        prose = any(len(text) > WORDY for column in columns for text in column)
        name, *headers = self.header
        marks = ["" if all(map(_is_number, column)) else ' class="text"' for column in columns]
        corner = f'<th scope="col">{_marked(name)}</th>' if name else "<td></td>"
        tops = [
            f'<th scope="col"{mark}>{_marked(header)}</th>'
            for mark, header in zip(marks, headers, strict=True)
        ]
        if prose:  # on a phone each cell stands alone, with its header
            marks = [f'{m} data-header="{escape(h)}"' for m, h in zip(marks, headers, strict=True)]
        return "\n".join(
            [
                f'<table class="dataframe captioned{" prose" * prose}">',
                f"<caption>{_marked(self.caption)}</caption>",
                f"<thead><tr>{corner}{''.join(tops)}</tr></thead>",
                *self._bodies(marks),
                "</table>",
            ]
        )

    def _bodies(self, marks: list[str]) -> Iterator[str]:
        for heading, rows in self.groups:
            yield "<tbody>"
            if heading:
                wide = f'scope="rowgroup" colspan="{len(self.header)}"'
                yield f"<tr><th {wide}><span>{_marked(heading)}</span></th></tr>"
            for name, *texts in rows:
                cells = [f"<td{m}>{_marked(t)}</td>" for m, t in zip(marks, texts, strict=True)]
                yield f'<tr><th scope="row">{_marked(name)}</th>{"".join(cells)}</tr>'
            yield "</tbody>"


def captioned(table: pd.DataFrame, caption: str, digits: int | Mapping[str, int] = 2) -> Captioned:
    """A table for readers: every name in words (`words`), every number rounded.

    Names of the rows come from the index, or from the first column where the index only counts.
    Outer levels of an index become headings of groups of rows, levels of columns lines of one
    header.

    Parameters
    ----------
    table
        Texts, as of `written_table` and `in_percent`, counts, yes or no, and numbers. Text in
        backticks is code.
    caption
        One sentence or more.
    digits
        Behind the point, of all columns or by the name of a column (2 for those not named).

    Examples
    --------
    >>> rows = pd.DataFrame({"inference": ["pooled"], "mean_shift": [-0.5], "epoch": [20]})
    >>> captioned(rows, "Shifts.", digits=1)
    Shifts.
    inference statistics | mean shift | epoch
    pooled statistics | \u22120.5 | 20
    """
    if not caption.strip():
        raise ValueError("the caption is empty: say which numbers these are, and of how many runs")
    if isinstance(table.index, pd.RangeIndex) and table.index.name is None:
        table = table.set_index(table.columns[0])
    places = digits if isinstance(digits, Mapping) else dict.fromkeys(table.columns, digits)
    columns = []
    for name, column in table.items():
        form = "g" if name in AS_THEY_ARE else f".{places.get(name, 2)}f"
        columns.append([_text(value, form) for value in column])
    header = [
        words(str(table.index.names[-1] or "")),
        *("\n".join(map(_label, _levels(key), table.columns.names)) for key in table.columns),
    ]
    rows = zip(map(_levels, table.index), *columns, strict=True)
    labeled = [
        (", ".join(map(_label, outer, table.index.names)), [_text(name, "g"), *row])
        for (*outer, name), *row in rows
    ]
    grouped = itertools.groupby(labeled, key=lambda row: row[0])
    groups = [(heading, [row for _, row in rows]) for heading, rows in grouped]
    return Captioned(words(caption), header, groups)


def _levels(key: object) -> tuple:
    return key if isinstance(key, tuple) else (key,)


def _text(value: object, form: str) -> str:
    """A cell: words, yes or no, a count, or a number in a format, never minus zero."""
    if isinstance(value, str):
        return words(value)
    if pd.isna(value):
        return ""
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, Integral):
        return f"{value:,}" if abs(value) >= 10_000 else words(str(value))
    plain = format(float(value), form)
    return words(plain.removeprefix("-") if float(plain) == 0 else plain)


def _label(value: object, name: str | None) -> str:
    """Of a heading or header: a number says what it is a number of."""
    text = _text(value, "g")
    return text if isinstance(value, str) or not name else f"{words(name)} {text}"


def _is_number(text: str) -> bool:
    return not text or NUMBER.fullmatch(text) is not None


def _marked(text: str) -> str:
    """As HTML: a number and its interval may part, code is marked, lines are broken."""
    if (number := NUMBER.fullmatch(text)) and number[2]:
        return f"<span>{number[1]}</span> <span>{number[2]}</span>"
    code = re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))
    return code.replace("\n", "<br/>")
