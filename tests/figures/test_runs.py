"""What the figures of results show is what they are given."""

import numpy as np
import pandas as pd
import pytest

from wbn.analysis.intervals import paired_difference
from wbn.analysis.table_2 import TABLE_2
from wbn.experiments.protocol import METHODS
from wbn.figures.runs import (
    beta_curves,
    differences,
    heat_map,
    margins,
    single_runs,
    trajectories,
)

pytestmark = pytest.mark.usefixtures("no_figures_left")


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "protocol": e + m,
            "experiment": e,
            "method": m,
            "inference": "pooled",
            "evaluated_on": "test",
            "seed": seed,
            "epoch": epoch,
            "accuracy_majority": 0.99,
            "accuracy_minority": 0.5 + 0.1 * epoch + 0.01 * seed + 0.02 * (m == "wlf_wbn"),
            "accuracy_overall": 0.8,
        }
        for e in ("i", "ii")
        for m in METHODS
        for seed in (0, 1)
        for epoch in (1, 2)
    )


def test_trajectories_draw_percent_against_epochs(table):
    figure = trajectories(table)
    assert len(figure.axes) == 6
    minority = next(line for line in figure.axes[0].lines if line.get_label() == "minority")
    assert minority.get_xydata().tolist() == [[1, pytest.approx(60.5)], [2, pytest.approx(70.5)]]


def test_single_runs_draw_every_run_and_the_printed_number(table):
    figure = single_runs(table[table.epoch == 2], "accuracy_minority")
    first = figure.axes[0]
    drawn = [np.sort(dots.get_offsets()[:, 0]).tolist() for dots in first.collections]
    assert drawn == [pytest.approx(v) for v in ([70, 71], [70, 71], [72, 73])]
    printed = TABLE_2.query("experiment == 'i' and metric == 'accuracy_minority'").paper
    assert [line.get_xdata()[0] for line in first.lines] == printed.astype(float).tolist()


def test_differences_draw_means_and_intervals_in_points(table):
    evidence = paired_difference(table, "wlf_wbn", "lf_sbn", "accuracy_overall")
    evidence = evidence.query("epoch == 2 and metric == 'accuracy_minority'")
    figure = differences({"first": evidence, "second": evidence}, "points")
    axis = figure.axes[1]
    assert (axis.get_title() or axis.get_title(loc="left")) == "(ii)"
    bars = list(axis.containers)
    assert [bar[0].get_xdata()[0] for bar in bars] == pytest.approx([2.0, 2.0])
    low, high = bars[0][2][0].get_segments()[0][:, 0]
    assert (low, high) == pytest.approx(tuple(100 * evidence[["low", "high"]].iloc[1]))


def test_margins_draw_every_image_of_both_classes():
    minority = np.array([True] * 3 + [False] * 7)
    figure = margins({"one": np.linspace(-1, 1, 10), "two": np.linspace(-2, 2, 10)}, minority)
    heights = [[p.get_height() for p in axis.patches] for axis in figure.axes]
    assert [sum(h) for h in heights] == [10, 8]  # the ends of the wider one are cut


def test_heat_map_prints_points_and_marks_clear_changes():
    cells = pd.DataFrame(
        {"row": r, "group": g, "column": c, "mean": m, "low": m - 0.05, "high": m + 0.05}
        for r, g, c, m in [("a", "A", "i", 0.1), ("a", "B", "i", -0.3), ("b", "A", "i", -0.001)]
    )
    left, right = heat_map(cells, limit=30).axes
    assert [(t.get_text(), t.get_fontweight()) for t in left.texts] == [
        ("+10", "bold"),
        ("0", "normal"),
    ]
    assert right.texts[0].get_text() == "\u221230"
    assert right.texts[0].get_color() == "white"


def test_beta_curves_draw_percent_against_powers_of_ten_and_both_ends():
    means = pd.DataFrame(
        {"experiment": e, "reading": r, "method": m, "beta": b, "mean": v, "low": v - 0.1,
         "high": v + 0.05}
        for e in ("i", "iii")
        for r in ("reference", "other")
        for m in ("wlf_sbn", "wlf_wbn")
        for b, v in ((1.0, 0.5), (0.0, 0.8), (0.99999, 0.7 if m == "wlf_wbn" else 0.6))
    )  # fmt: skip
    figure = beta_curves(means, "balanced accuracy")
    assert len(figure.axes) == 4
    last = figure.axes[3]
    drawn = [np.round(line.get_xydata(), 6).tolist() for line in last.lines]
    assert drawn == [
        [[0, 80], [5, 60]], [[5, 60], [6, 50]],  # standard BN, up to the break and beyond
        [[0, 80], [5, 70]], [[5, 70], [6, 50]],
    ]  # fmt: skip
    band = last.collections[1].get_paths()[0].vertices
    assert [band[:, 1].min(), band[:, 1].max()] == pytest.approx([40, 85])
    ticks = [tick.get_text() for tick in figure.axes[2].get_xticklabels()]
    assert ticks == ["1", "", "$10^{-2}$", "", "$10^{-4}$", "", "0"]
    labels = figure.axes[0].get_legend_handles_labels()[1]
    assert labels == ["WLF+sBN", "WLF+WBN"]
