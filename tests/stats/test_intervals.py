"""Coverage by simulation, and small tables whose answers are known, for the statistics."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import METRIC, methods, runs
from scipy import stats

from study.stats.intervals import (
    Estimate,
    intervals,
    mean_interval,
    paired_difference,
    prediction_interval,
)
from study.stats.rankings import ranking_probability

fractions = st.integers(0, 1000).map(lambda k: k / 1000)


# 0.94, the least that the docstring reports for the shapes below, less two standard errors.
LEAST = 0.93

# Means ---------------------------------------------------------------------------------

SHAPES = {
    "normal": (0.85, lambda r, s: np.minimum(r.normal(0.85, 0.05, s), 1)),
    "binomial near 1": (0.998, lambda r, s: r.binomial(1000, 0.998, s) / 1000),
    "one image at times": (0.9998, lambda r, s: 1 - 1e-3 * (r.random(s) < 0.2)),
    "hardly ever": (0.99995, lambda r, s: 1 - 1e-3 * (r.random(s) < 0.05)),
    "three values": (0.998, lambda r, s: r.choice([0.997, 0.998, 0.999], s, p=[0.2, 0.6, 0.2])),
    "exponential": (0.97, lambda r, s: np.maximum(1 - r.exponential(0.03, s), 0)),
    "beta": (0.5, lambda r, s: r.beta(0.5, 0.5, s)),
    "near 0": (0.03, lambda r, s: np.minimum(r.exponential(0.03, s), 1)),
}


def coverage(interval, mean, samples):
    ends = np.array([interval(sample)[1:3] for sample in samples])
    return ((ends[:, 0] <= mean) & (mean <= ends[:, 1])).mean()


def student(sample):
    mean, arm = sample.mean(), stats.sem(sample) * stats.t.ppf(0.975, len(sample) - 1)
    return mean, mean - arm, mean + arm


@pytest.mark.parametrize("n", [10, 20, 40])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_hold_their_level(shape, n):
    mean, draw = SHAPES[shape]
    samples = draw(np.random.default_rng(n), (2500, n))
    assert coverage(mean_interval, mean, samples) >= LEAST


@pytest.mark.parametrize("shape", ["one image at times", "hardly ever", "exponential"])
def test_where_students_interval_does_not_hold_its_level(shape):
    mean, draw = SHAPES[shape]
    samples = draw(np.random.default_rng(10), (2500, 10))
    assert coverage(student, mean, samples) < 0.92


def length(interval, samples):
    return np.mean([high - low for _, low, high, *_ in map(interval, samples)])


def test_the_interval_is_not_needlessly_long():
    samples = SHAPES["normal"][1](np.random.default_rng(0), (500, 10))
    assert 1 <= length(mean_interval, samples) / length(student, samples) < 1.1


@pytest.mark.parametrize(("n", "low"), [(10, 0.9990), (20, 0.9996), (40, 0.9998)])
def test_runs_that_all_agree(n, low):
    perfect = mean_interval([1.0] * n)
    assert (perfect.mean, perfect.high, perfect.sd) == (1, 1, 0)
    assert perfect.low == pytest.approx(low, abs=5e-5)
    alike = mean_interval([0.997] * n)
    assert 0.996 < alike.low < 0.997 < alike.high < 0.998


@settings(deadline=None)
@given(st.lists(fractions, min_size=2, max_size=40))
def test_an_interval_holds_the_mean_within_the_bounds_and_mirrors(values):
    mean, low, high, n, sd = mean_interval(values)
    assert mean == pytest.approx(np.mean(values))
    assert (n, sd) == (len(values), pytest.approx(np.std(values, ddof=1), abs=1e-12))
    assert 0 <= low <= mean <= high <= 1
    assert low < high
    mirrored = mean_interval([1 - v for v in values])
    assert (mirrored.low, mirrored.high) == pytest.approx((1 - high, 1 - low), abs=1e-9)


@settings(deadline=None)
@given(st.lists(fractions, min_size=2, max_size=40))
def test_an_interval_is_never_shorter_than_students(values):
    _, low, high, *_ = mean_interval(values)
    _, student_low, student_high = student(np.array(values))
    assert low <= max(student_low, 0) + 1e-12
    assert high >= min(student_high, 1) - 1e-12


def test_bounds_only_move_and_stretch():
    values = np.array([0.2, 0.4, 0.45])
    wide = mean_interval(2e3 * values - 1e3, bounds=(-1e3, 1e3))
    assert wide[:3] == pytest.approx(2e3 * np.array(mean_interval(values)[:3]) - 1e3)


def test_a_single_run_has_no_interval():
    estimate = mean_interval([0.9])
    assert (estimate.mean, estimate.n) == (0.9, 1)
    assert np.isnan([estimate.low, estimate.high, estimate.sd]).all()


@pytest.mark.parametrize("values", [[], [[0.5]], [97.0, 98.0], [0.5, np.nan], [-0.1, 0.5]])
def test_bad_values(values):
    with pytest.raises(ValueError, match=r"one number a seed between 0.0 and 1.0 \(fractions"):
        mean_interval(values)


# Intervals of a table ------------------------------------------------------------------


def test_every_group_has_the_interval_of_its_runs():
    parts = [
        runs(np.arange(5) / 10 + k / 100, method).assign(experiment=experiment, epoch=epoch)
        for k, (method, experiment, epoch) in enumerate(
            [("a", "i", 1), ("a", "i", 20), ("b", "i", 1), ("a", "ii", 1)]
        )
    ]
    keys = ["method", "experiment", "epoch"]
    table = intervals(pd.concat(parts).sample(frac=1, random_state=0), keys, "accuracy_overall")
    assert len(table) == 4
    for part in parts:
        row = table.merge(part.iloc[[0]][keys]).iloc[0]
        expected = mean_interval(part.accuracy_overall)
        assert Estimate(*row[list(Estimate._fields)]) == pytest.approx(expected)


def test_groups_come_in_their_order_of_appearance_and_may_have_no_name():
    table = pd.concat([runs([0.8, 0.9]).assign(beta=beta) for beta in (1.0, None, 0.5)])
    found = intervals(table, ["beta"], "accuracy_overall").beta
    assert found.isna().tolist() == [False, True, False]
    assert found.dropna().tolist() == [1.0, 0.5]


def test_bounds_are_those_of_the_values():
    table = runs([0.1, 0.2]).assign(change=[-1.5, -1.4])
    with pytest.raises(ValueError, match=r"between -1.0 and 1.0"):
        intervals(table, ["method"], "change", bounds=(-1.0, 1.0))
    (row,) = intervals(table, ["method"], "change", bounds=(-2.0, 2.0)).itertuples()
    assert row.mean == pytest.approx(-1.45)


def test_a_run_without_a_value_is_refused_not_dropped():
    with pytest.raises(ValueError, match="no NaN"):
        intervals(runs([0.8, np.nan, 0.9]), ["method"], "accuracy_overall")


def test_repeated_rows_are_refused():
    table = runs([0.8, 0.9])
    with pytest.raises(ValueError, match=r"several rows for .*'seed': 1.* among the keys"):
        intervals(pd.concat([table, table.iloc[1:]]), ["method"], "accuracy_overall")


# Paired differences --------------------------------------------------------------------


def test_differences_are_paired_by_seed_and_not_by_row():
    a, b = np.array([0.70, 0.80, 0.90, 0.60]), np.array([0.75, 0.86, 0.95, 0.68])
    table = methods(a=a, b=b).sample(frac=1, random_state=1)
    (row,) = paired_difference(table, "b", "a", METRIC).to_dict("records")
    expected = mean_interval(b - a, bounds=(-1.0, 1.0))
    assert {name: row[name] for name in Estimate._fields} == pytest.approx(expected._asdict())
    assert row["low"] > 0
    assert (row["experiment"], row["epoch"], row["metric"]) == ("i", 20, METRIC)
    assert (row["method"], row["baseline"]) == ("b", "a")
    (mirrored,) = paired_difference(table, "a", "b", METRIC).to_dict("records")
    assert (mirrored["low"], mirrored["high"]) == pytest.approx((-row["high"], -row["low"]))


def differences_interval(sample):
    return mean_interval(sample, bounds=(-1.0, 1.0))


@pytest.mark.parametrize("n", [10, 20, 40])
def test_differences_hold_their_level(n):
    rng = np.random.default_rng(n)
    for samples in (rng.normal(0.01, 0.02, (2500, n)), 0.01 + rng.laplace(0, 0.01, (2500, n))):
        assert coverage(differences_interval, 0.01, samples) >= LEAST


@pytest.mark.parametrize(("n", "documented"), [(10, 0.90), (20, 0.92), (40, 0.93)])
def test_differences_that_are_skewed_cover_what_the_docstring_says(n, documented):
    samples = np.random.default_rng(n).exponential(0.01, (2500, n)) - 0.005
    assert coverage(differences_interval, 0.005, samples) == pytest.approx(documented, abs=0.02)


def test_equal_runs_differ_by_zero_with_an_interval_around_it():
    (row,) = paired_difference(methods(a=[1.0] * 10, b=[1.0] * 10), "a", "b", METRIC).to_dict(
        "records"
    )
    arm = stats.t.ppf(0.975, 9) * 1e-3 / 10  # an image in one of ten runs
    assert row["mean"] == 0
    assert (row["low"], row["high"]) == pytest.approx((-arm, arm), rel=1e-3)


def test_groups_are_compared_within_themselves():
    early = methods(a=[0.1, 0.2], b=[0.5, 0.6]).assign(epoch=1)
    table = pd.concat([early, methods(a=[0.7, 0.8], b=[0.8, 0.9])])
    difference = paired_difference(table, "b", "a", METRIC).set_index("epoch")["mean"]
    assert difference.to_dict() == pytest.approx({1: 0.4, 20: 0.1})


compares = pytest.mark.parametrize(
    "compare",
    [
        lambda t: paired_difference(t, "a", "b", METRIC),
        lambda t: ranking_probability(t, ["a", "b"], METRIC),
    ],
    ids=["paired_difference", "ranking_probability"],
)


@compares
def test_seeds_that_do_not_match_are_listed(compare):
    table = methods(a=[0.1] * 6, b=[0.2] * 6)
    lacking = table[~((table.method == "b") & table.seed.isin([2, 5]))]
    with pytest.raises(ValueError, match=r"same seeds: \{'a': \[\], 'b': \[2, 5\]\} missing"):
        compare(lacking)
    with pytest.raises(ValueError, match=r"'b': \[0, 1, 2, 3, 4, 5\]\} missing at .*'epoch': 1"):
        compare(pd.concat([table, table[table.method == "a"].assign(epoch=1)]))


@compares
def test_several_protocols_of_a_method_are_refused(compare):
    table = methods(a=[0.1] * 3, b=[0.2] * 3)
    with pytest.raises(ValueError, match="several protocols for one method: select one"):
        compare(pd.concat([table, table.assign(protocol="another")]))


@compares
def test_unknown_methods_are_refused(compare):
    with pytest.raises(ValueError, match=r"different methods of \['a', 'c'\], got \['a', 'b'\]"):
        compare(methods(a=[0.1] * 3, c=[0.2] * 3))


# One more run ---------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "level"), [(40, 0.95), (10, 9 / 11)])
def test_prediction_interval_holds_one_more_run_as_often_as_it_says(n, level):
    draws = np.random.default_rng(0).lognormal(size=(20000, n + 1))
    low, high = np.array([prediction_interval(row[:n], level) for row in draws]).T
    covered = ((low <= draws[:, n]) & (draws[:, n] <= high)).mean()
    assert covered == pytest.approx(1 - 2 / (n + 1), abs=0.01)


def test_prediction_interval_takes_the_level_that_the_seeds_allow():
    assert prediction_interval(np.arange(80.0)) == (1.0, 78.0)
    with pytest.raises(ValueError, match="38 values cannot bound 95 % of runs: give 39"):
        prediction_interval(range(38))
