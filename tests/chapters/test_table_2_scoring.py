"""Scores of hypotheses about Table 2 on made-up runs whose answers are known."""

import itertools

import numpy as np
import pandas as pd
import pytest

from study.chapters.table_2 import scoring as forensics
from study.chapters.table_2.hypotheses import (
    HYPOTHESES,
    OTHERS,
    TRAININGS,
    Hypothesis,
    protocols_of,
)
from study.chapters.table_2.predictions import ALIKE, FORENSICS
from study.chapters.table_2.scoring import CELLS, TABLE, chance_of_ranking, cube, own_scores, score
from study.stats.scores import crps
from study.stores.plan import RESULTS, read_plan

PREDICTIONS = {p.name.split()[0]: p for p in FORENSICS}


def draws(center, spread=0.01, epochs=4, seeds=10, seed=0):
    noise = np.random.default_rng(seed).normal(0, spread, (epochs, seeds, len(CELLS)))
    return center + noise


def rows(sample, overall=None):
    """Rows of a sweep for a cube of minority accuracies."""
    epochs, seeds, _ = sample.shape
    table = []
    for e, s, (c, cell) in itertools.product(range(epochs), range(seeds), enumerate(CELLS)):
        value = sample[e, s, c] if overall is None else overall[cell[1]]
        key = dict(zip(CELLS.names, cell, strict=True)) | {"epoch": e, "seed": s}
        table.append(key | {"accuracy_minority": sample[e, s, c], "accuracy_overall": value})
    return pd.DataFrame(table).assign(inference="pooled", evaluated_on="test")


def test_the_score_is_the_mean_crps_over_epochs_and_cells():
    sample, tables = draws(0.5, 0.2), np.random.default_rng(1).random((3, len(CELLS)))
    by_hand = [
        np.mean([crps(sample[e, :, c], table[c]) for e in range(4) for c in range(len(CELLS))])
        for table in tables
    ]
    np.testing.assert_allclose(score(sample, tables), by_hand, atol=1e-12)


def test_own_tables_are_scored_without_their_seed():
    sample = draws(0.5, 0.1, seeds=3)
    expected = [
        score(np.delete(sample, seed, 1), sample[epoch, seed][None])[0]
        for seed in range(3)
        for epoch in range(4)
    ]
    np.testing.assert_allclose(own_scores(sample), expected)


def test_a_cube_keeps_epochs_seeds_and_cells_apart():
    sample = np.arange(2 * 3 * 9).reshape(2, 3, 9) / 100
    shuffled = rows(sample).sample(frac=1, random_state=0)
    np.testing.assert_array_equal(cube(shuffled), sample)
    with pytest.raises(ValueError, match="every epoch and seed needs a run"):
        cube(shuffled.iloc[1:])


def test_the_table_is_the_printed_one():
    printed = dict(zip(CELLS, TABLE, strict=True))
    assert printed["i", "lf_sbn"] == pytest.approx(0.674)
    assert printed["iii", "wlf_wbn"] == pytest.approx(0.493)


def test_the_chance_of_the_ranking_is_the_mean_over_epochs_of_products():
    sample = draws(0.5, seeds=4, epochs=2)
    best = {"lf_sbn": 0.1, "wlf_sbn": 0.2, "wlf_wbn": 0.3}
    sure = rows(sample, best)
    assert chance_of_ranking(sure) == 1
    lost = (sure.epoch == 1) & (sure.experiment == "ii") & (sure.method == "wlf_wbn")
    assert (
        chance_of_ranking(sure.assign(accuracy_overall=sure.accuracy_overall - 0.5 * lost)) == 0.5
    )


@pytest.fixture
def made_up(monkeypatch):
    """Three hypotheses: Table 2's own distribution, one far away, and a twin of that one."""
    names = ["near", "far", "twin"]
    hypotheses = [Hypothesis("made up", name, "pooled") for name in names]
    cubes = {"near": draws(TABLE, seed=1), "far": draws(0.95, seed=2), "twin": draws(0.95, seed=3)}
    monkeypatch.setattr(forensics, "sample_of", lambda h: cubes[h.name])
    monkeypatch.setattr(Hypothesis, "runs", lambda self: rows(cubes[self.name]))
    return tuple(hypotheses)


def test_the_board_finds_what_table_2_comes_from(made_up):
    table = forensics.board(made_up).set_index("hypothesis")
    assert table.score.idxmin() == "near"
    assert table.p["near"] > 0.05 > table.p["far"] == pytest.approx(1 / 41)
    assert table.verdict["near"] == "both"  # overall accuracies are the minority's here
    assert table.verdict["far"] in ("neither", "ranking")


def test_tables_are_given_back_to_what_made_them_and_twins_share_theirs(made_up):
    shares = forensics.recovered(made_up)
    assert shares.loc["near", "near"] == 1
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert 0.2 < shares.loc["far", "far"] < 0.8
    assert shares.loc["far", "near"] == 0


def test_every_hypothesis_has_nine_protocols_of_its_plan_and_names_are_unique():
    names = [hypothesis.name for hypothesis in HYPOTHESES]
    assert len(set(names)) == len(names)
    hashes = {training: protocols_of(training) for training in TRAININGS}
    assert all(len(found) == 9 for found in hashes.values())
    planned = {p.hash for p in read_plan(RESULTS / OTHERS / "plan.toml")[0]}
    others = [found for training, found in hashes.items() if training != "reference"]
    assert set().union(*others) == planned


def scored(**scores):
    names = ["as the text says", "all four", "output mean", "hidden mean"]
    table = pd.DataFrame({"score": scores.get("values", [0.3, 0.2, 0.2, 0.3])}, names)
    return table.assign(output_mean=[False, True, True, False])


def test_criteria_of_the_predictions_can_fail():
    assert PREDICTIONS["8.1"].judge(scored())
    assert not PREDICTIONS["8.1"].judge(scored(values=[0.2, 0.2, 0.1, 0.3]))
    assert PREDICTIONS["8.2"].judge(scored())
    assert not PREDICTIONS["8.2"].judge(scored(values=[0.2, 0.3, 0.3, 0.3]))
    verdicts = pd.DataFrame({"verdict": ["numbers", "ranking"]})
    assert PREDICTIONS["8.3"].judge(verdicts)
    assert not PREDICTIONS["8.3"].judge(verdicts.replace("ranking", "both"))
    assert PREDICTIONS["8.4"].judge(pd.DataFrame({"chance": [0.1, 0.49]}))
    assert not PREDICTIONS["8.4"].judge(pd.DataFrame({"chance": [0.1, 0.5]}))
    assert PREDICTIONS["8.5"].judge(pd.DataFrame({"itself": [0.1, 0.49, 0.2]}, ALIKE))
    assert not PREDICTIONS["8.5"].judge(pd.DataFrame({"itself": [0.1, 0.5, 0.2]}, ALIKE))


def test_scores_at_single_epochs_are_those_of_their_runs_alone(made_up, monkeypatch):
    sample = draws(0.6, 0.05)
    monkeypatch.setattr(Hypothesis, "runs", lambda self, prior=True: rows(sample))
    table = forensics.by_epoch(made_up[0])
    assert table.index.tolist() == [0, 1, 2, 3]
    assert table.score[2] == pytest.approx(score(sample[2:3], TABLE[None])[0])
    assert table.own[2] == pytest.approx(own_scores(sample[2:3]).mean())
