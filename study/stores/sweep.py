"""Run many protocols and seeds, except for those that are already stored."""

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
    """Some units failed. All others are finished and stored."""


def sweep(
    protocols: Iterable[Protocol],
    seeds: Iterable[int],
    store: Store | Path | str,
    executor: object = None,
    refresh: bool = False,
    progress: bool = True,
) -> pd.DataFrame:
    """Rows of every protocol and seed. Stored ones are read, the others are run and stored.

    Work is divided into units, each a protocol and a block of seeds. Every unit is stored as soon
    as it is finished, so after any interruption the same call continues. A unit that fails does
    not stop the others, nor does one that loses its worker too often (three times with local
    processes).

    Parameters
    ----------
    protocols
        Protocols to run. Equal ones are run once.
    seeds
        Seeds for each protocol.
    store
        A `Store` or its folder.
    executor
        Where to run units. By default there is one process for each core of this machine, and a
        script needs the usual ``if __name__ == "__main__":``. A ``dask.distributed.Client`` sends
        units to its cluster. Any executor of ``concurrent.futures`` works as well.
    refresh
        Whether to run stored units again. The new rows replace the old ones.
    progress
        Whether to show a bar with the time left.

    Returns
    -------
    pandas.DataFrame
        Rows in the order of protocols, then of seeds.

    Raises
    ------
    SweepError
        If units failed, after all others are stored.
    """
    store, package = Store(store), package_hash()
    units = plan_units(protocols, seeds)
    records = {} if refresh else store.find(units)
    missing = [unit for unit in units if unit not in records]
    if missing:
        store.prepare()
    failures: dict[Unit, Exception] = {}
    shown = {} if progress else {"disable": True}  # if shown, TQDM_DISABLE may still hide it
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
    """Raise an error if a worker has other source files than this process."""
    if theirs != ours:
        raise RuntimeError(
            f"its worker has other source files ({theirs}, here {ours}): update and restart the "
            "workers"
        )


def _in_words(failures: dict[Unit, Exception], total: int) -> str:
    """A message with each cause once, and the units that failed because of it."""
    units: dict[str, list[str]] = {}
    for unit, error in failures.items():
        reason = getattr(error, "reason", None)  # the text of Dask's errors differs for each unit
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
    """Yield each unit with its future when it is finished."""
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
            # Dask would run a finished unit again if its worker died and we still held its future.
            yield futures.pop(future), future


def _require_data(units: list[Unit]) -> None:
    """Raise an error now, rather than in each process, if files of data sets are missing."""
    for data_set in {ALL_EXPERIMENTS[unit.protocol.experiment].data_set for unit in units}:
        require_data(data_set.files)


def run_unit(unit: Unit) -> tuple[pd.DataFrame, dict, str]:
    """Run a unit; return its rows, and the `origin` and `package_hash` of this process."""
    tqdm.set_lock(threading.RLock())  # the default lock would remain if this process is killed
    start = time.perf_counter()
    table = run(unit.protocol, unit.seeds, progress=False)
    data_set = ALL_EXPERIMENTS[unit.protocol.experiment].data_set
    made = origin(time.perf_counter() - start) | {"data": data_set.checksum}
    return table, made, package_hash()
