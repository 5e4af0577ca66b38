"""Grids of protocols, declared in a TOML file, and the results stored beside it."""

from __future__ import annotations

import itertools
import math
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd

from study.engine.fetch import REPOSITORY
from study.engine.protocol import ALLOWED, Protocol
from study.engine.values import ListOf, Whole, refuse, refuse_unknown
from study.stores.sweep import sweep

RESULTS = REPOSITORY / "results"
# Limits are checked before anything is built, since a few lines can ask for too much.
SEEDS = Whole(1, 100_000)  # takes a day of one core if a seed takes a second
FIRST_SEED = Whole(0, 1_000_000_000)
MOST_PROTOCOLS = 100_000  # of one grid; building them takes seconds
MOST_ROWS = 10_000_000  # a few GB; 200 times the largest sweep so far


def read_plan(path: Path | str) -> tuple[list[Protocol], range]:
    """Protocols and seeds that a TOML file declares.

    The file has ``seeds = 10`` (the number of seeds, from 0 or from ``first_seed``) and one or
    more ``[[grid]]`` tables. A choice with one value is fixed. A choice with a list of values is
    varied, in all combinations with the others. Choices that are not named have the value of the
    reference reading. Three choices are lists themselves (`inference`, `eval_epochs`,
    `adam_betas`): a list fixes them, a list of lists varies them.

    Examples
    --------
    >>> import tempfile
    >>> text = 'seeds = 3\\n[[grid]]\\nexperiment = "i"\\nmethod = ["lf_sbn", "wlf_wbn"]'
    >>> with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
    ...     _ = file.write(text), file.flush()
    ...     protocols, seeds = read_plan(file.name)
    >>> [p.method for p in protocols], seeds
    (['lf_sbn', 'wlf_wbn'], range(0, 3))
    """
    path = Path(path)
    try:
        plan = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # of the encoding, the syntax or a number
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    with _naming(f"{path}"):
        refuse_unknown(plan, ("seeds", "first_seed", "grid"), "entry")
        seeds = SEEDS.take("seeds", plan.get("seeds"))
        first = FIRST_SEED.take("first_seed", plan.get("first_seed", 0))
        grids = plan.get("grid")
        if not isinstance(grids, list) or not grids:
            refuse("grid", grids, "write one or more [[grid]] tables")
    protocols: dict[Protocol, None] = {}
    for number, grid in enumerate(grids, start=1):
        with _naming(f"{path}, [[grid]] {number}"):
            protocols |= dict.fromkeys(_combinations(grid))
    with _naming(f"{path}"):
        check_size(protocols, seeds)
    return list(protocols), range(first, first + seeds)


def check_size(protocols: Collection[Protocol], seeds: int) -> None:
    """Raise an error if the table of a sweep would have more than `MOST_ROWS` rows.

    Examples
    --------
    >>> check_size([Protocol.paper("i", "lf_sbn", epochs=10**6)], seeds=100)
    Traceback (most recent call last):
    ValueError: 1 protocols and 100 seeds give 100000000 rows; at most 10000000 fit in one table
    """
    rows = seeds * sum(len(p.inference) * len(p.eval_epochs or range(p.epochs)) for p in protocols)
    if rows > MOST_ROWS:
        raise ValueError(
            f"{len(protocols)} protocols and {seeds} seeds give {rows} rows; at most {MOST_ROWS} "
            "fit in one table"
        )


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Put the place of an error before its message."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from error


def load_or_run(name: str, *choices: str, **only: object) -> pd.DataFrame:
    """Rows of the plan in results/`name`: stored ones are read, missing ones are run and stored.

    Parameters
    ----------
    name
        A folder of results/ with a plan.toml.
    choices
        Fields of `Protocol` to add as columns, resolved.
    only
        Selects rows: a column of the table or a field of `Protocol`, with its value or with a
        list, tuple or range of values.

    Examples
    --------
    >>> load_or_run("family", "learning_rate", epoch=20, learning_rate=0.01).learning_rate.unique()
    array([0.01])
    """
    protocols, seeds = read_plan(RESULTS / name / "plan.toml")
    resolved = [protocol.resolved() for protocol in protocols]
    fields = pd.DataFrame(map(vars, resolved), [p.hash for p in resolved], dtype=object)
    fields = fields[~fields.index.duplicated()]
    unknown = set(choices) - set(fields)
    if unknown:
        raise ValueError(f"no field {sorted(unknown)} of Protocol: there are {', '.join(fields)}")
    # inference is a column as well: a protocol may have several kinds, a row has one of them.
    of_protocols = {k: v for k, v in only.items() if k in fields and k != "inference"}
    fields = _select(fields, of_protocols)
    table = sweep([p for p in resolved if p.hash in fields.index], seeds, RESULTS / name)
    rest = {k: v for k, v in only.items() if k not in of_protocols}
    table = _select(table, rest).reset_index(drop=True)
    for choice in choices:
        table[choice] = fields.loc[table.protocol, choice].tolist()
    return table


def _select(table: pd.DataFrame, only: dict[str, object]) -> pd.DataFrame:
    """Rows with the wanted values."""
    for column, wanted in only.items():
        if column not in table:
            raise ValueError(
                f"no column {column!r} to select by: there are {', '.join(table)}, and the fields "
                "of Protocol"
            )
        allowed = list(wanted) if isinstance(wanted, list | tuple | range) else [wanted]
        kept = table[table[column].isin(allowed)]
        if kept.empty:
            there = ", ".join(map(repr, table[column].unique().tolist()))
            raise ValueError(f"{column}={wanted!r} leaves no row: {column} is one of {there}")
        table = kept
    return table


def _combinations(grid: dict) -> list[Protocol]:
    if not isinstance(grid, dict):
        refuse("grid", grid, "write [[grid]] tables")
    refuse_unknown(grid, ALLOWED, "choice")
    varied = {name: _values(name, value) for name, value in grid.items()}
    number = math.prod(map(len, varied.values()))
    if number > MOST_PROTOCOLS:
        raise ValueError(f"it has {number} combinations; at most {MOST_PROTOCOLS} are allowed")
    return [
        Protocol.from_dict(dict(zip(varied, values, strict=True)))
        for values in itertools.product(*varied.values())
    ]


def _values(name: str, value: object) -> list:
    """The values of a choice in a grid, as a list even if there is only one."""
    if not isinstance(value, list):
        return [value]
    if not value:
        refuse(name, value, "give at least one value")
    whole = isinstance(ALLOWED[name], ListOf)
    return value if not whole or any(isinstance(entry, list) for entry in value) else [value]
