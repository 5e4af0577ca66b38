"""Designs against brute force, and effects against known ones."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from study.engine.protocol import Protocol
from study.stats.design import (
    d_optimal,
    effects,
    level_means,
    misfit,
    model_matrix,
    responses,
)

LEVELS = {"rate": [1, 2, 3, 4], "norm": ["batch", "dataset"], "order": ["r", "f", "s"]}
PAIRS = [("rate", "norm")]


def full(levels):
    return pd.DataFrame(list(itertools.product(*levels.values())), columns=list(levels))


def test_terms_of_the_full_factorial_sum_to_zero_and_are_independent():
    x = model_matrix(full(LEVELS), LEVELS, PAIRS)
    assert x.shape == (24, 1 + 3 + 1 + 2 + 3)
    assert np.allclose(x[:, 1:].sum(0), 0)
    assert np.linalg.matrix_rank(x) == x.shape[1]


def test_the_search_finds_the_best_of_all_designs():
    levels = {"a": [0, 1], "b": [0, 1, 2]}
    rows = model_matrix(full(levels), levels, [])
    best = max(
        np.linalg.det(rows[list(chosen)].T @ rows[list(chosen)])
        for chosen in itertools.combinations_with_replacement(range(6), 5)
    )
    x = model_matrix(d_optimal(levels, [], n=5, seed=3), levels, [])
    assert np.linalg.det(x.T @ x) == pytest.approx(best)


def test_a_fraction_recovers_the_effects_of_the_model_exactly():
    points = d_optimal(LEVELS, PAIRS, n=12, seed=0)
    true = {"rate": [0.0, 0.1, -0.2, 0.3], "norm": [0.0, 0.05], "order": [0.0, 0.02, -0.04]}
    together = np.random.default_rng(0).normal(size=(4, 2))
    together -= together.mean(0)
    together -= together.mean(1, keepdims=True)
    response = sum(points[f].map(dict(zip(LEVELS[f], true[f], strict=True))) for f in LEVELS)
    response += [together[LEVELS["rate"].index(r), LEVELS["norm"].index(n)]
                 for r, n in zip(points.rate, points.norm, strict=True)]  # fmt: skip
    found = effects(points, np.stack([response, 2 * response], axis=1), LEVELS, PAIRS)
    for row in found.itertuples():
        expected = true[row.factor][LEVELS[row.factor].index(row.level)]
        assert row.change == pytest.approx((1 + row.seed) * expected)
    assert len(found) == 2 * (3 + 1 + 2)


def test_means_of_the_full_factorial_are_plain_means():
    points = full(LEVELS)
    values = np.random.default_rng(0).normal(size=(len(points), 3))
    found = level_means(points, values, LEVELS, PAIRS, ["rate", "norm"])
    plain = pd.DataFrame(values).groupby([points.rate, points.norm]).mean()
    for row in found.itertuples():
        assert row.value == pytest.approx(plain.loc[(row.rate, row.norm), row.seed])
    assert len(found) == 4 * 2 * 3


def test_too_few_points_are_refused():
    points = full(LEVELS).head(9)
    with pytest.raises(ValueError, match="9 points cannot tell the 10 terms"):
        effects(points, np.zeros((9, 1)), LEVELS, PAIRS)


def dummies(points, levels, pairs):
    """Columns of the same model, coded against each factor's first level."""
    columns = [np.ones(len(points))]
    marks = {f: [(points[f] == v).to_numpy(float) for v in levels[f][1:]] for f in levels}
    columns += [mark for factor in levels for mark in marks[factor]]
    columns += [a * b for f, g in pairs for a in marks[f] for b in marks[g]]
    return np.stack(columns, axis=1)


