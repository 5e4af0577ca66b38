"""Validation's choice on made-up folds."""

import pandas as pd
import pytest

from study.chapters.repair.recipe import CANDIDATE, CHOICES, ranked


def folds(**scores):
    """A row for each score of a method, with the choices of the reference reading."""
    rows = [(method, score) for method, values in scores.items() for score in values]
    table = pd.DataFrame(rows, columns=["method", "accuracy_balanced"])
    reading = ["batch", "standard", "standard", "reshuffle", 1e-3]
    table[[*CHOICES, "inference", "epoch"]] = [*reading, "pooled", 10]
    return table


def test_the_best_mean_comes_first_and_ties_keep_their_order():
    table = folds(wlf_wbn=(0.5, 0.6), wlf_sbn=(0.7, 0.9), lf_sbn=(0.6, 0.5))
    found = ranked(table, "accuracy_balanced")
    assert found.index.names == CANDIDATE
    assert found.index.get_level_values("method").tolist() == ["wlf_sbn", "lf_sbn", "wlf_wbn"]
    assert found.tolist() == pytest.approx([0.8, 0.55, 0.55])


def test_epochs_and_inference_are_part_of_a_candidate():
    table = folds(lf_sbn=(0.5, 0.6))
    both = pd.concat([table, table.assign(epoch=20), table.assign(inference="batch_average")])
    assert len(ranked(both, "accuracy_balanced")) == 3


def test_a_candidate_that_lacks_runs_is_named():
    table = folds(lf_sbn=(0.5, 0.6), wlf_wbn=(0.9,))
    with pytest.raises(ValueError, match=r"have 1 to 2 runs: .*'method': 'wlf_wbn'"):
        ranked(table, "accuracy_balanced")
