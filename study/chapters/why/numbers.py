"""Numbers of chapter 7: what weighted BN loses and why."""

from __future__ import annotations

from functools import cache

from study.chapters.numbers import states
from study.chapters.three_experiments.numbers import runs
from study.chapters.variants import TEN, TWO, variant
from study.chapters.why.cause import (
    BOTH_KINDS,
    INTERVENTIONS,
    NORMALIZERS,
    gap,
    parts,
)
from study.chapters.why.predictions import shifts
from study.engine.protocol import EPOCH
from study.stores.plan import load_or_run


@cache
def behind(part: str) -> list[float]:
    """One of `parts` in (iii), in balanced accuracy, with its sign changed.

    With averages and with pooled statistics; first with the batch's normalizer, then with the data
    set's.
    """
    tables = [
        parts(TWO, experiment="iii", loss_normalizer=normalizer) for normalizer in NORMALIZERS
    ]
    means = [table.set_index(["part", "inference"])["mean"] for table in tables]
    return [-mean[part, kind] for mean in means for kind in BOTH_KINDS]


@states(
    "shrinks from {0} to {4} points of balanced accuracy with averages",
    "from {1} to {5} with pooled statistics; with the data set's normalizer from {2} to {6}, and "
    "not at all with pooled statistics ({3} and {7})",
    "{4} points of balanced accuracy behind in (iii) in place of {0} with averages over "
    "mini-batches, {5} in place of {1} with pooled statistics; with the data set's normalizer {6} "
    "in place of {2}, and {7} in place of {3}",
)
def frozen_shift() -> tuple:
    """How far WBN is behind in (iii), `results/cause`: as it is; with a frozen output shift."""
    return *behind("gap"), *behind("left")


@states(
    "gives back {4} of the {0} points of balanced accuracy that weighted BN is behind in (iii) "
    "with averages, and {5} of {1} with pooled statistics; with the data set's normalizer {6} of "
    "{2}, and nothing of {3}",
)
def given_back() -> tuple:
    """How far WBN is behind in (iii), `results/cause`; what a frozen shift gives back of it."""
    return *behind("gap"), *(-points for points in behind("regained"))


@states(
    "{4} points of {0} remain in (iii), and {6} of {2} with the data set's normalizer",
    "{4} of {0} points of balanced accuracy are left in (iii), and {6} of {2} with the data set's "
    "normalizer",
    "With pooled statistics {5} of {1} and {7} of {3} are left",
)
def left_at_best_threshold() -> tuple:
    """How far WBN is behind in (iii), `results/cause`: as it is; at each best threshold."""
    return *behind("gap"), *behind("gap, best threshold")


@states("after {} epochs all of it")
def all_of_it_is_order() -> int:
    """First epoch of the long runs (`results/cause`) whose gap in (iii) no threshold reduces."""
    metrics = "accuracy_balanced", "accuracy_best_threshold"
    gaps = [gap(TWO, m, experiment="iii", epochs=100, inference="pooled") for m in metrics]
    whole, best = (table.set_index("epoch")["mean"] for table in gaps)
    return (best <= whole).idxmax()


@states(
    "its threshold is at {0:.2f} of the way",
    "standard BN has it at {0:.2f}",
    "in (iii) its threshold is at {0:.2f}.",
    "after 20 epochs is at {2:.2f} with pooled statistics",
    "at {1:.2f} with averages over mini-batches ({4:.2f} and {3:.2f} with the data set's",
)
def thresholds() -> tuple:
    """Mean relative thresholds in (iii), `results/cause`: Weighted + BN; WBN, both normalizers."""
    settings = [("wlf_sbn", "pooled", "batch")]
    settings += [("wlf_wbn", kind, n) for n in NORMALIZERS for kind in BOTH_KINDS]
    tables = [
        variant(method, experiment="iii", epoch=20, inference=kind, loss_normalizer=normalizer)
        for method, kind, normalizer in settings
    ]
    return tuple(table.relative_threshold.mean() for table in tables)


@states("{0} mean shifts to within {1:.2f}", "in the batches predict, to within {1:.2f}")
def drift() -> tuple:
    """Mean shifts of prediction 7.1 (`results/cause`), and the largest error of the model."""
    found = shifts()
    return len(found), (found["shift"] - found.shift_predicted).abs().max()


@states("lose {:.0f} % of the minority of (iii)")
def lost_with_running_sums() -> float:
    """Percent of the minority in (iii) that WBN with running sums misses (`results/cause`)."""
    only = {"experiment": "iii", "epoch": EPOCH, "inference": "running_sums"}
    found = variant("wlf_wbn", **INTERVENTIONS["running sums"], **only)
    return 100 * (1 - found.accuracy_minority.mean())


@states("nothing else had used ({0} runs", "on seeds {1} to {2}")
def fresh_runs() -> tuple:
    """Runs in `results/cause` and `results/cause_ten`; their first and last seed."""
    seeds = [load_or_run(store).seed for store in (TWO, TEN)]
    return runs(TWO, TEN), min(map(min, seeds)), max(map(max, seeds))
