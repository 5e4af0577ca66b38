"""Verdicts on tables made to be clear cases."""

import itertools

import numpy as np
import pandas as pd
import pytest

from study.chapters.claims import (
    CLAIMS,
    VARIANTS,
    by_reading,
    held_by_epoch,
    in_words,
    table_2_by_reading,
    verdict_in_words,
)
from study.engine.data import EXPERIMENTS
from study.engine.protocol import FAMILY, METHODS, Protocol
from study.stats.table_2 import METRICS, TABLE_2

C1, C2, C3, C4, C5 = CLAIMS


def made_up(accuracy, reading=FAMILY[0], n=40, sd=0.005, variants=({},), methods=METHODS):
    """Runs whose metrics are `accuracy(experiment, method, metric, changes)` plus noise."""
    noise = np.random.default_rng(0)
    hashes = {
        (e, m, *changes.items()): Protocol.paper(e, m, **reading, **changes).hash
        for changes, e, m in itertools.product(variants, EXPERIMENTS, methods)
    }
    return pd.DataFrame(
        {
            "protocol": hashes[(e, m, *changes.items())],
            "experiment": e,
            "method": m,
            "inference": "batch_average",
            "evaluated_on": "test",
            "seed": seed,
            "epoch": epoch,
        }
        | {k: np.clip(accuracy(e, m, k, changes) + noise.normal(0, sd), 0, 1) for k in METRICS}
        for changes, e, m, seed, epoch in itertools.product(
            variants, EXPERIMENTS, methods, range(n), (1, 20)
        )
    )


def gains(**gain):
    """A level of 80 %, plus the gain of `method_metric`, of `method_metric_experiment`."""

    def accuracy(e, m, k, _):
        name = f"{m}_{k.removeprefix('accuracy_')}"
        return 0.8 + gain.get(name, 0.0) + gain.get(f"{name}_{e}", 0.0)

    return accuracy


@pytest.mark.parametrize(
    ("claim", "gain", "outcome"),
    [
        (C1, {"wlf_wbn_overall": 0.05}, "replicated"),
        (C1, {"wlf_wbn_overall": 0.05, "wlf_wbn_overall_iii": -0.1}, "not replicated"),
        (C1, {"wlf_wbn_overall": 0.05, "wlf_wbn_overall_ii": -0.05}, "undecided"),
        (C1, {"wlf_wbn_overall": 0.05, "lf_sbn_overall": 0.1}, "not replicated"),
        (C3, {"wlf_wbn_minority": 0.1}, "replicated"),
        (C3, {"wlf_wbn_minority": 0.1, "wlf_wbn_majority": -0.005}, "replicated"),
        (C3, {"wlf_wbn_minority": 0.1, "wlf_wbn_majority_i": -0.02}, "not replicated"),
        (C3, {"wlf_wbn_minority": 0.1, "wlf_wbn_majority_i": -0.01}, "undecided"),
        (C3, {"wlf_wbn_minority": 0.1, "wlf_wbn_minority_ii": -0.2}, "not replicated"),
        (C4, {}, "replicated"),
        (C4, {"wlf_sbn_overall": -0.1}, "replicated"),
        (C4, {"wlf_sbn_overall": 0.01}, "not replicated"),
        (C4, {"wlf_sbn_overall_ii": 0.1}, "replicated"),
        (C4, {"wlf_sbn_overall_iii": 0.005}, "undecided"),
    ],
)
def test_clear_cases(claim, gain, outcome):
    verdict = claim.under(FAMILY[0], made_up(gains(**gain)))
    assert verdict.outcome == outcome
    assert len(verdict.evidence)


PRINTED = TABLE_2.set_index(["experiment", "method", "metric"]).paper.astype(float).to_dict()


@pytest.mark.parametrize(
    ("off", "outcome"), [(0, "replicated"), (3, "replicated"), (4, "not replicated")]
)
def test_c2_counts_cells_outside(off, outcome):
    moved = list(itertools.product(EXPERIMENTS, METHODS))[:off]
    table = made_up(
        lambda e, m, k, c: (
            PRINTED[e, m, k] / 100 + 0.1 * ((e, m) in moved and k == "accuracy_minority")
        )
    )
    verdict = C2.under(FAMILY[0], table)
    assert verdict.outcome == outcome
    assert (~verdict.evidence.inside).sum() == off


@pytest.mark.parametrize(
    ("shift", "sd", "outcome"),
    [(0.0, 0.005, "replicated"), (0.05, 0.005, "not replicated"), (0.024, 0.01, "undecided")],
)
def test_c5_sees_what_a_variant_moves(shift, sd, outcome):
    table = made_up(
        lambda e, m, k, changes: 0.8 + shift * (e == "ii" and changes == {"correction": "none"}),
        sd=sd,
        n=10,
        variants=({}, *VARIANTS.values()),
        methods=("wlf_wbn",),
    )
    verdict = C5.under(FAMILY[0], table)
    assert verdict.outcome == outcome
    assert len(verdict.evidence) == 9


