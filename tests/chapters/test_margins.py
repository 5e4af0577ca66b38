"""The stored margins are those of the networks that they are said to be of."""

from dataclasses import replace

import pytest
import torch

from study.chapters.three_experiments import margins
from study.chapters.three_experiments.margins import NETWORKS, trained_margins
from study.chapters.three_experiments.thresholds import balanced_accuracy, stored_margins
from study.engine.data import load_split
from study.engine.threshold import best_balanced_accuracy
from study.engine.training import run
from study.stores.plan import load_or_run


@pytest.fixture(scope="module")
def table():
    return stored_margins()


def test_there_is_one_for_each_test_image_and_network(table):
    split = load_split("iii", 0)
    assert table.minority.tolist() == (split.test_labels == split.minority).tolist()
    assert list(table) == ["minority", *NETWORKS]
    assert table.notna().all(axis=None)


@pytest.mark.parametrize("name", NETWORKS)
def test_their_accuracy_is_near_the_stored_runs_of_the_same_protocol(table, name):
    protocol = NETWORKS[name]
    only = {"experiment": "iii", "method": protocol.method, "epoch": 20, "batch_order": "reshuffle"}
    loss = "batch" if protocol.method == "lf_sbn" else protocol.loss_normalizer
    runs = load_or_run("family", loss_normalizer=loss, learning_rate=1e-3, **only)
    ours = balanced_accuracy(table[name], table.minority)
    spread = runs.accuracy_balanced.std()
    assert abs(ours - runs.accuracy_balanced[runs.seed == 0].item()) < spread


def test_training_again_gives_the_margins_of_a_run(monkeypatch):
    name = "Weighted + WBN"
    monkeypatch.setattr(margins, "NETWORKS", {name: NETWORKS[name]})
    again = trained_margins(epochs=1)
    row = run(replace(NETWORKS[name], epochs=1), [0])
    first = row[row.epoch == 1].iloc[0]
    accuracy = balanced_accuracy(again[name], again.minority)
    assert accuracy == pytest.approx(first.accuracy_balanced, abs=2e-3)


def test_the_best_threshold_of_all_is_the_best_of_a_scan(table):
    margin, minority = table["Weighted + WBN"], table.minority
    scan = max(balanced_accuracy(margin, minority, t) for t in margin.unique())
    best = best_balanced_accuracy(torch.tensor(margin), torch.tensor(minority))
    assert best == pytest.approx(scan)
