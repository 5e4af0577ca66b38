"""Numbers that pages state in sentences, each with the function that computes it.

The text of a page contains its numbers literally. A function in the chapter's module `numbers`
computes them again; its decorator `states` has the words in which pages state them. A test
compares text and functions, and complains about every number that no function computes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import NamedTuple

import pandas as pd

from study.figures.text import MINUS, percent

# Folders with a module `numbers`, in the order of the book.
CHAPTERS = (
    "argument", "three_experiments", "open_choices", "why", "table_2", "betas", "long_tail",
    "repair", "report",
)  # fmt: skip


class Statement(NamedTuple):
    """A part of a sentence that contains numbers, and the function that computes them.

    Parameters
    ----------
    words
        As in the sentence, with ``{}`` or ``{0}`` for each number, and enough of them to say what
        the numbers are about.
    function
        Returns one number or a tuple. Where the words have no format, as in ``{:.2f}``, a float
        is a fraction and is printed in percent with one digit.

    Examples
    --------
    >>> Statement("{} of five images are {} % or {:.2f}", lambda: (3, 0.6, 0.6)).rendered()
    '3 of five images are 60.0 % or 0.60'
    """

    words: str
    function: Callable[[], object]

    def rendered(self) -> str:
        """The words with the computed numbers."""
        return self.words.format(*_printed(self.function))


class _Float(float):
    """A fraction, in percent unless a format is given."""

    def __format__(self, spec: str) -> str:
        return super().__format__(spec).replace("-", MINUS) if spec else percent(self)


@cache
def _printed(function: Callable[[], object]) -> list[object]:
    found = function()
    numbers = found if isinstance(found, tuple) else (found,)
    return [_Float(number) if isinstance(number, float) else number for number in numbers]


_STATEMENTS: list[Statement] = []


def states(*words: str) -> Callable:
    """Register what pages say with the numbers of a function, in one or several wordings.

    A wording may use some of the numbers only, as ``{0}`` and ``{2}``.
    """

    def register(function: Callable[[], object]) -> Callable[[], object]:
        _STATEMENTS.extend(Statement(wording, function) for wording in words)
        return function

    return register


def statements() -> list[Statement]:
    """All statements of all chapters."""
    for chapter in CHAPTERS:
        import_module(f"study.chapters.{chapter}.numbers")
    return _STATEMENTS


def ledger_table() -> pd.DataFrame:
    """A row for each function: what pages say with its numbers, and what it computes.

    The latter is the first line of its docstring. Rows are grouped by module.
    """
    words: dict[Callable, list[str]] = {}
    for statement in statements():
        words.setdefault(statement.function, []).append(statement.rendered())
    rows = [
        (f"`{f.__module__}`", " \u00b7 ".join(said), f.__doc__.splitlines()[0], f"`{f.__name__}`")
        for f, said in words.items()
    ]
    columns = ["module", "statements", "what is computed", "function"]
    return pd.DataFrame(rows, columns=columns).set_index(["module", "statements"])
