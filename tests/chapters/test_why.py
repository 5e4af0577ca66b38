"""Variants, the gap and its parts, and positions, against other ways to the same numbers."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from study.chapters.variants import REFERENCE, paired, variant, variants
from study.chapters.why.cause import (
    SHIFTS,
    WEIGHTS_IN,
    farther_drifts,
    freezing,
    gap_at_thresholds,
    parts,
    variant_means,
)
from study.chapters.why.positions import (
    EXPERIMENT,
    INFERENCE,
    NETWORKS,
    SEED,
    trained_positions,
)
from study.chapters.why.tables import stored_positions
from study.engine import Protocol, run
from study.stores.plan import load_or_run

RANDOM = np.random.default_rng(0)


def rows(values, **keys):
    """A row for each seed, of one experiment, kind of statistics and epoch."""
    fixed = {"experiment": "iii", "inference": "pooled", "epoch": 20} | keys
    return pd.DataFrame({"seed": range(len(values)), **fixed, "accuracy_minority": values})


def test_paired_is_the_interval_of_the_combination_seed_by_seed():
    a, b, c = RANDOM.uniform(0.3, 0.9, (3, 12))
    found = paired([(1, rows(a)), (-0.5, rows(b)), (-0.5, rows(c))]).iloc[0]
    values = a - (b + c) / 2
    arm_length = 2.201 * values.std(ddof=1) / np.sqrt(12)  # Student's t, 11 degrees of freedom
    assert found["mean"] == pytest.approx(values.mean())
    assert found["high"] - found["mean"] == pytest.approx(arm_length, rel=0.05)
    assert found["n"] == 12


def test_paired_takes_what_all_variants_have():
    both = pd.concat([rows([0.5, 0.6]), rows([0.1, 0.2], inference="batch_average")])
    found = paired([(1, both), (-1, rows([0.4, 0.4]))])
    assert found.inference.tolist() == ["pooled"]


def test_a_variant_has_one_protocol_for_each_experiment():
    rows = variant("wlf_wbn")
    assert rows.groupby("experiment").protocol.nunique().tolist() == [1, 1, 1]
    assert set(rows.seed) == set(range(100, 120))


def test_recall_is_the_share_of_minority_positions_beyond_the_threshold():
    protocol = Protocol.paper("iii", "wlf_wbn", hidden=8, epochs=1)
    found = trained_positions(protocol)
    scores = run(replace(protocol, inference=INFERENCE), [SEED], progress=False).iloc[0]
    beyond = found.position > found.relative_threshold
    assert beyond[found.minority].mean() == scores.accuracy_minority
    assert (~beyond)[~found.minority].mean() == scores.accuracy_majority


@pytest.mark.parametrize("name", NETWORKS)
def test_stored_positions_are_near_the_stored_runs_of_the_same_seed(name):
    found, protocol = stored_positions()[name], NETWORKS[name]
    changes = {key: value for key, value in protocol.differences.items() if key in REFERENCE}
    only = {"experiment": EXPERIMENT, "inference": INFERENCE, "epoch": 20, "seed": SEED}
    kept = variant(protocol.method, **changes, **only).iloc[0]
    beyond = found.position > found.relative_threshold
    assert beyond[found.minority].mean() == pytest.approx(kept.accuracy_minority, abs=0.02)
    assert found.relative_threshold.iloc[0] == pytest.approx(kept.relative_threshold, abs=0.01)


def test_what_is_regained_and_left_makes_up_the_gap():
    table = parts("cause", experiment="iii").set_index(["part", "inference"])["mean"]
    for kind in ("batch_average", "pooled"):
        assert table["gap", kind] + table["regained", kind] == pytest.approx(table["left", kind])
    runs = load_or_run("cause", "output_shift_rate", experiment="iii", epoch=20, inference="pooled",
                  loss_normalizer="batch", statistics="batch", learning_rate=1e-3, epochs=20,
                  output_norm=["standard", "weighted"],
                  output_shift_start=0.0, batch_size=100)  # fmt: skip
    frozen = runs[(runs.output_shift_rate == 0) & (runs.method == "wlf_wbn")]
    standard = runs[(runs.output_shift_rate == 1) & (runs.method == "wlf_sbn")]
    left = frozen.accuracy_balanced.mean() - standard.accuracy_balanced.mean()
    assert table["left", "pooled"] == pytest.approx(left)


def test_means_are_those_of_each_variant():
    table = variant_means("cause", "accuracy_minority", experiment="iii").set_index(
        ["arm", "inference"]
    )["mean"]
    own = variant("wlf_wbn", experiment="iii", statistics="running_sums", inference="running_sums")
    last = own[own.epoch == 20].accuracy_minority.mean()
    assert table["running sums", "batch_average"] == pytest.approx(last)


def test_variants_are_named_and_differ_in_what_was_changed():
    only = {"experiment": "iii", "inference": "pooled", "epoch": 20}
    shift = variants("wlf_sbn", SHIFTS, **only).groupby("arm", sort=False)["shift"].mean()
    assert list(shift.index) == list(SHIFTS)
    assert shift["frozen at 0"] == 0
    assert shift["three times faster"] < shift["started at -1"] < shift["learned"] < 0
    layers = variants("wlf_wbn", WEIGHTS_IN, **only)
    assert layers.groupby("arm").protocol.nunique().eq(1).all()
    assert layers.protocol.nunique() == 3


def test_farther_drifts_are_the_networks_own():
    row = farther_drifts().loc["rate 0.01"]
    only = {"experiment": "iii", "learning_rate": 1e-2, "inference": "pooled", "epoch": 20}
    assert row["shift"] == pytest.approx(variant("wlf_wbn", **only)["shift"].mean())
    assert row["predicted"] < -3


def test_freezing_is_what_the_parts_call_regained():
    table = parts("cause", experiment="iii")
    part = table[table.part == "regained"].set_index("inference")["mean"]
    means = freezing("wlf_wbn", experiment="iii").set_index("inference")["mean"]
    pd.testing.assert_series_equal(means[part.index], part)


def test_the_gap_at_the_best_threshold_is_that_of_the_parts():
    only = {"experiment": "iii", "epoch": 20, "inference": ["batch_average", "pooled"]}
    gaps = gap_at_thresholds(**only).set_index(["threshold", "inference"])["mean"]
    table = parts("cause", experiment="iii").set_index(["part", "inference"])["mean"]
    for name, part in {"its own": "gap", "best": "gap, best threshold"}.items():
        pd.testing.assert_series_equal(gaps[name], table[part])
