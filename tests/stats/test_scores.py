"""Scores of printed numbers against an integral, a closed form and runs left out one by one."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from study.engine.data import EXPERIMENTS
from study.engine.protocol import METHODS
from study.stats.scores import (
    PRINTED,
    crps,
    left_out_scores,
    minority_scores,
    own_score,
    table_2_score,
)

fractions = st.floats(0, 1, allow_subnormal=False)


def plain(runs, value):
    """The integral of (F - 1)^2 of the sample's own distribution function, step by step."""
    ends = np.sort([*runs, value])
    middles = (ends[1:] + ends[:-1]) / 2
    below = (np.asarray(runs)[:, None] <= middles).mean(axis=0)
    return ((below - (middles >= value)) ** 2) @ np.diff(ends)


@given(st.lists(fractions, min_size=2, max_size=8), fractions)
def test_the_fair_score_is_the_integral_less_the_bias_of_a_small_sample(runs, value):
    n = len(runs)
    pairs = [abs(x - y) for x, y in itertools.combinations(runs, 2)]
    bias = sum(pairs) / (n * n * (n - 1))
    assert crps(runs, value) == pytest.approx(plain(runs, value) - bias, abs=1e-9)
    assert own_score(runs) == pytest.approx(np.mean(pairs) / 2, abs=1e-9)


def test_steps_and_quadrature_agree_on_the_plain_integral():
    runs, value = [0.2, 0.5, 0.55, 0.9], 0.4
    function = stats.ecdf(runs).cdf.evaluate
    numbers = integrate.quad(
        lambda x: (function(x) - (x >= value)) ** 2, 0, 1, points=[*runs, value], limit=200
    )
    assert numbers[0] == pytest.approx(plain(runs, value), abs=1e-6)


@pytest.mark.parametrize("value", [-1.0, 0.0, 0.4, 2.5])
def test_many_normal_runs_score_as_the_normal_distribution_does(value):
    runs = stats.norm.ppf((np.arange(20000) + 0.5) / 20000)
    density, share = stats.norm.pdf(value), stats.norm.cdf(value)
    closed = value * (2 * share - 1) + 2 * density - 1 / np.sqrt(np.pi)
    assert crps(runs, value) == pytest.approx(closed, abs=1e-3)


def test_small_samples_are_not_biased():
    rng = np.random.default_rng(0)
    scores = [crps(rng.normal(size=3), 0.7) for _ in range(20000)]
    closed = 0.7 * (2 * stats.norm.cdf(0.7) - 1) + 2 * stats.norm.pdf(0.7) - 1 / np.sqrt(np.pi)
    assert np.mean(scores) == pytest.approx(closed, abs=4 * np.std(scores) / np.sqrt(20000))


@given(st.lists(fractions, min_size=3, max_size=8))
def test_the_own_score_is_that_of_runs_left_out(runs):
    left_out = [crps(np.delete(runs, place), run) for place, run in enumerate(runs)]
    assert own_score(runs) == pytest.approx(np.mean(left_out), abs=1e-9)


def test_one_run_has_no_score():
    with pytest.raises(ValueError, match="two or more runs, got 1"):
        crps([0.5], 0.5)


def table(offset=0.0):
    """Three runs around each printed minority accuracy, moved by an offset."""
    rows = [
        {"experiment": e, "method": m, "seed": seed}
        for e, m, seed in itertools.product(EXPERIMENTS, METHODS, (5, 3, 4))
    ]
    runs = pd.DataFrame(rows).merge(PRINTED, on=["experiment", "method"])
    around = runs.paper.astype(float) / 100 + 0.03 * (runs.seed - 4) + offset
    return runs.drop(columns="paper").assign(accuracy_minority=around, accuracy_majority=0.0)


def test_printed_numbers_are_scored_under_their_own_runs():
    near, far = minority_scores(table()), minority_scores(table(-0.2))
    assert len(near) == 9
    assert near["own run"].to_numpy() == pytest.approx(0.02)
    assert near.score.to_numpy() == pytest.approx(0.0)
    assert far.score.to_numpy() == pytest.approx(0.18)
    assert near.query("experiment == 'iii' and method == 'wlf_wbn'").paper.tolist() == ["49.3"]


def test_seeds_are_scored_under_the_other_seeds():
    runs = table()
    found = left_out_scores(runs)
    assert found.to_dict() == {
        3: pytest.approx(0.03),
        4: pytest.approx(0.0),
        5: pytest.approx(0.03),
    }
    assert found.mean() == pytest.approx(minority_scores(runs)["own run"].mean())
    odd = (runs.experiment == "i") & (runs.method == "lf_sbn") & (runs.seed == 3)
    runs.loc[odd, "accuracy_minority"] -= 0.09
    assert left_out_scores(runs)[3] == pytest.approx(0.03 + 0.09 / 9)


def test_a_table_is_scored_by_method_and_beside_its_own_runs():
    runs = table()
    runs.loc[runs.method == "wlf_wbn", "accuracy_minority"] -= 0.2
    assert table_2_score(runs).to_dict() == {
        "Plain + BN": pytest.approx(0.0),
        "Weighted + BN": pytest.approx(0.0),
        "Weighted + WBN": pytest.approx(0.18),
        "all nine": pytest.approx(0.06),
        "own run": pytest.approx(0.02),
        "worst seed": pytest.approx(0.03),
    }
