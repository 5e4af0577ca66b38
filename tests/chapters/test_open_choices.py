"""The study's effects and leads, on tables made up from its own plan."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.open_choices.effects import (
    LABELS,
    LEVELS,
    PAIRS,
    all_effects,
    choice_effects,
    column_effects,
    count_leads,
    design_points,
    direct_and_fraction,
    direct_effects,
    leads,
    misfits,
    with_misfit,
)
from study.stats.design import d_optimal, level_means, misfit, responses
from study.stores.plan import RESULTS, load_or_run, read_plan

PROTOCOLS, _ = read_plan(RESULTS / "study" / "plan.toml")
DISTINCT = {protocol.hash: protocol for protocol in PROTOCOLS}
RATE = dict(zip(LEVELS["learning_rate"], (0.0, 0.02, -0.1, -0.3), strict=True))


def table(score, **columns):
    """A row for each protocol and seed, with the accuracies that `score` gives."""
    rows = [
        {"protocol": name, "experiment": p.experiment, "method": p.method, "seed": seed}
        | score(p, seed)
        for name, p in DISTINCT.items()
        for seed in range(10)
    ]
    return pd.DataFrame(rows).assign(
        **{"inference": "batch_average", "evaluated_on": "test", "epoch": 20} | columns
    )


def additive(protocol, seed):
    ahead = 0.05 * (protocol.method == "wlf_wbn") * (protocol.output_norm == "none")
    seeds = np.random.default_rng(seed).normal(0, 0.001)
    return {"accuracy_overall": 0.6 + RATE[protocol.learning_rate] + ahead + seeds}


def test_the_plan_has_every_level_of_every_factor():
    points = design_points(PROTOCOLS)
    assert len(points) == 20
    assert {factor: set(points[factor]) for factor in LEVELS} == {
        factor: set(levels) for factor, levels in LEVELS.items()
    }


def test_the_points_are_those_that_the_declared_call_chooses():
    points = design_points(PROTOCOLS)[list(LEVELS)]
    assert d_optimal(LEVELS, PAIRS, n=20, seed=0).values.tolist() == points.values.tolist()


def test_effects_are_the_ones_put_in():
    found = choice_effects(table(additive), PROTOCOLS, "accuracy_overall")
    assert len(found) == 9 * (3 + 1 + 1 + 2 + 1 + 2)
    found = found.set_index(["experiment", "method", "factor", "level"])["mean"]
    for method, ahead in (("wlf_wbn", 0.05), ("wlf_sbn", 0.0)):
        assert found["ii", method, "learning_rate", 3e-2] == pytest.approx(-0.3)
        assert found["ii", method, "output_norm", "none"] == pytest.approx(ahead)
        assert found["ii", method, "last_batch", "drop"] == pytest.approx(0, abs=1e-12)


def test_leads_are_those_of_weighted_bn():
    found = leads(table(additive), PROTOCOLS, "accuracy_overall", "wlf_sbn")
    assert len(found) == 3 * 4 * 2 * 2
    assert found.n.eq(10).all()
    expected = found.output_norm.map({"none": 0.05, "on": 0.0})
    assert np.allclose(found["mean"], expected)
    assert found.rate.unique().tolist() == [f"rate {r}" for r in (0.0003, 0.001, 0.01, 0.03)]
    assert found.setting.str.endswith("no output BN").equals(expected > 0)


def test_leads_are_counted_where_they_are_clear():
    behind = table(additive)
    weighted = behind.method == "wlf_wbn"
    behind = behind.assign(accuracy_overall=behind.accuracy_overall - 0.1 * weighted)
    both = pd.concat([table(additive, inference="pooled"), behind])
    found = count_leads(both, PROTOCOLS, "accuracy_overall")
    assert found.loc["batch_average"].values.tolist() == [[0, 48]] * 2
    # Half of the 48 cells have an output BN; there the methods tie.
    assert found.loc["pooled"].values.tolist() == [[24, 0]] * 2


def test_intervals_hold_what_seeds_and_model_miss():
    """Points off the model and seeds that differ: 95 of 100 intervals hold the model's value."""
    levels = {"a": [0, 1, 2], "b": [0, 1, 2]}
    points = pd.DataFrame([(a, b) for a in range(3) for b in range(3)], columns=["a", "b"])
    random, held = np.random.default_rng(0), []
    for off, between in ((0.1, 0.0), (0.0, 0.1), (0.05, 0.1)):
        hits = 0
        for _ in range(150):
            delta = random.normal(0, off + 1e-6, (9, 1))
            seeds = random.normal(0, between + 1e-6, (1, 6))
            fitted = level_means(points, delta + seeds, levels, [], ["a"])
            found = with_misfit(fitted, ["a"], "value").iloc[0]
            hits += found.low < 0 < found.high
        held.append(hits / 150)
    assert all(0.9 < share < 0.995 for share in held), held


