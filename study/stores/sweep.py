"""Many protocols and seeds into a store: what is there is read, what is missing is run."""

from __future__ import annotations

import concurrent.futures
import os
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from study.engine.data import ALL_EXPERIMENTS
from study.engine.fetch import require_data
from study.engine.protocol import Protocol
from study.engine.training import blocks, run
from study.stores.provenance import Unit, origin, package_hash
from study.stores.store import Store, as_table
from study.stores.workers import LocalProcesses


class SweepError(RuntimeError):
    """Some units failed; all others are finished and stored."""


def sweep(
    protocols: Iterable[Protocol],
    seeds: Iterable[int],
    store: Store | Path | str,
    executor: object = None,
    refresh: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Rows of every protocol and seed, read from the store or else run and stored.

    Work is cut into units, a protocol and a block of seeds each, and every unit is written as
    soon as it is finished. After an interruption, of whatever kind, the same call goes on
    where it was. A unit that fails, or that loses its worker more often than the executor
    tolerates (locally, three times), does not stop the others.

    Parameters
    ----------
    protocols
        What to run; repetitions are run once.
    seeds
        For each of them.
    store
        A `Store` or its folder.
    executor
        Where to run units: by default one process for each core of this machine, on which a
        script needs the usual ``if __name__ == "__main__":``. A ``dask.distributed.Client``
        sends them to its cluster; any executor of ``concurrent.futures`` serves as well.
    refresh
        Run again what is there. New rows take the place of the old ones.
    progress
        Show a bar with the time left.

    Returns
    -------
    pandas.DataFrame
        In the order of the protocols, then of seeds.

    Raises
    ------
    SweepError
        When units failed, after all others are stored.
    """
    store, package = Store(store), package_hash()
    units = plan_units(protocols, seeds)
    records = {} if refresh else store.find(units)
    missing = [unit for unit in units if unit not in records]
    if missing:
        store.prepare()
    failures: dict[Unit, Exception] = {}
    shown = {} if progress else {"disable": True}  # else TQDM_DISABLE decides
    with tqdm(total=len(units), initial=len(units) - len(missing), unit="unit", **shown) as bar:
        for unit, outcome in _outcomes(missing, executor):
            try:
                table, made, theirs = outcome.result()
                _check_package(theirs, package)
            except Exception as error:
                failures[unit] = error
            else:
                records[unit] = store.write(unit, table, made)
            bar.update()
    if failures:
        raise SweepError(_in_words(failures, len(units)))
    return as_table(records[unit] for unit in units)


def _check_package(theirs: str, ours: str) -> None:
    """Refuse rows of a worker that has another version of this package installed."""
    if theirs != ours:
        raise RuntimeError(
            f"its worker has other source files ({theirs}, here {ours}): update and restart the "
            "workers"
        )


def _in_words(failures: dict[Unit, Exception], total: int) -> str:
    """Each cause once, with the units that it struck."""
    units: dict[str, list[str]] = {}
    for unit, error in failures.items():
        reason = getattr(error, "reason", None)  # of Dask's, whose text differs from unit to unit
        cause = f"{type(error).__name__}({reason!r})" if reason else repr(error)
        units.setdefault(cause, []).append(unit.name)
    lines = [
        f"  {', '.join(names[:3])}{f' and {len(names) - 3} more' if names[3:] else ''}: {error}"
        for error, names in units.items()
    ]
    return "\n".join([f"{len(failures)} of {total} units failed, the others are stored:", *lines])


def plan_units(protocols: Iterable[Protocol], seeds: Iterable[int]) -> list[Unit]:
    """The units of a sweep, in order."""
    distinct = {protocol.hash: protocol.resolved() for protocol in protocols}
    cut = blocks(seeds)
    return [Unit(protocol, tuple(block)) for protocol in distinct.values() for block in cut]


def _outcomes(units: list[Unit], executor: object) -> Iterator[tuple[Unit, object]]:
    """Each unit with its future, as they finish."""
    if not units:
        return
    if executor is None:
        _require_data(units)
        with LocalProcesses(min(len(units), os.cpu_count() or 1)) as processes:
            yield from _outcomes(units, processes)
    elif isinstance(executor, concurrent.futures.Executor):
        futures = {executor.submit(run_unit, unit): unit for unit in units}
        for future in concurrent.futures.as_completed(futures):
            yield futures.pop(future), future
    else:
        from dask.distributed import as_completed

        futures = {executor.submit(run_unit, unit, pure=False): unit for unit in units}
        for future in as_completed(futures):
            yield futures.pop(future), future  # one that is held is run again if its worker dies


def _require_data(units: list[Unit]) -> None:
    """Fail now, once and in words, rather than in each process if files of the data are missing."""
    for data_set in {ALL_EXPERIMENTS[unit.protocol.experiment].data_set for unit in units}:
        require_data(data_set.files)


def run_unit(unit: Unit) -> tuple[pd.DataFrame, dict, str]:
    """Rows of a unit, their `origin` and the `package_hash`, all of the process that runs it."""
    tqdm.set_lock(threading.RLock())  # its own would be left behind if this process is ended
    start = time.perf_counter()
    table = run(unit.protocol, unit.seeds, progress=False)
    data_set = ALL_EXPERIMENTS[unit.protocol.experiment].data_set
    made = origin(time.perf_counter() - start) | {"data": data_set.checksum}
    return table, made, package_hash()
