"""One curve for all settings, on tables whose answers are known."""

import numpy as np
import pandas as pd

from study.chapters.why.threshold_curve import error_ratio, left_out_errors

RANDOM = np.random.default_rng(0)


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
