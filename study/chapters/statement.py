"""What a page says in a sentence, and where its numbers come from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from study.stores.plan import load_or_run

# Stores are read once for all statements; nobody may write to the tables.
rows = cache(load_or_run)


@dataclass(frozen=True)
class Statement:
    """A part of a sentence that holds numbers, and the numbers that it should hold.

    Parameters
    ----------
    words
        As the sentence has them, with ``{}`` for each number; enough of them to say what the
        numbers are about.
    source
        In words, where the numbers come from: stored rows, a plan, a protocol, a criterion, the
        paper, or what follows from them.
    values
        Computes the numbers from there, as they are printed.

    Examples
    --------
    >>> total = Statement("{} minority images of {}", "Table 1 (i)", lambda: (45, 5923 + 45))
    >>> total.rendered()
    '45 minority images of 5968'
    """

    words: str
    source: str
    values: Callable[[], Sequence[object]]

    def rendered(self) -> str:
        """The words with the numbers that the source has."""
        return self.words.format(*self.values())
