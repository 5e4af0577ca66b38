"""Designs against brute force, and effects against known ones."""

import itertools

import numpy as np
import pandas as pd
import pytest

from wbn.analysis.design import d_optimal, effects, level_means, model_matrix, responses
from wbn.experiments.protocol import Protocol

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
