"""Chances of rules to decide, against simulation and limits."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from study.engine.data import EXPERIMENTS
from study.engine.protocol import METHODS
from study.stats.power import equivalence_power, false_refutations, seeds_needed


@pytest.mark.parametrize(("sd", "n"), [(0.02, 10), (0.03, 10), (0.025, 15), (0.05, 60), (0.01, 3)])
def test_power_is_the_share_of_simulated_intervals_inside(sd, n):
    samples = np.random.default_rng(1).normal(0, sd, (20000, n))
    ends = stats.ttest_1samp(samples, 0, axis=1).confidence_interval(0.95)
    inside = ((ends.low > -0.024) & (ends.high < 0.024)).mean()
    assert equivalence_power([sd], n, 0.024) == pytest.approx(inside, abs=0.012)


def test_chances_of_several_comparisons_multiply():
    one, other = (equivalence_power([sd], 10, 0.024) for sd in (0.02, 0.025))
    assert equivalence_power([0.02, 0.025], 10, 0.024) == pytest.approx(one * other)
    assert equivalence_power([1e-6], 10, 0.024) == pytest.approx(1)


def test_the_smallest_number_of_seeds():
    n = seeds_needed([0.02, 0.05], 0.024)
    assert equivalence_power([0.02, 0.05], n, 0.024) >= 0.8
    assert equivalence_power([0.02, 0.05], n - 1, 0.024) < 0.8
    assert seeds_needed([0.05], 0.024, power=0.95) > seeds_needed([0.05], 0.024)


def runs(common, level=0.0, n=40):
    """Accuracies of three methods with the given share of common noise in differences."""
    rng = np.random.default_rng(2)
    shared = rng.normal(0, 0.01, n)
    rows = []
    for e, m in itertools.product(EXPERIMENTS, METHODS):
        own = rng.normal(0, 0.01, n) if m != "wlf_wbn" else np.zeros(n)
        value = (
            0.5 - ((shared if common else own) if m != "wlf_wbn" else 0) + level * (m == "lf_sbn")
        )
        rows.append(pd.DataFrame({"experiment": e, "method": m, "seed": range(n)}).assign(
            accuracy_overall=value))  # fmt: skip
    return pd.concat(rows)


def test_one_difference_refutes_by_chance_in_one_case_of_forty():
    assert false_refutations(runs(common=True)) == pytest.approx(0.025, abs=0.02)


def test_six_independent_differences_refute_more_often():
    found = false_refutations(runs(common=False))
    assert found == pytest.approx(1 - 0.975**6, abs=0.04)


def test_what_differs_in_truth_is_taken_away():
    assert false_refutations(runs(common=False, level=0.2)) == false_refutations(runs(common=False))
