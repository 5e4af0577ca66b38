"""Contrasts between betas pair seeds, and folds choose what they should."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.betas.comparisons import by_reading, chosen_betas, contrasts, paired_by_beta
from study.stats.intervals import paired_difference

BETAS = (0.0, 0.9, 1.0)


@pytest.fixture
def table():
    random = np.random.default_rng(0)
    rows = pd.DataFrame(
        {
            "protocol": f"{e}{m}{b}{rate}",
            "experiment": e,
            "method": m,
            "inference": "pooled",
            "evaluated_on": "test",
            "seed": seed,
            "epoch": 20,
            "beta": b,
            "learning_rate": rate,
        }
        for e in ("i", "iii")
        for m in ("wlf_sbn", "wlf_wbn")
        for b in BETAS
        for rate in (1e-3, 1e-2)
        for seed in range(5)
    )
    rows["accuracy_balanced"] = random.uniform(0.4, 0.9, len(rows))
    rows["average_precision"] = random.uniform(0.4, 0.9, len(rows))
    return rows


def select(rows, **values):
    return rows[np.logical_and.reduce([rows[k] == v for k, v in values.items()])]


def test_each_method_has_the_paired_difference_of_its_betas(table):
    metric = "average_precision"
    found = contrasts(table, 1.0, 0.0, metric, by=["learning_rate"])
    assert len(found) == 2 * 2 * 3  # experiments, rates, contrasts
    for method in ("wlf_sbn", "wlf_wbn"):
        runs = select(table, method=method, learning_rate=1e-2)
        runs = runs[runs.beta != 0.9].assign(method=lambda t: t.beta.map({1.0: "b", 0.0: "a"}))
        expected = paired_difference(runs, "b", "a", metric).set_index("experiment")
        row = select(found, contrast=method, learning_rate=1e-2).set_index("experiment")
        columns = ["mean", "low", "high", "n", "sd"]
        pd.testing.assert_frame_equal(row[columns], expected.loc[row.index, columns])


def test_the_difference_is_taken_seed_by_seed(table):
    found = select(
        contrasts(table, 0.9, 0.0, "accuracy_balanced", by=["learning_rate"]),
        contrast="difference", experiment="iii", learning_rate=1e-3,
    ).iloc[0]  # fmt: skip
    values = {
        (m, b): select(table, experiment="iii", method=m, beta=b, learning_rate=1e-3)
        .set_index("seed")
        .accuracy_balanced
        for m in ("wlf_sbn", "wlf_wbn")
        for b in (0.9, 0.0)
    }
    steps = {m: values[m, 0.9] - values[m, 0.0] for m in ("wlf_sbn", "wlf_wbn")}
    seeds = steps["wlf_wbn"] - steps["wlf_sbn"]
    assert (found["mean"], found["sd"]) == pytest.approx((seeds.mean(), seeds.std()))
    half = (found["high"] - found["low"]) / 2
    assert half == pytest.approx(2.776 * seeds.std() / 5**0.5, rel=0.05)  # t with 4 degrees


def test_differences_beyond_one_are_allowed(table):
    table.loc[table.beta == 1, "accuracy_balanced"] = 0.0
    table.loc[(table.beta == 1) & (table.method == "wlf_wbn"), "accuracy_balanced"] = 1.0
    table.loc[table.beta == 0, "accuracy_balanced"] = 1.0
    table.loc[(table.beta == 0) & (table.method == "wlf_wbn"), "accuracy_balanced"] = 0.0
    found = contrasts(table, 1.0, 0.0, "accuracy_balanced", by=["learning_rate"])
    assert select(found, contrast="difference")["mean"].tolist() == [2.0] * 4


def test_a_missing_seed_is_refused(table):
    gap = (table.seed == 3) & (table.beta == 1) & (table.method == "wlf_wbn")
    with pytest.raises(ValueError, match="not every seed has both methods"):
        contrasts(table[~gap], 1.0, 0.0, "accuracy_balanced", by=["learning_rate"])


def folds(means):
    """Two folds and two seeds of each beta, around its mean."""
    return pd.DataFrame(
        {
            "experiment": "i",
            "method": "wlf_wbn",
            "inference": "pooled",
            "beta": beta,
            "fold": fold,
            "seed": seed,
            "accuracy_balanced": mean + (0.1 if fold else -0.1) + 0.02 * seed * (beta - 0.5),
        }
        for beta, mean in means.items()
        for fold in (0, 1)
        for seed in (-1, 1)
    )


def test_folds_choose_the_best_mean():
    chosen = chosen_betas(folds({0.0: 0.6, 0.9: 0.8, 1.0: 0.7}), "accuracy_balanced")
    assert chosen.to_dict("records") == [
        {"experiment": "i", "method": "wlf_wbn", "inference": "pooled", "beta": 0.9,
         "validation": pytest.approx(0.8), "tied": 1}
    ]  # fmt: skip


def test_of_equal_means_the_smallest_beta_is_taken():
    chosen = chosen_betas(folds({1.0: 0.8, 0.0: 0.6, 0.9: 0.8}), "accuracy_balanced")
    assert chosen[["beta", "tied"]].values.tolist() == [[0.9, 2]]


def test_each_seed_may_choose_for_itself():
    chosen = chosen_betas(folds({0.0: 0.8, 1.0: 0.8}), "accuracy_balanced", by=["seed"])
    assert chosen.set_index("seed").beta.to_dict() == {-1: 0.0, 1: 1.0}


@pytest.mark.parametrize("change", [lambda t: t.iloc[1:], lambda t: pd.concat([t, t])])
def test_uneven_folds_are_refused(change):
    with pytest.raises(ValueError, match="every beta needs one row"):
        chosen_betas(change(folds({0.0: 0.6, 1.0: 0.7})), "accuracy_balanced")


def test_a_reading_that_is_none_of_the_three_is_refused():
    table = pd.DataFrame({"loss_normalizer": ["batch"], "output_norm": ["none"]})
    with pytest.raises(KeyError):
        by_reading(table)


def test_methods_are_compared_at_each_beta(table):
    runs = table[table.learning_rate == 1e-3]
    found = paired_by_beta(runs, "wlf_wbn", "wlf_sbn", "accuracy_balanced")
    assert found[["beta", "experiment"]].apply(tuple, axis=1).tolist() == [
        (beta, e) for beta in BETAS for e in ("i", "iii")
    ]
    wide = runs.pivot(
        index=["beta", "experiment", "seed"], columns="method", values="accuracy_balanced"
    )
    means = (wide.wlf_wbn - wide.wlf_sbn).groupby(["beta", "experiment"]).mean()
    assert found["mean"].to_numpy() == pytest.approx(means.to_numpy())
    lacking = runs[(runs.beta != 0.9) | (runs.method != "wlf_sbn")]
    with pytest.raises(ValueError, match="two or more different methods"):
        paired_by_beta(lacking, "wlf_wbn", "wlf_sbn", "accuracy_balanced")
