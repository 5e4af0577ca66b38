"""Table 2 as printed, beside runs, against single runs, and its arithmetic."""

import itertools

import numpy as np
import pandas as pd
import pytest

from wbn.analysis.table_2 import METRICS, TABLE_2, among_single_runs, audit, beside_paper
from wbn.experiments.data import EXPERIMENTS
from wbn.experiments.protocol import METHODS

SIZES = {"i": (1135, 980), "ii": (1135, 974), "iii": (982, 1028)}


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
    table = audit(SIZES)
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
