"""The verdicts at a glance: claims by readings, a symbol for each."""

from __future__ import annotations

import pandas as pd

from study.chapters.claims import CLAIMS, by_reading
from study.engine.protocol import FAMILY
from study.figures.words import words

# Told apart by their shapes, so that they need no color.
SYMBOLS = {"replicated": "✓", "not replicated": "✗", "undecided": "○"}


def verdict_grid(table: pd.DataFrame) -> pd.DataFrame:
    """What tells the readings of the family apart, and whether each claim holds in them.

    Parameters
    ----------
    table
        Rows of ``sweep`` that hold the protocols of all claims.

    Returns
    -------
    pandas.DataFrame
        A column for each reading, from 1 on. First a row for each choice in which readings
        differ, then one for each claim, with `SYMBOLS`.
    """
    choices = pd.DataFrame(FAMILY).astype(str)
    rows = {words(name): choices[name].map(words) for name in choices}
    outcomes = by_reading(CLAIMS, table).replace(SYMBOLS)
    rows |= {f"{c.name} ({c.origin}). {c.words}": outcomes[c.name] for c in CLAIMS}
    columns = pd.RangeIndex(1, len(FAMILY) + 1, name="reading")
    return pd.DataFrame({name: list(row) for name, row in rows.items()}, columns).T


def grid_markdown(table: pd.DataFrame) -> str:
    """`verdict_grid` and the meaning of its symbols in Markdown."""
    grid = verdict_grid(table)
    lines = [
        f"| reading | {' | '.join(map(str, grid.columns))} |",
        f"|---|{':-:|' * len(grid.columns)}",
        *(
            f"| {name} | {' | '.join(row)} |"
            for name, row in zip(grid.index, grid.values, strict=True)
        ),
        "",
        ", ".join(f"{symbol} {outcome}" for outcome, symbol in SYMBOLS.items()),
    ]
    return "\n".join(lines)
