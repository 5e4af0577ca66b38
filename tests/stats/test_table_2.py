"""Table 2 as printed, beside runs, against single runs, and its arithmetic."""

import itertools

import numpy as np
import pandas as pd
import pytest

from study.chapters.three_experiments.tables import cell_by_cell
from study.engine.data import EXPERIMENTS
from study.engine.protocol import METHODS
from study.stats.table_2 import (
    METRICS,
    TABLE_2,
    among_single_runs,
    audit,
    beside_paper,
    fitting,
)


def runs(n=40, level=0.8):
    noise = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "protocol": e + m,
            "experiment": e,
            "method": m,
            "inference": "batch_average",
            "evaluated_on": "test",
            "seed": seed,
            "epoch": epoch,
        }
        | dict.fromkeys(METRICS, level + noise.uniform(-0.05, 0.05))
        for e, m, seed, epoch in itertools.product(EXPERIMENTS, METHODS, range(n), (1, 20))
    )


def test_table_2_has_every_cell_and_the_best_method_of_the_paper():
    assert len(TABLE_2) == 27
    overall = TABLE_2[TABLE_2.metric == "accuracy_overall"]
    best = overall.assign(value=overall.paper.astype(float)).sort_values("value")
    assert set(best.groupby("experiment").method.last()) == {"wlf_wbn"}


def test_the_arithmetic_fails_for_two_methods_of_experiment_ii():
    table = audit()
    wrong = table[~table.consistent]
    assert list(zip(wrong.experiment, wrong.method, strict=True)) == [
        ("ii", "wlf_sbn"),
        ("ii", "wlf_wbn"),
    ]
    cell = table.query("experiment == 'ii' and method == 'wlf_sbn'").iloc[0]
    assert cell.low == pytest.approx((0.745 * 1135 + 0.995 * 974) / 2109)
    assert cell.high == pytest.approx((0.755 * 1135 + 974) / 2109)


def test_beside_paper_takes_the_last_epoch():
    table = runs(12)
    beside = beside_paper(table)
    assert len(beside) == 27
    cell = beside.iloc[6]
    assert tuple(cell[["experiment", "method", "metric"]]) == ("i", "wlf_wbn", METRICS[0])
    last = table.query("experiment == 'i' and method == 'wlf_wbn' and epoch == 20")
    assert cell["mean"] == pytest.approx(last[METRICS[0]].mean())
    assert cell.low < cell["mean"] < cell.high
    assert cell.n == 12


def test_cells_inside_the_range_of_single_runs():
    table = among_single_runs(runs(level=0.73).query("epoch == 20"))
    assert len(table) == 27
    assert set(table.paper[table.inside]) == {"71", "75", "68.2", "74.9"}
    assert ((table.high - table.low) < 0.1).all()


def test_printed_precision_widens_a_cell():
    def inside(level):
        table = runs().query("epoch == 20").assign(accuracy_minority=level)
        return among_single_runs(table).query("paper in ('71', '67.4')").inside.tolist()

    assert inside(0.7149) == [False, True]
    assert inside(0.7151) == [False, False]
    assert inside(0.67449) == [True, False]
    assert inside(0.67451) == [False, False]


def test_cells_are_printed_beside_their_own_runs():
    every_cell = list(itertools.product(EXPERIMENTS, METHODS, METRICS))
    levels = {cell: 0.5 + 0.01 * n for n, cell in enumerate(every_cell)}
    table = runs().sample(frac=1, random_state=0)
    for (e, m, k), level in levels.items():
        mine = (table.experiment == e) & (table.method == m) & (table.epoch == 20)
        table.loc[mine, k] = np.where(table.seed[mine] < 20, level - 0.02, level + 0.02)
    cells = cell_by_cell(table)
    assert cells.index.tolist() == [(e, m) for e, m, _ in every_cell]
    for (_, _, k), level, row in zip(every_cell, levels.values(), cells.iloc, strict=True):
        low, high = 100 * level - 2, 100 * level + 2
        assert row["class"] == k.removeprefix("accuracy_")
        assert row["ours"].startswith(f"{100 * level:.1f} [")
        assert row["single runs"] == f"{low:.1f} to {high:.1f}"
        assert row["fits"] == ("yes" if low <= float(row["paper"]) <= high else "no")
    assert {"yes", "no"} == set(cells.fits)


def test_fitting_counts_class_accuracies_for_each_epoch_and_inference():
    near = runs().assign(**dict.fromkeys(METRICS, 0.0))
    whole = near.epoch == 20
    near.loc[whole, "accuracy_majority"] = 1.0
    own = near.assign(inference="evaluation_set", accuracy_majority=0.998)
    counts = fitting(pd.concat([near, own]))
    assert list(counts) == list(METHODS)
    assert counts.loc["batch_average", 1].tolist() == [0, 0, 0]
    assert counts.loc["batch_average", 20].tolist() == [3, 3, 1]
    assert counts.loc["evaluation_set", 1].tolist() == [3, 3, 2]
