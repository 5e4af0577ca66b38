"""Interventions against other ways to the same numbers, and the probe on clear cases."""

import pandas as pd
import pytest

from study.chapters.claims import CLAIMS
from study.chapters.three_experiments.predictions import MISMATCH
from study.chapters.why.interventions import (
    ladder,
    minority_gap,
    modeled_shifts,
    normalizer_effects,
    runs_by_batch_size,
    taken_for_minority,
)
from study.engine.protocol import FAMILY
from study.stores.plan import load_or_run


@pytest.fixture(scope="module")
def gaps():
    return ladder()


def test_the_gap_is_to_the_weighted_loss_with_standard_bn():
    rows = [("lf_sbn", 0.1), ("wlf_sbn", 0.9), ("wlf_wbn", 0.6), ("oversampling", 0.7)]
    runs = pd.DataFrame(rows, columns=["method", "accuracy_minority"]).merge(
        pd.DataFrame({"seed": [0, 1]}), how="cross"
    )
    runs[["experiment", "inference", "evaluated_on", "epoch"]] = ["ii", "pooled", "test", 20]
    assert minority_gap(runs)["mean"].tolist() == pytest.approx([-0.3])
    assert minority_gap(runs, "oversampling")["mean"].tolist() == pytest.approx([-0.2])


def test_the_ladder_starts_where_the_claim_about_the_minority_does(gaps):
    family = load_or_run("family")
    for label, reading in {
        "reference": FAMILY[0],
        "loss: data set": FAMILY[0] | {"loss_normalizer": "dataset"},
    }.items():
        evidence = CLAIMS[2].under(reading, family).evidence
        evidence = evidence[evidence.metric == "accuracy_minority"].set_index("experiment")
        assert gaps[label].set_index("experiment")["mean"].to_dict() == pytest.approx(
            evidence["mean"][["ii", "iii"]].to_dict()
        )


@pytest.mark.parametrize(
    ("label", "order", "normalizer"),
    [
        ("batches of 200", "reshuffle", "batch"),
        ("… loss: data set", "reshuffle", "dataset"),
        ("… stratified", "stratified", "batch"),
        ("… both", "stratified", "dataset"),
    ],
)
def test_larger_batches_are_compared_with_their_own_baseline(gaps, label, order, normalizer):
    runs = load_or_run("mechanism", batch_size=200, epoch=40, inference="batch_average",
                  batch_order=order, loss_normalizer=normalizer)  # fmt: skip
    means = runs.pivot_table("accuracy_minority", "experiment", "method")
    expected = means["wlf_wbn"] - means["wlf_sbn"]
    found = gaps[label].set_index("experiment")["mean"]
    assert found.to_dict() == pytest.approx(expected.to_dict())


def test_every_row_of_the_ladder_has_one_gap_for_each_harder_experiment(gaps):
    for label, rows in gaps.items():
        assert rows.experiment.tolist() == ["ii", "iii"]
        assert rows.n.eq(10 if "200" in label or "…" in label else 40).all()
        assert rows.baseline.eq("wlf_sbn").all()


def test_runs_by_batch_size_are_those_that_the_prediction_is_judged_by():
    keys = ["experiment", "batch_size"]
    means = runs_by_batch_size().pivot_table("accuracy_minority", keys, "inference")
    change = MISMATCH[3].evidence().set_index(keys)["mean"]
    assert (means.pooled - means.batch_average).to_dict() == pytest.approx(change.to_dict())


def test_the_probe_says_what_is_taken_for_the_minority():
    blind = pd.DataFrame(
        {
            "inference": ["batch_average", "minority_weight", "majority_weight"],
            "accuracy_minority": [0.5, 0.9, 0.9],
            "accuracy_majority": [0.5, 0.8, 0.8],
        }
    )
    reader = blind.assign(accuracy_minority=[0.5, 1.0, 0.3], accuracy_majority=[0.5, 0.6, 1.0])
    found = taken_for_minority({"sees": reader, "blind": blind})
    assert found.index.tolist() == ["sees", "blind"]
    fours, sevens = found["minority images"], found["majority images"]
    assert fours.loc["sees"].to_dict() == {"majority_weight": 0.3, "minority_weight": 1.0}
    assert sevens.loc["sees"].to_dict() == pytest.approx(
        {"majority_weight": 0.0, "minority_weight": 0.4}
    )
    assert sevens.loc["blind"].tolist() == pytest.approx([0.2, 0.2])


def test_the_effect_of_the_normalizer_is_the_difference_of_the_ladder_s_gaps(gaps):
    effects = normalizer_effects().set_index(["batches", "experiment"])["mean"]
    gap = {label: rows.set_index("experiment")["mean"] for label, rows in gaps.items()}
    for experiment in ("ii", "iii"):
        random, stratified = (
            gap[data_set][experiment] - gap[batch][experiment]
            for batch, data_set in (
                ("batches of 200", "… loss: data set"),
                ("… stratified", "… both"),
            )
        )
        assert effects["random", experiment] == pytest.approx(random)
        assert effects["stratified", experiment] == pytest.approx(stratified)
        assert effects["difference", experiment] == pytest.approx(random - stratified)


def test_batches_that_never_lack_the_minority_do_not_push_the_shift_of_the_model():
    shifts = modeled_shifts()
    assert (shifts.loc["reshuffle"] < -0.2).all()
    assert (shifts.loc["stratified"].abs() < 0.15).all()