def test_a_verdict_for_each_reading():
    better = made_up(gains(wlf_wbn_overall=0.05), FAMILY[0])
    equal = [made_up(gains(), reading) for reading in FAMILY[1:]]
    table = pd.concat([better, *equal]).drop_duplicates(["protocol", "seed", "epoch"])
    family = C1.over_family(table)
    assert list(family.index) == list(range(1, 9))
    assert list(family.outcome[:2]) == ["replicated", "undecided"]
    assert list(family.loss_normalizer.unique()) == ["batch", "dataset"]
    assert in_words(family.outcome) == "holds in 1 of 8 readings (some), undecided in 7"
    assert in_words(pd.Series(["replicated"] * 3)) == "holds in 3 of 3 readings (all)"
    assert in_words(pd.Series(["not replicated"] * 3)) == "holds in 0 of 3 readings (none)"


def test_verdicts_side_by_side_and_epoch_by_epoch():
    readings = [made_up(gains(wlf_wbn_overall=0.05), reading) for reading in FAMILY]
    table = pd.concat(readings).drop_duplicates(["protocol", "seed", "epoch"])
    first = (table.epoch == 1) & (table.method == "wlf_wbn")
    worse = first & (table.protocol == Protocol.paper("ii", "wlf_wbn", **FAMILY[2]).hash)
    table.loc[worse, "accuracy_overall"] = 0.5
    outcomes = by_reading([C1, C3], table, epoch=1)
    assert list(outcomes) == ["C1", "C3"]
    assert outcomes.C1[outcomes.C1 != "replicated"].to_dict() == {3: "not replicated"}
    assert set(outcomes.C3) <= {"undecided", "not replicated"}
    held = held_by_epoch([C1, C3], table, epochs=(1, 20))
    assert held.to_dict("index") == {1: {"C1": 7, "C3": 0}, 20: {"C1": 8, "C3": 0}}
    assert held.index.name == "epoch"


def test_readings_have_nine_protocols_each_and_share_the_plain_loss():
    readings = pd.concat(made_up(gains(), reading, n=2) for reading in FAMILY)
    rows = table_2_by_reading(readings.drop_duplicates(["protocol", "seed", "epoch"]))
    assert list(rows) == list(range(1, 9))
    assert all(len(runs) == 18 and runs.protocol.nunique() == 9 for runs in rows.values())
    shared = set(rows[1].protocol) & set(rows[5].protocol)
    assert shared == {Protocol.paper(e, "lf_sbn").hash for e in EXPERIMENTS}
    assert set(rows[2].epoch) == {20}


def test_a_verdict_says_its_epoch_and_what_earlier_ones_hold():
    last = pd.concat(made_up(gains(wlf_wbn_overall=0.05), reading) for reading in FAMILY).query(
        "epoch == 20"
    )
    worse = last.assign(accuracy_overall=last.accuracy_overall - 0.1 * (last.method == "wlf_wbn"))
    epochs = [last, *(runs.assign(epoch=n) for runs, n in ((last, 1), (worse, 5), (last, 10)))]
    table = pd.concat(epochs).drop_duplicates(["protocol", "seed", "epoch"])
    assert verdict_in_words(C1, table) == (
        "At epoch 20: holds in 8 of 8 readings (all). At epochs 1, 5 and 10: holds in 8, 0 and 8."
    )


def test_runs_that_are_missing_are_told():
    table = made_up(gains())
    with pytest.raises(ValueError, match=r"C1 needs 9 protocols at epoch 20, .* lacks 3 of them"):
        C1.under(FAMILY[0], table[table.experiment != "iii"])
    with pytest.raises(ValueError, match="at epoch 5"):
        C1.under(FAMILY[0], table, epoch=5)


def test_claims_are_complete():
    assert all(c.words and c.criterion and c.origin for c in CLAIMS)
    assert [c.name for c in CLAIMS] == ["C1", "C2", "C3", "C4", "C5"]


@pytest.mark.parametrize("claim", CLAIMS)
def test_margins_in_words_are_those_in_code(claim):
    from study.chapters import claims

    margins = {
        "C2": f"at most {claims.CELLS_OUTSIDE} lie outside",
        "C3": f"above -{100 * claims.MAJORITY_LOSS:g} point",
        "C4": f"below {100 * claims.WLF_GAIN:g} points",
        "C5": f"within {100 * claims.SAME:g} points",
    }
    assert margins.get(claim.name, "") in claim.criterion
