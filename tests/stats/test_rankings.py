"""Rankings counted by hand, against other statistics, and their coverage by simulation."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import METRIC, methods
from scipy import stats

from study.stats.rankings import ranking_probability


def probability(table, ranking, **options):
    (row,) = ranking_probability(table, ranking, METRIC, **options).to_dict("records")
    assert 0 <= row["low"] <= row["probability"] <= row["high"] <= 1
    return row["probability"]


def by_hand(a, b, c):
    """P(a best) over all choices of different seeds, ties broken at random."""
    credits = [
        0 if max(b[j], c[k]) > a[i] else 1 / [a[i], b[j], c[k]].count(a[i])
        for i, j, k in permutations(range(len(a)), 3)
    ]
    return np.mean(credits)


few = st.lists(st.sampled_from([0.1, 0.2, 0.3]), min_size=4, max_size=4)


@settings(deadline=None)
@given(few, few, few)
def test_independent_runs_are_counted_over_all_choices_of_different_seeds(a, b, c):
    table = methods(a=a, b=b, c=c)
    assert probability(table, ["a", ("b", "c")]) == pytest.approx(by_hand(a, b, c))


@settings(max_examples=25, deadline=None)
@given(few, few, few, st.booleans())
def test_the_probabilities_of_all_rankings_add_up_to_one(a, b, c, paired):
    table = methods(a=a, b=b, c=c)
    orders = [probability(table, order, paired=paired) for order in permutations("abc")]
    assert sum(orders) == pytest.approx(1)
    assert probability(table, ["a", ("b", "c")], paired=paired) == pytest.approx(sum(orders[:2]))
    assert probability(table, [("a", "b"), "c"], paired=paired) == pytest.approx(
        orders[0] + orders[2]
    )


def test_pairing_matters():
    shared = np.arange(10) / 20
    table = methods(a=shared + 0.01, b=shared)
    assert probability(table, ["a", "b"], paired=True) == 1
    assert probability(table, ["a", "b"]) == pytest.approx(0.5)


def test_two_methods_are_the_mann_whitney_statistic_of_different_seeds():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 9, (2, 12)) / 10
    wins = stats.mannwhitneyu(a, b).statistic - (a > b).sum() - (a == b).sum() / 2
    assert probability(methods(a=a, b=b), ["a", "b"]) == pytest.approx(wins / (12 * 11))


@pytest.mark.parametrize("paired", [False, True])
def test_intervals_are_those_of_as_many_trials_as_seeds(paired):
    b = np.full(10, 0.5)
    for wins in (0, 7, 10):
        a = np.where(np.arange(10) < wins, 0.6, 0.4)
        row = ranking_probability(methods(a=a, b=b), ["a", "b"], METRIC, paired=paired).iloc[0]
        exact = stats.binomtest(wins, 10).proportion_ci(0.95, "exact")
        assert (row["probability"], row["n"]) == (pytest.approx(wins / 10), 10)
        assert (row["low"], row["high"]) == pytest.approx((exact.low, exact.high))


@pytest.mark.parametrize("paired", [False, True])
def test_ranking_intervals_hold_their_level(paired):
    rng = np.random.default_rng(5)
    tables = []
    for epoch in range(300):  # one epoch for each sample: a single call for all of them
        common, a, b = rng.normal(size=(3, 10))
        values = {"a": a + 0.7 + common, "b": b + common}
        tables.append(methods(**{m: stats.norm.cdf(v) for m, v in values.items()}))
        tables[-1]["epoch"] = epoch
    truth = stats.norm.cdf(0.7 / np.sqrt(2) if paired else 0.7 / 2)
    rows = ranking_probability(pd.concat(tables), ["a", "b"], METRIC, paired=paired)
    covered = ((rows["low"] <= truth) & (truth <= rows["high"])).mean()
    assert covered >= 0.95 - 3 * np.sqrt(0.95 * 0.05 / len(rows))
    assert abs(rows["probability"].mean() - truth) < 0.03


@pytest.mark.parametrize("ranking", [["a"], [("a",)], ["a", ("a", "b")], []])
def test_bad_rankings(ranking):
    with pytest.raises(ValueError, match="two or more different methods"):
        ranking_probability(methods(a=[0.1] * 3, b=[0.2] * 3), ranking, METRIC)


def test_too_few_seeds_for_independent_runs():
    table = methods(a=[0.1, 0.2], b=[0.2, 0.3], c=[0.3, 0.4])
    with pytest.raises(ValueError, match="3 methods need as many seeds, got 2"):
        ranking_probability(table, ["a", "b", "c"], METRIC)
    assert probability(table, ["c", "b", "a"], paired=True) == 1
