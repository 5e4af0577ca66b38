"""Table 2 against the study's points, on tables made up from its plan and on small ones."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.table_2.fits import score_fits, table_2_at_points
from study.stats.table_2 import METRICS, TABLE_2
from study.stores.plan import RESULTS, read_plan

PROTOCOLS, _ = read_plan(RESULTS / "study" / "plan.toml")


def table(score):
    """A row for each protocol and seed, with the accuracies that `score` gives."""
    rows = [
        {"protocol": name, "experiment": p.experiment, "method": p.method, "seed": seed} | score(p)
        for name, p in {protocol.hash: protocol for protocol in PROTOCOLS}.items()
        for seed in range(10)
    ]
    return pd.DataFrame(rows).assign(inference="batch_average", evaluated_on="test", epoch=20)


def printed(protocol):
    """What Table 2 prints, in each run alike."""
    mine = (TABLE_2.experiment == protocol.experiment) & (TABLE_2.method == protocol.method)
    cells = TABLE_2[mine].set_index("metric").paper.astype(float) / 100
    return {metric: cells[metric] for metric in METRICS}


def test_runs_that_print_table_2_fit_it_and_rank_as_it_does():
    found = table_2_at_points(table(printed), PROTOCOLS)
    assert len(found) == 20
    assert found.inside.eq(18).all()
    assert found.chance.eq(1).all()
    assert np.allclose(found[["score", "own run"]], 0)


def test_runs_far_from_table_2_fit_nothing_and_tie():
    found = table_2_at_points(table(lambda _: dict.fromkeys(METRICS, 0.5)), PROTOCOLS)
    assert found.inside.eq(0).all()
    minority = TABLE_2[TABLE_2.metric == "accuracy_minority"].paper.astype(float) / 100
    assert np.allclose(found.score, (minority - 0.5).abs().mean())
    assert np.allclose(found.chance, (1 / 3) ** 3)


def test_numbers_may_fit_where_the_ranking_does_not():
    def classes(protocol):
        return printed(protocol) | {"accuracy_overall": 0.9}

    found = table_2_at_points(table(classes), PROTOCOLS)
    assert found.inside.eq(18).all()
    assert (found.chance < 0.5).all()


def test_a_point_without_a_method_is_named():
    lacking = table(printed).query("method != 'wlf_wbn'")
    with pytest.raises(ValueError, match=r"lacks methods at the point .*learning_rate"):
        table_2_at_points(lacking, PROTOCOLS)


FITS = pd.DataFrame(
    {
        "inference": ["pooled", "pooled", "batch_average"],
        "inside": [2, 1, 0],
        "score": [0.3, 0.1, 0.2],
        "own run": [0.01, 0.02, 0.03],
        "chance": [0.9, 0.4, 0.0],
    }
)


def test_the_best_combination_of_a_kind_is_told():
    found = score_fits(FITS, "inference")
    assert list(found) == ["mean", "best", "own run", "chance", "inside"]
    assert found.loc["pooled"].tolist() == pytest.approx([0.2, 0.1, 0.02, 0.4, 1])
    assert found.loc["batch_average"].tolist() == pytest.approx([0.2, 0.2, 0.03, 0.0, 0])
    pairs = score_fits(FITS.assign(output_norm=["on", "none", "on"]), ["inference", "output_norm"])
    assert pairs.loc[("pooled", "on"), "best"] == pytest.approx(0.3)