def test_what_the_model_misses_is_told_by_method_and_for_the_lead():
    rows = table(additive)
    found = misfits(rows, PROTOCOLS, "accuracy_overall")
    assert found.index.tolist() == ["lf_sbn", "wlf_sbn", "wlf_wbn", "c - b"]
    assert np.allclose(found[["residual", "left out"]], 0)
    means = [0.05 * (norm == "none") for norm in design_points(PROTOCOLS).output_norm]
    assert np.allclose(found.loc["c - b", "points"], np.std(means, ddof=1))
    odd = DISTINCT[rows.protocol[0]]
    rows.loc[rows.protocol == odd.hash, "accuracy_overall"] += 0.1
    found = misfits(rows, PROTOCOLS, "accuracy_overall")
    response = responses(rows, PROTOCOLS, "accuracy_overall")[odd.experiment, odd.method]
    direct = misfit(design_points(PROTOCOLS), response, LEVELS, PAIRS)
    assert found.loc[odd.method, ("residual", odd.experiment)] == direct.sd > 0.001
    assert found.loc[odd.method, ("left out", odd.experiment)] == direct.left_out


def test_changes_on_the_same_networks_are_averaged_over_protocols():
    before = table(additive)
    after = before.assign(inference="pooled", accuracy_overall=before.accuracy_overall + 0.02)
    found = column_effects(
        pd.concat([before, after]), "inference", "batch_average", "accuracy_overall"
    )
    assert found.level.tolist() == ["pooled"] * 9
    assert np.allclose(found["mean"], 0.02)


def test_all_effects_stand_in_the_order_of_their_labels():
    plain, moved = table(additive), ("evaluation_set", "pooled", "moving_average", "last_epoch")
    kinds = [plain.assign(inference=name) for name in moved]
    epochs = [
        plain.assign(epoch=epoch, accuracy_overall=plain.accuracy_overall + epoch / 100)
        for epoch in (30, 10, 3, 1)
    ]
    found = all_effects(pd.concat([*epochs, *kinds, plain]), PROTOCOLS, "accuracy_overall")
    assert found.choice.unique().tolist() == list(LABELS.values())
    assert found.panel.unique().tolist() == ["(i)", "(ii)", "(iii)"]
    by_method = found[found.choice == "no output BN"].groupby("method")["mean"].mean()
    assert np.allclose(by_method[["lf_sbn", "wlf_sbn", "wlf_wbn"]], [0, 0, 0.05])
    late = found[found.choice == "epoch 30"]
    assert np.allclose(late["mean"], 0.3)


def test_choices_are_compared_where_both_kinds_of_runs_have_them():
    found = choice_effects(table(additive), PROTOCOLS, "accuracy_overall")
    chosen = (found.choice == "rate 0.01") & (found.method == "wlf_wbn")
    direct = found[chosen].assign(mean=0.07)
    beside = direct_and_fraction(direct.iloc[::-1], found)
    assert beside.index.tolist() == [("wlf_wbn", "rate 0.01")]
    assert np.allclose(beside["direct"], 0.07)
    assert np.allclose(beside["fraction"], -0.1)


def test_direct_comparisons_are_means_over_the_readings():
    only = {"epoch": 20, "method": "wlf_wbn", "experiment": "iii", "seed": range(10)}
    runs = load_or_run("family", "learning_rate", "batch_order", "loss_normalizer", **only)
    found = direct_effects("accuracy_overall").query("experiment == 'iii'").set_index("choice")
    rates = runs.groupby("learning_rate").accuracy_overall.mean()
    assert found["mean"]["rate 0.01"] == pytest.approx(rates[0.01] - rates[0.001])
    none = load_or_run("corrections", correction="none", **only).accuracy_overall.mean()
    assert found["mean"]["corr.: none"] == pytest.approx(none - runs.accuracy_overall.mean())
    assert len(found) == 5
