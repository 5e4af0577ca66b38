"""Arms, shares of the gap and the one curve, on tables whose answers are known."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from wbn.analysis.cause import (
    arm,
    error_ratio,
    left_out_errors,
    paired,
    positions_of_test_images,
)
from wbn.experiments import Protocol, run

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


def test_paired_takes_what_all_arms_have():
    both = pd.concat([rows([0.5, 0.6]), rows([0.1, 0.2], inference="batch_average")])
    found = paired([(1, both), (-1, rows([0.4, 0.4]))])
    assert found.inference.tolist() == ["pooled"]


def curve(tau):
    return 1 / (1 + np.exp(8 * (tau - 0.7)))


def table(settings=24):
    tau = np.sort(RANDOM.uniform(0, 1.2, settings))
    protocols = [f"p{n // 2}" for n in range(settings)]
    return pd.DataFrame(
        {"protocol": protocols, "relative_threshold": tau, "accuracy_minority": curve(tau)}
    )


def test_a_decreasing_curve_predicts_settings_left_out():
    found = error_ratio(left_out_errors(table()))
    assert found["settings"] == 24
    assert found["curve"] < 0.1 < 0.3 < found["mean"]
    assert found["low"] < found["ratio"] < found["high"] < 0.5


def test_a_curve_through_noise_is_no_better_than_the_mean():
    noise = table(40).assign(accuracy_minority=RANDOM.permutation(curve(np.linspace(0, 1.2, 40))))
    assert error_ratio(left_out_errors(noise))["ratio"] > 0.8


def test_settings_of_one_protocol_are_left_out_together():
    """A protocol at one threshold, far from all others: only its own settings know its answer."""
    odd = pd.DataFrame(
        {"protocol": "odd", "relative_threshold": [0.6, 0.61], "accuracy_minority": [0.0, 0.0]}
    )
    errors = left_out_errors(pd.concat([table(), odd]))
    own = errors[errors.protocol == "odd"].curve
    assert (own < -0.5).all()


def test_an_arm_has_one_protocol_for_each_experiment():
    rows = arm("wlf_wbn")
    assert rows.groupby("experiment").protocol.nunique().tolist() == [1, 1, 1]
    assert set(rows.seed) == set(range(100, 120))


def test_recall_is_the_share_of_minority_positions_beyond_the_threshold():
    protocol = Protocol.paper("iii", "wlf_wbn", hidden=8, epochs=1)
    found = positions_of_test_images(protocol, seed=3, inference="pooled")
    scores = run(replace(protocol, inference="pooled"), [3], progress=False).iloc[0]
    beyond = found.position > found.relative_threshold
    assert beyond[found.minority].mean() == scores.accuracy_minority
    assert (~beyond)[~found.minority].mean() == scores.accuracy_majority
