"""Criteria of predictions on clear cases: evidence that meets them, and each way to fail."""

import pandas as pd
import pytest

from study.chapters.long_tail.predictions import LONG_TAIL
from study.chapters.predictions import Prediction, scoreboard
from study.chapters.three_experiments.predictions import MISMATCH

PREDICTIONS = {p.name.split()[0]: p for p in (*MISMATCH, *LONG_TAIL)}
RATIOS = ["lt10", "lt50", "lt100", "lt200"]


def held(number, evidence):
    return PREDICTIONS[number].judge(evidence)


def gap(cb, full):
    """Rows of the gap, WBN minus standard BN, at the four ratios for both kinds of weights."""
    return pd.DataFrame(
        {"weights": weights, "experiment": ratio, "mean": mean}
        for weights, means in {"CB-weighted": cb, "IF-weighted": full}.items()
        for ratio, mean in zip(RATIOS, means, strict=True)
    )


def ends(*intervals):
    return pd.DataFrame(intervals, columns=["low", "high"])


def test_mismatch_needs_every_interval_above_zero():
    assert held("3.1", ends((0.1, 0.2), (0.01, 0.3)))
    assert not held("3.1", ends((0.1, 0.2), (-0.01, 0.3)))


def test_scale_needs_every_interval_to_hold_zero():
    assert held("3.2", ends((-0.1, 0.2), (-0.01, 0.0)))
    assert not held("3.2", ends((-0.1, 0.2), (0.01, 0.02)))
    assert not held("3.2", ends((-0.1, 0.2), (-0.02, -0.01)))


@pytest.mark.parametrize(
    ("plain", "weighted", "outcome"),
    [
        ((-0.004, 0.004), (0.1, 0.2), True),
        ((-0.004, 0.004), (-0.2, -0.1), True),
        ((-0.004, 0.006), (0.1, 0.2), False),
        ((-0.004, 0.004), (-0.1, 0.2), False),
    ],
)
def test_inference_moves_weighted_bn_only(plain, weighted, outcome):
    changes = ends(plain, plain, weighted).assign(method=["lf_sbn", "wlf_sbn", "wlf_wbn"])
    assert held("3.3", changes) is outcome


@pytest.mark.parametrize(
    ("changes", "outcome"), [((0.3, -0.2, 0.1), True), ((0.3, 0.1, -0.2), False)]
)
def test_batch_size_shrinks_the_change_whatever_its_sign(changes, outcome):
    evidence = pd.DataFrame({"batch_size": [100, 200, 500], "mean": changes})
    assert held("3.4", evidence.assign(experiment="ii")) is outcome


@pytest.mark.parametrize(("sds", "outcome"), [((0.1, 0.2), True), ((0.2, 0.1), False)])
def test_noise_compares_spreads(sds, outcome):
    spread = pd.DataFrame({"method": ["wlf_sbn", "wlf_wbn"], "sd": sds, "experiment": "i"})
    assert held("3.5", spread) is outcome


def test_sign_needs_all_below_zero_and_growth():
    assert held("10.1", gap((-1, -2, -3, -4), (-1, -1, -1, -2)))
    assert not held("10.1", gap((0.1, -2, -3, -4), (-1, -1, -1, -2)))
    assert not held("10.1", gap((-1, -2, -3, -4), (-2, -1, -1, -1)))


def test_size_needs_every_ratio_nearer_to_zero_than_two_classes():
    rows = pd.DataFrame({"experiment": ["iii", *RATIOS], "mean": [-5, -1, -2, -3, -4]})
    assert held("10.2", rows)
    assert not held("10.2", rows.replace({"mean": {-4: -6}}))


def test_weights_are_compared_at_high_ratios_only():
    assert held("10.3", gap((-1, -1, -1, -1), (0, 0, -2, -2)))
    assert not held("10.3", gap((-1, -1, -1, -2), (-5, -5, -2, -1)))


