"""Many protocols and seeds into a store: what is there is read, what is missing is run."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
from tqdm import tqdm

from wbn.experiments.fetch import require_data
from wbn.experiments.protocol import Protocol
from wbn.experiments.store import Store, Unit, origin, source_hash
from wbn.experiments.training import blocks, run


class OlderSources(UserWarning):
    """Stored units that other versions of the source files produced."""


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
    tolerates, does not stop the others.

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
        Run again what older source files produced.
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
    store = Store(store)
    units = plan_units(protocols, seeds)
    tables = {unit: store.read(unit) for unit in units}
    _report_older(
        store, [unit for unit, table in tables.items() if table is not None], refresh, tables
    )
    missing = [unit for unit, table in tables.items() if table is None]
    if missing:
        store.prepare()
    failures, shown = {}, {} if progress else {"disable": True}  # else TQDM_DISABLE decides
    with tqdm(total=len(units), initial=len(units) - len(missing), unit="unit", **shown) as bar:
        for unit, outcome in _outcomes(missing, executor):
            try:
                table, made = outcome.result()
            except Exception as error:
                failures[unit] = error
            else:
                store.write(unit, table, made)
                tables[unit] = store.read(unit)
            bar.update()
    if failures:
        reasons = "\n".join(f"  {unit.name}: {error!r}" for unit, error in failures.items())
        raise SweepError(
            f"{len(failures)} of {len(units)} units failed, the others are stored:\n{reasons}"
        )
    return pd.concat([tables[unit] for unit in units], ignore_index=True)


def plan_units(protocols: Iterable[Protocol], seeds: Iterable[int]) -> list[Unit]:
    """The units of a sweep, in order."""
    distinct = {protocol.hash: protocol.resolved() for protocol in protocols}
    cut = blocks(seeds)
    return [Unit(protocol, tuple(block)) for protocol in distinct.values() for block in cut]


def _report_older(store: Store, stored: list[Unit], refresh: bool, tables: dict) -> None:
    older = [unit for unit in stored if store.provenance(unit)["sources"] != source_hash()]
    if refresh:
        tables.update(dict.fromkeys(older))
    elif older:
        warnings.warn(
            f"{len(older)} of {len(stored)} stored units were made by older source files; they "
            "are kept, refresh=True runs them again",
            OlderSources,
            stacklevel=3,
        )


def _outcomes(units: list[Unit], executor: object) -> Iterator[tuple[Unit, object]]:
    """Each unit with its future, as they finish."""
    if not units:
        return
    if executor is None:
        require_data()
        with _local_processes(min(len(units), os.cpu_count() or 1)) as pool:
            yield from _outcomes(units, pool)
    elif isinstance(executor, concurrent.futures.Executor):
        futures = {executor.submit(run_unit, unit): unit for unit in units}
        for future in concurrent.futures.as_completed(futures):
            yield futures.pop(future), future
    else:
        from dask.distributed import as_completed

        futures = {executor.submit(run_unit, unit, pure=False): unit for unit in units}
        for future in as_completed(futures):
            yield futures.pop(future), future  # one that is held is run again if its worker dies


def run_unit(unit: Unit) -> tuple[pd.DataFrame, dict]:
    """Rows of a unit and their `origin`, as the process that runs them sees it."""
    start = time.perf_counter()
    table = run(unit.protocol, unit.seeds, progress=False)
    return table, origin(time.perf_counter() - start)


@contextmanager
def _local_processes(number: int) -> Iterator[concurrent.futures.Executor]:
    """A pool whose processes leave Ctrl-C to this one, and end with it."""
    others = multiprocessing.active_children()
    pool = concurrent.futures.ProcessPoolExecutor(
        number,
        multiprocessing.get_context("spawn"),
        initializer=_depend_on_parent,
    )
    try:
        _start(pool, number)
        yield pool
    except BaseException:
        for process in multiprocessing.active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _start(pool: concurrent.futures.Executor, number: int) -> None:
    """Start the processes with Ctrl-C held back, which they inherit while they import."""
    if not hasattr(signal, "pthread_sigmask"):  # Windows: they start with the first units
        return
    interrupt = {signal.SIGINT}
    signal.pthread_sigmask(signal.SIG_BLOCK, interrupt)
    try:
        for _ in range(number):
            pool.submit(os.getpid)  # starts a process, since none is idle yet
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, interrupt)


def _depend_on_parent() -> None:
    """Leave Ctrl-C to the parent process, and end when it does, killed or not."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
