"""Candidates timed in turn, in rounds, so that a slow moment of the machine hits all alike."""

import ctypes
import random
import statistics
import time
from collections.abc import Callable

Run = Callable[[], object]
TRIM_THRESHOLD, MMAP_MAX = -1, -4  # names of settings in C's malloc.h


def seconds(run: Run, repeats: int) -> float:
    """Mean time of so many runs."""
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def keep_memory() -> None:
    """Have the process keep what it frees, where the C library is glibc.

    Else it gives memory back to the system now and then, and whoever needs some next waits for
    hundreds of pages of it: which candidate that hits is chance, and it may be a fifth of its time.
    """
    library = ctypes.CDLL(None)
    if hasattr(library, "mallopt"):
        library.mallopt(TRIM_THRESHOLD, 2**30)
        library.mallopt(MMAP_MAX, 0)


def compare(runs: dict[str, Run], rounds: int = 15, budget: float = 0.015) -> list[dict]:
    """Median times, and medians of ratios to the first candidate within a round.

    Parameters
    ----------
    runs
        Candidates by name, the one that the others are compared with first.
    rounds
        How often each has its turn, after two turns to warm up.
    budget
        Seconds of a turn; a run that takes longer has turns of one run.

    Returns
    -------
    list of dict
        For each candidate its name, its time, its ratio, and between which quartiles the ratios of
        the rounds are.
    """
    keep_memory()
    repeats = {}
    for name, run in runs.items():
        run()
        repeats[name] = max(1, int(budget / max(seconds(run, 2), 1e-7)))
    draw = random.Random(0)  # of the order: whoever comes before leaves its traces
    times = [
        {name: seconds(runs[name], repeats[name]) for name in draw.sample(list(runs), len(runs))}
        for _ in range(rounds)
    ]
    first = next(iter(runs))
    return [row(name, [t[name] for t in times], [t[first] for t in times]) for name in runs]


def row(name: str, times: list[float], base: list[float]) -> dict:
    """What is stored of a candidate's rounds, beside those of what it is compared with."""
    ratios = [a / b for a, b in zip(times, base, strict=True)]
    low, _, high = statistics.quantiles(ratios, n=4)
    return {
        "candidate": name,
        "microseconds": round(1e6 * statistics.median(times), 2),
        "ratio": round(statistics.median(ratios), 4),
        "low": round(low, 4),
        "high": round(high, 4),
        "rounds": len(times),
    }
