"""What tables of chapters put together, against the runs that they are of."""

import pandas as pd
import pytest
import torch

from study.chapters import long_tail, repair, table_2, three_experiments
from study.chapters.predictions import Prediction, evidence_of
from study.engine import LONG_TAILED, load_split
from study.stats.intervals import paired_difference
from study.stores.plan import load_or_run


@pytest.fixture(scope="module")
def margins():
    table = three_experiments.stored_margins()
    return table, table.pop("minority")


def test_evidence_is_that_of_the_prediction_with_the_number():
    tables = {name: pd.DataFrame({"name": [name]}) for name in ("1.1 one", "1.10 ten")}
    predictions = [
        Prediction(name, "", "", "", lambda table=table: table, lambda _: True)
        for name, table in tables.items()
    ]
    assert evidence_of(predictions, "1.1").name.item() == "1.1 one"
    with pytest.raises(ValueError, match="not enough"):
        evidence_of(predictions, "1.2")


def test_lost_images_are_minority_images_on_the_wrong_side(margins):
    table, minority = margins
    split = load_split("iii", 0)
    for name, images in three_experiments.lost_images(table, minority).items():
        wrong = torch.tensor((minority & (table[name] < 0)).to_numpy())
        candidates = {tuple(image.flatten().tolist()) for image in split.test_images[wrong]}
        assert {tuple(image.flatten().tolist()) for image in images} <= candidates
        assert len(images) == min(36, int(wrong.sum()))


def test_networks_behind_the_margins_stand_beside_the_stored_runs(margins):
    table = three_experiments.agreement(*margins)
    runs = load_or_run("family", experiment="iii", epoch=20, seed=0, method="wlf_wbn",
                       loss_normalizer="batch", learning_rate=1e-3,
                       batch_order="reshuffle")  # fmt: skip
    assert table.loc["Weighted + WBN", "stored"] == runs.accuracy_balanced.item()
    assert list(table.index) == ["Plain + BN", "Weighted + BN", "Weighted + WBN"]


def test_falls_have_the_intervals_of_both_normalizers_and_of_longer_runs():
    falls = three_experiments.falls().set_index(["loss", "epoch"])
    runs = load_or_run("longer", inference="batch_average", experiment="iii", method="wlf_wbn")
    mean = runs[runs.epoch == 100].accuracy_minority.mean()
    assert falls["mean"]["the batch, longer runs", 100] == pytest.approx(mean)
    assert set(falls.loc["the data set"].index) == {5, 10, 20}


def test_oversampling_is_compared_with_the_method_that_is_named():
    runs = load_or_run("family", epoch=20, method=["wlf_sbn", "wlf_wbn"], loss_normalizer="batch",
                       learning_rate=1e-3, batch_order="reshuffle")  # fmt: skip
    rows = three_experiments.oversampling_minus("wlf_sbn", runs)
    row = rows[(rows.experiment == "iii") & (rows.metric == "accuracy_minority")].iloc[0]
    control = load_or_run("control", epoch=20, experiment="iii").accuracy_minority.mean()
    other = runs[(runs.experiment == "iii") & (runs.method == "wlf_sbn")].accuracy_minority.mean()
    assert row["mean"] == pytest.approx(control - other)


def test_a_moment_has_the_ways_that_take_it_from_the_test_set():
    table = pd.DataFrame(
        {"group": "moments of the test set", "hypothesis": name, "score": score}
        for name, score in (("hidden mean", 0.1), ("output mean", 0.3), ("all four", 0.2))
    )
    table.loc[3] = "text", "as the text says", 0.4
    means = table_2.by_moment(table)
    assert means.loc["hidden mean"].to_dict() == pytest.approx(
        {"from the test set": 0.15, "from training": 0.35}
    )
    assert means.loc["output variance", "from the test set"] == pytest.approx(0.2)


def test_families_count_what_each_hypothesis_explains():
    table = pd.DataFrame({
        "family": ["test images", "test images", "no test images"], "score": [0.1, 0.3, 0.5],
        "chance": [0.9, 0.4, 0.6], "verdict": ["both", "numbers", "ranking"],
    })  # fmt: skip
    counts = table_2.families(table).loc["test images"]
    assert counts.to_dict() == {
        "lowest": "10.0", "median": "20.0", "highest": "30.0", "hypotheses": 2,
        "ranking likely": 1, "explain both": 1,
    }  # fmt: skip


def test_gains_by_digit_have_each_digit_at_each_ratio():
    table = long_tail.settings()["output BN"]
    cells = long_tail.gains_by_digit(table)
    assert sorted(cells.ratio.unique()) == sorted(LONG_TAILED.values())
    last = cells[(cells.digit == "digit 9") & (cells.ratio == 200)].set_index("method")["mean"]
    name = "Adjusted + BN"
    own = paired_difference(table, name, long_tail.BASELINE, "accuracy_9").set_index("experiment")
    assert last[name] == own.loc["lt200", "mean"]


def test_what_else_one_could_use_is_compared_with_the_weighted_loss():
    rows = repair.minus_weighted_loss()
    means = repair.baseline_means().set_index(["method", "experiment"])["mean"]
    assert "weighted loss" not in set(rows.method)
    for row in rows.itertuples():
        gap = means[row.method, row.experiment] - means["weighted loss", row.experiment]
        assert row.mean == pytest.approx(gap)