def test_the_misfit_is_that_of_refitted_least_squares():
    points = d_optimal(LEVELS, PAIRS, n=18, seed=0)
    response = np.random.default_rng(1).normal(size=(18, 4))
    x, means = dummies(points, LEVELS, PAIRS), response.mean(1)
    rss = np.linalg.lstsq(x, means)[1].item()
    missed = []
    for i in range(18):
        rest = np.arange(18) != i
        beta, _, rank, _ = np.linalg.lstsq(x[rest], means[rest])
        assert rank == 10
        missed.append(means[i] - x[i] @ beta)
    found = misfit(points, response, LEVELS, PAIRS)
    assert found.freedom == 8
    assert found.sd == pytest.approx(np.sqrt(rss / 8))
    assert found.left_out == pytest.approx(np.sqrt(np.mean(np.square(missed))))


def chain(n):
    """Points of two factors with n levels whose model is a path: each point joins two levels."""
    pairs = [(k // 2, (k + 1) // 2) for k in range(2 * n - 1)]
    return pd.DataFrame(pairs, columns=["a", "b"]), {"a": range(n), "b": range(n)}


def test_what_one_point_alone_tells_has_no_error_at_a_point_left_out():
    points, levels = chain(6)
    twice = pd.concat([points, points.iloc[:1]], ignore_index=True)  # ten leverages are 1
    found = misfit(twice, np.arange(12.0)[:, None], levels, [])
    assert found.freedom == 1
    assert found.sd == pytest.approx(11 / np.sqrt(2))
    assert np.isnan(found.left_out)


def test_a_leverage_of_nearly_one_still_has_its_error():
    points, levels = chain(200)
    ring = pd.concat([points, pd.DataFrame({"a": [199], "b": [0]})], ignore_index=True)
    response = np.random.default_rng(3).normal(size=(400, 1))
    # A ring has one combination of points that its model says is zero: their sum with signs in
    # turn, 400 each of weight 1/400. Without a point, the ring's other points predict it exactly.
    signs = np.tile([1, -1], 200)
    found = misfit(ring, response, levels, [])
    assert found.freedom == 1
    assert found.left_out == pytest.approx(abs(signs @ response[:, 0]))


def test_arms_are_those_of_least_squares_with_other_columns():
    points = d_optimal(LEVELS, PAIRS, n=13, seed=0)
    response = np.random.default_rng(2).normal(size=(13, 2))
    x, cells = dummies(points, LEVELS, PAIRS), full(LEVELS)
    inverse, every = np.linalg.inv(x.T @ x), dummies(cells, LEVELS, PAIRS)
    sd = misfit(points, response, LEVELS, PAIRS).sd
    at = (cells.rate == 3) & (cells.norm == "dataset")
    mean, first = every[at].mean(0), every[cells.order == "r"].mean(0)
    change = every[cells.order == "s"].mean(0) - first
    found = level_means(points, response, LEVELS, PAIRS, ["rate", "norm"])
    found = found.query("rate == 3 and norm == 'dataset'").model_arm
    changed = effects(points, response, LEVELS, PAIRS).query("level == 's'").model_arm
    for arms, target in ((found, mean), (changed, change)):
        arm = stats.t.ppf(0.975, df=3) * sd * np.sqrt(target @ inverse @ target)
        assert arms.tolist() == pytest.approx([arm, arm])


def test_as_many_points_as_terms_are_refused():
    levels = {"a": [0, 1], "b": [0, 1]}
    with pytest.raises(ValueError, match="4 points cannot tell the 4 terms"):
        misfit(full(levels), np.zeros((4, 1)), levels, [("a", "b")])


def test_responses_stand_in_the_order_of_the_points():
    protocols = [
        Protocol.paper("i", method, loss_normalizer=normalizer)
        for normalizer in ("dataset", "batch")
        for method in ("lf_sbn", "wlf_sbn")
    ]
    table = pd.DataFrame(
        {"protocol": h, "seed": seed, "accuracy_overall": 10 * k + seed}
        for k, h in enumerate(dict.fromkeys(p.hash for p in protocols))
        for seed in (0, 1)
    )
    found = responses(table, protocols, "accuracy_overall")
    assert found["i", "lf_sbn"].tolist() == [[0, 1], [0, 1]]  # one run serves both points
    assert found["i", "wlf_sbn"].tolist() == [[10, 11], [20, 21]]
