"""Criteria of the predictions about the cause: evidence that meets them, and each way to fail."""

import pandas as pd
import pytest

from study.chapters.predictions import scoreboard
from study.chapters.variants import REFERENCE, variant
from study.chapters.why.predictions import CAUSE, COUNTED, shifts, thresholds
from study.engine import EXPERIMENTS

PREDICTIONS = {p.name.split()[0]: p for p in CAUSE}


def held(number, evidence):
    return PREDICTIONS[number].judge(evidence)


def ends(*intervals):
    return pd.DataFrame(intervals, columns=["low", "high"])


@pytest.mark.parametrize(
    ("shift", "predicted", "outcome"),
    [(-0.5, -0.59, True), (-0.5, -0.61, False), (-2.0, -2.29, True), (-2.0, -1.69, False)],
)
def test_a_shift_may_be_off_by_a_tenth_or_by_fifteen_percent(shift, predicted, outcome):
    rows = pd.DataFrame({"shift": [-1.0, shift], "shift_predicted": [-1.0, predicted]})
    assert held("7.1", rows) is outcome


def test_a_threshold_may_be_off_by_a_tenth():
    assert held("7.2", pd.DataFrame({"measured": [0.6, 0.7], "predicted": [0.69, 0.61]}))
    assert not held("7.2", pd.DataFrame({"measured": [0.6, 0.7], "predicted": [0.6, 0.81]}))


def test_one_curve_needs_half_the_error_and_five_points():
    def errors(**second):
        good = {"curve": 0.04, "ratio": 0.4, "high": 0.9}
        return pd.DataFrame([good, good | second])

    assert held("7.3", errors())
    assert held("7.4", errors())
    assert not held("7.3", errors(ratio=0.51))
    assert not held("7.3", errors(high=1.01))
    assert not held("7.4", errors(curve=0.051))


@pytest.mark.parametrize("number", ["7.5", "7.10", "7.12", "7.13"])
def test_gains_need_every_interval_above_zero(number):
    assert held(number, ends((0.01, 0.2), (0.02, 0.3)))
    assert not held(number, ends((0.01, 0.2), (-0.01, 0.3)))


def test_the_mirror_needs_every_loss_beyond_five_points():
    assert held("7.6", ends((-0.4, -0.3), (-0.2, -0.06)))
    assert not held("7.6", ends((-0.4, -0.3), (-0.2, -0.04)))


def test_the_cost_needs_the_accuracy_and_the_farther_drift():
    rows = ends((0.1, 0.2), (0.1, 0.2)).assign(shift=[-2.0, -3.0], shift_wbn=-1.0)
    assert held("7.7", rows)
    assert not held("7.7", rows.assign(low=[0.1, -0.1]))
    assert not held("7.7", rows.assign(shift=[-2.0, -0.9]))


@pytest.mark.parametrize(
    ("change", "outcome"),
    [
        ({}, True),
        ({("averaged_output", "relative_threshold"): 0.7}, False),
        ({("averaged_output", "accuracy_minority"): 0.65}, False),
        ({("pooled_output", "relative_threshold"): 0.66}, False),
    ],
)
def test_layers_have_three_parts(change, outcome):
    table = pd.DataFrame(
        {"relative_threshold": [0.4, 0.9, 0.6, 0.62], "accuracy_minority": [0.9, 0.4, 0.7, 0.5]},
        pd.Index(["averaged_output", "batch_average", "pooled", "pooled_output"], name="inference"),
    )
    for place, value in change.items():
        table.loc[place] = value
    assert held("7.8", table.reset_index().assign(experiment="ii")) is outcome


def test_the_leak_may_gain_less_than_five_points():
    assert held("7.9", ends((-0.8, -0.7), (0.01, 0.04)))
    assert not held("7.9", ends((-0.8, -0.7), (0.01, 0.06)))


def test_order_is_level_within_three_points_either_way():
    assert held("7.11", ends((-0.02, 0.02), (-0.01, 0.0)))
    assert not held("7.11", ends((-0.04, 0.02), (-0.01, 0.0)))
    assert not held("7.11", ends((-0.02, 0.02), (-0.01, 0.04)))


@pytest.mark.parametrize(
    ("weighted", "standard", "outcome"),
    [(-2.7, -4.0, True), (-2.0, -4.0, False), (-2.7, -5.0, False)],
)
def test_only_weighted_bn_rests(weighted, standard, outcome):
    rows = {"wlf_wbn": (weighted, -3.0), "wlf_sbn": (standard, -9.0)}
    table = pd.DataFrame.from_dict(rows, "index", columns=["shift", "equilibrium"])
    assert held("7.14", table) is outcome


def test_shifts_are_the_networks_own():
    table = shifts()
    assert len(table) == 2 * len(COUNTED) * len(EXPERIMENTS)
    runs = variant("wlf_wbn", experiment="ii", inference="batch_average", epoch=5)
    own = table[(table.arm == "wlf_wbn, batch") & (table.experiment == "ii") & (table.epoch == 5)]
    assert own["shift"].item() == pytest.approx(runs["shift"].mean())
    assert REFERENCE["loss_normalizer"] == "batch"


def test_thresholds_are_the_networks_own():
    row = thresholds().set_index(["experiment", "loss_normalizer"]).loc[("iii", "dataset")]
    only = {"experiment": "iii", "loss_normalizer": "dataset", "inference": "pooled", "epoch": 20}
    assert row.measured == pytest.approx(variant("wlf_wbn", **only).relative_threshold.mean())


def test_predictions_are_complete_and_told_apart():
    assert len(PREDICTIONS) == len(CAUSE) == 14
    for prediction in CAUSE:
        assert prediction.words.endswith(".")
        assert prediction.criterion.endswith(".")
        assert "2026-11-16" in prediction.declared


def test_stored_runs_decide_as_the_chapter_says():
    outcomes = scoreboard(CAUSE).set_index("prediction").outcome
    kept = [name.split()[0] for name in outcomes.index[outcomes == "held"]]
    assert kept == ["7.1", "7.2", "7.3", "7.6", "7.7", "7.9"]
