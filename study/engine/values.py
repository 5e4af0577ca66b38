"""Kinds of values that a field of a protocol may have; others are refused in one line."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral, Real
from typing import NoReturn

SHOWN = 80  # characters of a refused value that an error shows
MOST_NAMES = 12  # an error lists; if there are more, it lists those nearest to the given one


def shown(value: object) -> str:
    """The value as text for an error: one short line.

    Examples
    --------
    >>> shown("a\\nb"), shown(16**5000)
    ("'a\\\\nb'", 'a number of more than 4000 digits')
    """
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # from huge integers and deeply nested lists
        huge = isinstance(value, int)
        return "a number of more than 4000 digits" if huge else f"a {type(value).__name__}"
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."


def refuse(name: str, value: object, allowed: str) -> NoReturn:
    """Raise an error that says what was given and what is allowed."""
    raise ValueError(f"{name} is {shown(value)}; {allowed}")


def refuse_unknown(names: Iterable[object], known: Iterable[str], what: str) -> None:
    """Raise an error for an unknown name, and suggest the nearest known one.

    Examples
    --------
    >>> refuse_unknown(["epoch"], ["epochs", "eps"], "choice")
    Traceback (most recent call last):
    ValueError: no such choice: 'epoch'; did you mean 'epochs'?
    """
    known = list(known)
    for name in names:
        if name not in known:
            near = get_close_matches(str(name)[:SHOWN], known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
            raise ValueError(f"no such {what}: {shown(name)}; {hint}")


@dataclass(frozen=True)
class Whole:
    """Whole numbers from `low` to `high`; 5.0 is 5.

    Examples
    --------
    >>> Whole(1, 9).take("hidden", 5.0)
    5
    """

    low: int
    high: int

    def take(self, name: str, value: object) -> int:
        """The value as an int."""
        if type(value) is int and self.low <= value <= self.high:
            return value  # a shortcut, since eval_epochs may have a million values
        number = isinstance(value, Integral | float) and not isinstance(value, bool)
        if not number or value % 1 != 0 or not self.low <= value <= self.high:
            refuse(name, value, f"give a whole number from {self.low} to {self.high}")
        return int(value)


@dataclass(frozen=True)
class Number:
    """Numbers between `low` and `high`, with or without the ends, such as [0, 1).

    Examples
    --------
    >>> Number("[", 0, 1, ")").take("beta", 0)
    0.0
    """

    left: str
    low: float
    high: float
    right: str

    def take(self, name: str, value: object) -> float:
        """The value as a float."""
        fine = isinstance(value, Real) and not isinstance(value, bool)
        fine = fine and self.low <= value <= self.high
        fine = fine and (self.left == "[" or value > self.low)
        if not fine or (self.right == ")" and value == self.high):
            interval = f"{self.left}{self.low:g}, {self.high:g}{self.right}"
            refuse(name, value, f"give a number in {interval}")
        return float(value) + 0.0  # turns -0.0 into 0.0: one number, one hash


@dataclass(frozen=True)
class OneOf:
    """One of some names.

    Examples
    --------
    >>> OneOf(("adam", "sgd")).take("optimizer", "adamw")
    Traceback (most recent call last):
    ValueError: optimizer is 'adamw'; choose one of adam, sgd
    >>> OneOf(tuple(f"name_{n}" for n in range(20))).take("kind", "name_1x")
    Traceback (most recent call last):
    ValueError: kind is 'name_1x'; choose one of name_1, name_19, name_18 or 17 others
    """

    names: Iterable[str]

    def take(self, name: str, value: object) -> str:
        """The value itself."""
        if not isinstance(value, str) or value not in self.names:
            names = list(self.names)
            text = value[:SHOWN] if isinstance(value, str) else ""
            few = names if len(names) <= MOST_NAMES else get_close_matches(text, names, 3)
            few = few or names[:MOST_NAMES]
            more = f" or {len(names) - len(few)} others" if len(few) < len(names) else ""
            refuse(name, value, f"choose one of {', '.join(few)}{more}")
        return value


@dataclass(frozen=True)
class ListOf:
    """A list of `kind` that is not empty, with a given length or any length.

    Examples
    --------
    >>> ListOf(Whole(1, 9)).take("eval_epochs", [1, 5.0])
    (1, 5)
    """

    kind: Whole | Number | OneOf
    length: int | None = None

    def take(self, name: str, value: object) -> tuple:
        """The value as a tuple."""
        if not isinstance(value, list | tuple | range) or not value:
            refuse(name, value, "give a list of at least one value")
        if self.length not in (None, len(value)):
            refuse(name, value, f"give a list of {self.length} values")
        entry = f"an entry of {name}"
        return tuple(self.kind.take(entry, given) for given in value)


Kind = Whole | Number | OneOf | ListOf
