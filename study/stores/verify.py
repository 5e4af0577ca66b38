"""Run stored units again, and compare the numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pandas as pd

from study.engine.columns import metrics
from study.engine.training import run
from study.stores.store import Store, as_table
from study.stores.sweep import run_unit, sweep

# On other processors runs moved by 0.1 points up to epoch 2, by 23 at epoch 20, and their means by
# two standard errors (the book's page on reliability). The tolerances are a multiple of that.
EARLY_EPOCHS = 2  # Until then, each accuracy of each seed is compared,
EARLY_TOLERANCE = 0.02  # and may differ by this.
LATER_ERRORS = 4.0  # Later, means over seeds may differ by so many standard errors,
LATER_TOLERANCE = 0.005  # plus this, about five test images in a thousand.
LOSSES = ("train_loss", "nll")  # in nats, compared with the same tolerances
REPRODUCED = ("identical", "agrees")  # verdicts that confirm stored numbers


def agreement(stored: pd.DataFrame, fresh: pd.DataFrame) -> str:
    """ "identical", "agrees", "disagrees" or "undecided", for two tables of one unit.

    On one machine with the same versions, runs are identical to the bit. Other machines round
    differently, so runs of a seed start alike and diverge during training. Therefore early epochs
    are compared run by run, and later epochs as means over seeds, with the tolerances above. A
    single seed has no spread, so its later epochs cannot be compared; if a table has nothing
    else, the verdict is "undecided".
    """
    if stored.equals(fresh):
        return "identical"
    first, second = (_scores(table) for table in (stored, fresh))
    if not first.isna().equals(second.isna()):
        return "disagrees"
    early = first.index.get_level_values("epoch") <= EARLY_EPOCHS
    before, after = (scores[~early].groupby(["inference", "epoch"]) for scores in (first, second))
    error = (before.sem() ** 2 + after.sem() ** 2) ** 0.5
    allowed = LATER_ERRORS * error + LATER_TOLERANCE
    if ((first - second)[early].abs() > EARLY_TOLERANCE).any(axis=None) or (
        (before.mean() - after.mean()).abs() > allowed
    ).any(axis=None):
        return "disagrees"
    return "agrees" if early.any() or stored.seed.nunique() > 1 else "undecided"


def _scores(table: pd.DataFrame) -> pd.DataFrame:
    """The columns that are compared, for each run and epoch."""
    runs = table.set_index(["inference", "seed", "epoch"]).sort_index()
    return runs[[*metrics(runs), *runs.columns.intersection(LOSSES)]]


def verify(
    store: Store | Path | str, sample: int, seed: int, max_seconds: float = 120.0
) -> pd.DataFrame:
    """Run a random sample of a store's units again, and compare.

    Parameters
    ----------
    store
        A `Store` or its folder.
    sample
        Largest number of units.
    seed
        Seed of the sample.
    max_seconds
        Largest sum of the units' stored times. Units that would exceed it are left out.

    Returns
    -------
    pandas.DataFrame
        A row for each unit: its name, its stored seconds and the verdict of `agreement`.
    """
    store = Store(store)
    units, chosen = store.units(), {}
    random.Random(seed).shuffle(units)
    for unit, seconds in units:
        if len(chosen) < sample and seconds <= max_seconds:
            max_seconds -= seconds
            chosen[unit] = seconds
    records = store.find(chosen)
    rows = (
        (unit.name, seconds, agreement(as_table([records[unit]]), run_unit(unit)[0]))
        for unit, seconds in chosen.items()
    )
    return pd.DataFrame(rows, columns=["unit", "seconds", "verdict"])


def spot_check(store: Store | Path | str, sample: int = 1, seed: int = 2019) -> str:
    """Result of `verify` in words, for chapters: "1 of 1 blocks of seeds reproduced"."""
    again = verify(store, sample, seed)
    return f"{again.verdict.isin(REPRODUCED).sum()} of {sample} blocks of seeds reproduced"


def first_epoch_check(store: Store | Path | str, seed: int = 2019) -> str:
    """Compare only the first epoch of one random run, since whole units may take too long."""
    store = Store(store)
    unit, _ = random.Random(seed).choice(store.units())
    first = replace(unit.protocol, epochs=1, eval_epochs=(1,))
    fresh, kept = run(first, unit.seeds[:1], progress=False), store.read(unit)
    verdict = agreement(kept[(kept.epoch == 1) & (kept.seed == unit.seeds[0])], fresh)
    return f"first epoch of one run {'' if verdict in REPRODUCED else 'not '}reproduced"


def reproduce(
    store: Store | Path | str, fresh: Store | Path | str, executor: object = None
) -> pd.DataFrame:
    """Run everything in a store again, into a fresh store, and compare unit by unit."""
    store, fresh = Store(store), Store(fresh)
    units = [unit for unit, _ in store.units()]
    for seeds in sorted({unit.seeds for unit in units}):
        sweep([u.protocol for u in units if u.seeds == seeds], seeds, fresh, executor)
    before, after = store.find(units), fresh.find(units)
    return pd.DataFrame(
        {
            "unit": unit.name,
            "verdict": agreement(as_table([before[unit]]), as_table([after[unit]])),
        }
        for unit in units
    )