def pooling(weighted=0.01, standard=0.001, gap=-0.01):
    arms = {"Plain + BN": standard, "CB-weighted + BN": standard, "IF-weighted + BN": -standard}
    arms |= dict.fromkeys(["CB-weighted + WBN", "IF-weighted + WBN"], weighted)
    change = pd.DataFrame(dict.fromkeys(RATIOS, arms))
    after = pd.DataFrame(gap, index=["CB-weighted", "IF-weighted"], columns=RATIOS)
    return pd.concat({"change": change, "gap": after})


def test_pooling_has_three_parts():
    assert held("10.4", pooling())
    assert not held("10.4", pooling(weighted=-0.01))
    assert not held("10.4", pooling(standard=0.006))
    assert not held("10.4", pooling(gap=0.01))


def thirds(largest, middle, smallest):
    means = {"largest": largest, "middle": middle, "smallest": smallest}
    rows = pd.DataFrame({"third": list(means), "mean": list(means.values())})
    return rows.assign(weights="CB-weighted", experiment="lt100")


def test_classes_lose_most_where_they_are_small_and_nothing_where_large():
    assert held("10.5", thirds(0.0, -0.01, -0.03))
    assert not held("10.5", thirds(0.0, -0.04, -0.03))
    assert not held("10.5", thirds(-0.001, -0.01, -0.03))


def test_alternatives_rank_at_every_ratio():
    means = pd.DataFrame(
        {
            r: {
                "IF-weighted + WBN": 0.5,
                "Sampler + BN": 0.6,
                "IF-weighted + BN": 0.7,
                "Adjusted + BN": 0.8,
            }
            for r in RATIOS
        }
    )
    assert held("10.6", means)
    behind = means.copy()
    behind.loc["Sampler + BN", "lt10"] = 0.4
    assert not held("10.6", behind)
    not_best = means.copy()
    not_best.loc["Adjusted + BN", "lt200"] = 0.65
    assert not held("10.6", not_best)


def test_calibration_and_convolutions_are_signs():
    assert held("10.7", gap((1, 1, 1, 1), (1, 1, 1, 1)))
    assert not held("10.7", gap((1, 1, 1, 1), (1, 1, -1, 1)))
    assert held("10.8", pd.DataFrame({"mean": [-1, -2]}))
    assert not held("10.8", pd.DataFrame({"mean": [-1, 0]}))


def test_without_output_the_gap_is_nearer_to_zero_in_each_network():
    rows = pd.DataFrame(
        {"network": n, "weights": "CB-weighted", "experiment": "lt100", "setting": s, "mean": m}
        for n in ("paper's", "conv")
        for s, m in (("output BN", -0.02), ("no output BN", 0.01))
    )
    assert held("10.9", rows)
    assert not held("10.9", rows.assign(mean=[-0.02, 0.01, -0.02, -0.03]))


def test_the_other_normalizer_has_two_parts():
    evidence = pd.DataFrame({"lt100": [0.1, 0.2], "lt200": [0.1, 0.2]})
    assert held("10.10", evidence)
    assert not held("10.10", evidence.assign(lt200=[-0.1, 0.2]))


def test_the_scoreboard_tells_every_prediction_once():
    made_up = [
        Prediction(name, "words", "declared", "criterion", lambda: pd.DataFrame(), lambda _, h=h: h)
        for name, h in (("a", True), ("b", False))
    ]
    table = scoreboard(made_up)
    assert table.prediction.tolist() == ["a", "b"]
    assert table.outcome.tolist() == ["held", "failed"]


def test_predictions_are_complete_and_told_apart():
    assert len(PREDICTIONS) == 15
    for prediction in PREDICTIONS.values():
        assert prediction.words.endswith(".")
        assert prediction.criterion.endswith(".")
        assert "2026-11-16" in prediction.declared


def test_stored_runs_decide_as_the_chapters_say():
    outcomes = scoreboard(PREDICTIONS.values()).set_index("prediction").outcome
    failed = [name.split()[0] for name in outcomes.index[outcomes == "failed"]]
    assert failed == ["3.1", "3.4", "10.1", "10.4", "10.6"]
