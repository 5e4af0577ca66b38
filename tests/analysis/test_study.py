"""The study's effects, leads and fits, on tables made up from its own plan."""

import numpy as np
import pandas as pd
import pytest

from wbn.analysis.design import d_optimal
from wbn.analysis.study import (
    LEVELS,
    PAIRS,
    choice_effects,
    column_effects,
    design_points,
    leads,
    table_2_at_points,
)
from wbn.analysis.table_2 import METRICS, TABLE_2
from wbn.experiments.plan import RESULTS, read_plan

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
        inference="batch_average", evaluated_on="test", epoch=20, **columns
    )


def additive(protocol, seed):
    ahead = 0.05 * (protocol.method == "wlf_wbn") * (protocol.output_norm == "none")
    seeds = np.random.default_rng(seed).normal(0, 0.001)
    return {"accuracy_overall": 0.6 + RATE[protocol.learning_rate] + ahead + seeds}


def printed(protocol, seed):
    """What Table 2 prints, in each run alike."""
    mine = (TABLE_2.experiment == protocol.experiment) & (TABLE_2.method == protocol.method)
    cells = TABLE_2[mine].set_index("metric").paper.astype(float) / 100
    return {metric: cells[metric] for metric in METRICS}


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
    found = leads(table(additive), PROTOCOLS, "accuracy_overall", "wlf_sbn", ["output_norm"])
    assert found.n.eq(10).all()
    expected = found.output_norm.map({"none": 0.05, "on": 0.0})
    assert np.allclose(found["mean"], expected)


def test_changes_on_the_same_networks_are_averaged_over_protocols():
    before = table(additive)
    after = before.assign(inference="pooled", accuracy_overall=before.accuracy_overall + 0.02)
    found = column_effects(
        pd.concat([before, after]), "inference", "batch_average", "accuracy_overall"
    )
    assert found.level.tolist() == ["pooled"] * 9
    assert np.allclose(found["mean"], 0.02)


def test_runs_that_print_table_2_fit_it_and_rank_as_it_does():
    found = table_2_at_points(table(printed), PROTOCOLS)
    assert len(found) == 20
    assert found.inside.eq(18).all()
    assert found.cells.map(lambda cells: ("iii", "lf_sbn", "accuracy_minority") in cells).all()
    assert found.chance.eq(1).all()


def test_runs_far_from_table_2_fit_nothing_and_tie():
    def same(protocol, seed):
        return dict.fromkeys(METRICS, 0.5)

    found = table_2_at_points(table(same), PROTOCOLS)
    assert found.inside.eq(0).all()
    assert np.allclose(found.chance, (1 / 3) ** 3)


def test_a_point_without_a_method_is_named():
    lacking = table(printed).query("method != 'wlf_wbn'")
    with pytest.raises(ValueError, match=r"lacks methods at the point .*learning_rate"):
        table_2_at_points(lacking, PROTOCOLS)
