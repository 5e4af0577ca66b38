"""Grids of protocols, declared in a TOML file, and the results that are stored beside it."""

from __future__ import annotations

import itertools
import tomllib
import warnings
from pathlib import Path

import pandas as pd

from wbn.experiments.fetch import REPOSITORY
from wbn.experiments.protocol import Protocol
from wbn.experiments.sweep import OlderSources, sweep

RESULTS = REPOSITORY / "results"


def read_plan(path: Path | str) -> tuple[list[Protocol], range]:
    """Protocols and seeds that a TOML file declares.

    The file says ``seeds = 10`` (the number of seeds, from 0) and one or more ``[[grid]]``
    tables. A choice with a list of values is varied, every combination with the others; a
    choice with one value is fixed; what is not named is the reference reading. A choice that is
    a list in itself (`inference`, `eval_epochs`, `adam_betas`) is written as a list of lists to
    vary it, as a plain list to fix it.

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
    try:
        plan = tomllib.loads(Path(path).read_text())
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    seeds, grids = plan.pop("seeds", None), plan.pop("grid", None)
    if plan or not isinstance(seeds, int) or seeds < 1 or not isinstance(grids, list):
        raise ValueError(
            f"{path} must have `seeds = N` with N of at least 1 and one or more [[grid]] tables, "
            f"and nothing else; it has {', '.join(['seeds', 'grid', *plan])}"
        )
    protocols = [protocol for grid in grids for protocol in _combinations(grid)]
    return list(dict.fromkeys(protocols)), range(seeds)


def stored(name: str, *choices: str, **only: object) -> pd.DataFrame:
    """Rows of the plan in results/`name`, read from there, or run where they are missing.

    Rows that older source files made are taken as they are: chapters run a sample of what
    they read again.

    Parameters
    ----------
    name
        A folder of results/ with its plan.toml.
    choices
        Fields of `Protocol` to add as columns, resolved.
    only
        Which rows: for columns of the table or fields of `Protocol`, the value, or a list, tuple
        or range of values, that they must have.

    Examples
    --------
    >>> stored("family", "learning_rate", epoch=20, learning_rate=0.01).learning_rate.unique()
    array([0.01])
    """
    if not RESULTS.is_dir():
        raise FileNotFoundError(
            f"there is no {RESULTS}: stored results come with a checkout of the repository, not "
            "with the installed package"
        )
    protocols, seeds = read_plan(RESULTS / name / "plan.toml")
    resolved = [protocol.resolved() for protocol in protocols]
    fields = pd.DataFrame(map(vars, resolved), [p.hash for p in resolved], dtype=object)
    fields = fields[~fields.index.duplicated()]
    unknown = set(choices) - set(fields)
    if unknown:
        raise ValueError(f"no field {sorted(unknown)} of Protocol: there are {', '.join(fields)}")
    # A protocol may have several kinds of inference, a row has one of them.
    of_protocols = {k: v for k, v in only.items() if k in fields and k != "inference"}
    fields = _select(fields, of_protocols)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OlderSources)
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
    whole = ("inference", "eval_epochs", "adam_betas")
    varied = {
        name: value
        if isinstance(value, list) and (name not in whole or isinstance(value[0], list))
        else [value]
        for name, value in grid.items()
    }
    return [
        Protocol.from_dict(dict(zip(varied, values, strict=True)))
        for values in itertools.product(*varied.values())
    ]
