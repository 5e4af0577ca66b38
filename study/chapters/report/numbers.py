"""Numbers about all runs and all predictions."""

from __future__ import annotations

from functools import cache

from study.chapters.long_tail.predictions import LONG_TAIL
from study.chapters.numbers import states
from study.chapters.predictions import Prediction, scoreboard
from study.chapters.repair.predictions import REPAIR
from study.chapters.table_2.predictions import FORENSICS
from study.chapters.three_experiments.predictions import MISMATCH
from study.chapters.why.predictions import CAUSE
from study.figures.text import count
from study.stores.plan import RESULTS
from study.stores.store import Store


@states("took {:.0f} hours of one core")
def hours() -> float:
    """Hours that all units in `results/` took."""
    stores = [Store(plan.parent) for plan in RESULTS.glob("*/plan.toml")]
    return sum(seconds for store in stores for _, seconds in store.units()) / 3600


@cache
def held_and_failed(predictions: tuple[Prediction, ...]) -> list[int]:
    """How many predictions held, how many failed, and how many there are."""
    held = (scoreboard(predictions).outcome == "held").sum()
    return [held, len(predictions) - held, len(predictions)]


@states(
    "{0} of {1} held. Of the mismatch (3), {2} failed",
    "Of where Table 2 could come from (8), {3} failed",
)
def all_predictions() -> tuple:
    """Predictions that held, all predictions, and those of chapters 3 and 8 that failed."""
    groups = MISMATCH, FORENSICS, CAUSE, LONG_TAIL, REPAIR
    held, failed, declared = zip(*map(held_and_failed, groups), strict=True)
    return sum(held), sum(declared), count(failed[0]), count(failed[1])


@states(
    "Of {2} predictions, declared before their runs and not blind, {0} held",
    "Of {2} predictions {0} held and {1} failed",
    "Of the causes (7), {1} of {2} failed",
)
def causes() -> tuple:
    """Predictions of chapter 7: held, failed, all."""
    return tuple(map(count, held_and_failed(CAUSE)))


@states(
    "{2} predictions, made before any result",
    "{0} of {2} predictions held",
    "Of ten classes (10), {1} failed",
)
def ten_classes() -> tuple:
    """Predictions of chapter 10: held, failed, all."""
    return tuple(map(count, held_and_failed(LONG_TAIL)))


@states("{0} of {2} predictions about repairs held", "Of repairs (11), {1} failed")
def repairs() -> tuple:
    """Predictions of chapter 11: held, failed, all."""
    return tuple(map(count, held_and_failed(REPAIR)))
