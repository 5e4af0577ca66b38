"""Numbers as they are printed: fractions as percent, with a true minus, and never minus zero."""

from __future__ import annotations

import pandas as pd

MINUS = "\u2212"
COUNTS = (
    "no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen",
    "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip
SHARES = {
    1 / 3: "a third",
    1 / 2: "half",
    2 / 3: "two thirds",
    3 / 4: "three quarters",
    4 / 5: "four fifths",
}


def percent(fraction: float, digits: int = 1, sign: bool = False) -> str:
    """A fraction in percent, or a difference of fractions in points with its ``sign``.

    What rounds to zero has no sign, and what is missing is empty.

    Examples
    --------
    >>> percent(0.9661), percent(-0.257, sign=True), percent(0.031, 0, sign=True)
    ('96.6', '\u221225.7', '+3')
    >>> percent(-0.0001), percent(float("nan"))
    ('0.0', '')
    """
    if pd.isna(fraction):
        return ""
    plain = f"{100 * fraction:{'+' if sign else ''}.{digits}f}"
    if float(plain) == 0:
        return plain.lstrip("+-")
    return plain.replace("-", MINUS)


def count(number: int) -> str:
    """A count in a sentence: a word up to twelve, figures beyond.

    Examples
    --------
    >>> count(7), count(40)
    ('seven', '40')
    """
    return COUNTS[number] if number <= 12 else str(number)


def share(fraction: float) -> str:
    """The nearest of the simple fractions that "about" goes with, if it is within 0.05.

    Examples
    --------
    >>> share(0.665), share(0.469)
    ('two thirds', 'half')
    >>> share(0.9)
    Traceback (most recent call last):
    ValueError: 0.9 is not about a third, half, two thirds, three quarters or four fifths
    """
    nearest = min(SHARES, key=lambda simple: abs(simple - fraction))
    if abs(nearest - fraction) > 0.05:
        *names, last = SHARES.values()
        raise ValueError(f"{fraction} is not about {', '.join(names)} or {last}")
    return SHARES[nearest]


def with_interval(mean: float, low: float, high: float, digits: int = 1, sign: bool = False) -> str:
    """A mean with its interval, in percent or in points.

    Examples
    --------
    >>> with_interval(0.966, 0.9612, 0.9699)
    '96.6 [96.1, 97.0]'
    >>> with_interval(-0.0139, -0.0188, 0.0002, sign=True)
    '\u22121.4 [\u22121.9, 0.0]'
    """
    mean, low, high = (percent(value, digits, sign) for value in (mean, low, high))
    return f"{mean} [{low}, {high}]"


def written(table: pd.DataFrame, digits: int = 1, sign: bool = False) -> pd.Series:
    """`with_interval` of the columns mean, low and high of each row."""
    numbers = zip(table["mean"], table["low"], table["high"], strict=True)
    text = [with_interval(*row, digits, sign) for row in numbers]
    return pd.Series(text, table.index, dtype=object)


def in_percent(table: pd.DataFrame, digits: int = 1, sign: bool = False) -> pd.DataFrame:
    """The fractions of a table as `percent`; columns of text and of counts stay as they are.

    Examples
    --------
    >>> in_percent(pd.DataFrame({"wlf_wbn": [0.4187, float("nan")]}))["wlf_wbn"].tolist()
    ['41.9', '']
    """
    return table.apply(
        lambda column: (
            column.map(lambda fraction: percent(fraction, digits, sign))
            if pd.api.types.is_float_dtype(column)
            else column
        )
    )


def written_table(
    rows: pd.DataFrame, index: str | list[str], columns: str, digits: int = 1, sign: bool = False
) -> pd.DataFrame:
    """`written` as a table, each column's values in the order in which the rows have them.

    Parameters
    ----------
    rows
        With mean, low and high, and the columns that the next two parameters name.
    index, columns
        Which columns become the table's rows and columns; what has no row is empty.
    digits, sign
        As in `percent`.

    Examples
    --------
    >>> rows = pd.DataFrame({"epoch": [20, 1], "mean": 0.5, "low": [0.25, 0.4], "high": 0.75})
    >>> table = written_table(rows.assign(method="lf_sbn"), "method", "epoch", digits=0)
    >>> table.loc["lf_sbn"].to_dict()
    {20: '50 [25, 75]', 1: '50 [40, 75]'}
    """

    def place(level: pd.Index) -> pd.Index:
        return pd.Index(pd.Index(rows[level.name].unique()).get_indexer(level))

    text = rows.assign(text=written(rows, digits, sign))
    table = text.pivot(index=index, columns=columns, values="text").fillna("")
    return table.sort_index(key=place).sort_index(axis=1, key=place)
