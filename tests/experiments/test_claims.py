"""Table 2 as printed, and verdicts on tables made to be clear cases."""

import itertools

import numpy as np
import pandas as pd
import pytest

from wbn.experiments.claims import C1, CLAIMS, METRICS, TABLE_2, beside_paper
from wbn.experiments.data import EXPERIMENTS
from wbn.experiments.protocol import METHODS, Protocol


def made_up(gain, n=12, experiments=EXPERIMENTS):
    """Runs in which WLF+WBN is `gain[experiment]` better than the others, on average."""
    noise = np.random.default_rng(0)
    rows = [
        {
            "protocol": Protocol.paper(e, m).hash,
            "experiment": e,
            "method": m,
            "inference": "batch_average",
            "evaluated_on": "test",
            "seed": seed,
            "epoch": epoch,
            **dict.fromkeys(METRICS, 0.8 + noise.normal(0, 0.01) + gain[e] * (m == "wlf_wbn")),
        }
        for e, m, seed, epoch in itertools.product(experiments, METHODS, range(n), (1, 20))
    ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gain", "outcome"),
    [
        ({"i": 0.05, "ii": 0.05, "iii": 0.05}, "replicated"),
        ({"i": 0.05, "ii": 0.05, "iii": -0.05}, "not replicated"),
        ({"i": 0.05, "ii": 0.0, "iii": 0.05}, "undecided"),
    ],
)
def test_c1(gain, outcome):
    verdict = C1.judge(made_up(gain))
    assert verdict.outcome == outcome
    assert len(verdict.evidence) == 6


def test_c1_needs_all_experiments():
    with pytest.raises(ValueError, match="missing: \\['iii'\\]"):
        C1.judge(made_up({"i": 0.1, "ii": 0.1}, experiments=("i", "ii")))


def test_claims_are_complete():
    assert all(c.words and c.criterion and c.origin for c in CLAIMS)
    assert len({c.name for c in CLAIMS}) == len(CLAIMS)


def test_table_2_has_every_cell_and_the_best_method_of_the_paper():
    assert len(TABLE_2) == 27
    overall = TABLE_2[TABLE_2.metric == "accuracy_overall"]
    best = overall.assign(value=overall.paper.astype(float)).sort_values("value")
    assert set(best.groupby("experiment").method.last()) == {"wlf_wbn"}


@pytest.mark.parametrize("method", METHODS)
def test_overall_cells_follow_from_the_class_cells_in_experiments_i_and_iii(method):
    sizes = {"i": (1135, 980), "iii": (982, 1028)}
    for experiment, (minority, majority) in sizes.items():
        cells = TABLE_2[(TABLE_2.experiment == experiment) & (TABLE_2.method == method)]
        low, high, overall = cells.paper.astype(float)
        assert (low * minority + high * majority) / (minority + majority) == pytest.approx(
            overall, abs=0.11
        )


def test_beside_paper_takes_the_last_epoch_in_percent():
    table = made_up({"i": 0.05, "ii": 0.0, "iii": 0.0})
    beside = beside_paper(table)
    assert len(beside) == 27
    cell = beside.iloc[6]
    assert tuple(cell[["experiment", "method", "metric"]]) == ("i", "wlf_wbn", METRICS[0])
    runs = table.query("experiment == 'i' and method == 'wlf_wbn' and epoch == 20")
    assert cell["mean"] == pytest.approx(100 * runs[METRICS[0]].mean())
    assert cell.low < cell["mean"] < cell.high
    assert cell.n == 12
