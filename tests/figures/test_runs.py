"""What the figures of runs show is what they are given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color, to_rgb

from study.engine.protocol import METHODS
from study.figures.runs import (
    differences,
    heat_map,
    margin_histograms,
    single_runs,
    trajectories,
)
from study.figures.style import INK, MAJORITY, METHOD_COLORS, MINORITY
from study.stats.intervals import mean_interval, paired_difference
from study.stats.table_2 import TABLE_2


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
            "accuracy_minority": 0.5 + 0.1 * epoch + (0.01 + 0.01 * (m == "wlf_wbn")) * seed,
            "accuracy_overall": 0.8,
        }
        for e in ("i", "ii")
        for m in METHODS
        for seed in (0, 1)
        for epoch in (1, 2)
    )


def segments(axis):
    """Ends of the error bars of a panel, in the order in which they were drawn."""
    lines = [line.get_xydata() for line in axis.lines if line.get_marker() == "None"]
    return [line for line in lines if len(line) == 2 and not np.isnan(line).any()]


def test_trajectories_draw_percent_against_epochs_with_our_interval(table):
    figure = trajectories(table)
    assert [axis.get_title("left") for axis in figure.axes[:3]] == list(METHODS.values())
    axis = figure.axes[0]
    assert axis.get_ylabel() == "(i) %"
    for line, color in zip(axis.lines, (MAJORITY, MINORITY, INK), strict=False):
        assert same_color(line.get_color(), color)
    minority = axis.lines[1].get_xydata()
    assert minority == pytest.approx(np.array([[1, 60.5], [2, 70.5]]))
    band = axis.collections[1].get_paths()[0].vertices
    _, low, high, *_ = mean_interval([0.6, 0.61])
    at_1 = band[band[:, 0] == 1, 1]
    assert [at_1.min(), at_1.max()] == pytest.approx([100 * low, 100 * high])


def test_single_runs_draw_every_run_and_the_printed_number(table):
    figure = single_runs(table[table.epoch == 2], "accuracy_minority")
    first = figure.axes[0]
    assert first.get_title("left") == "(i)"
    drawn = [np.sort(dots.get_offsets()[:, 0]).tolist() for dots in first.collections]
    assert drawn == [pytest.approx(v) for v in ([70, 71], [70, 71], [70, 72])]
    for dots, color in zip(first.collections, METHOD_COLORS.values(), strict=True):
        assert same_color(dots.get_facecolor()[0, :3], color)
    printed = TABLE_2.query("experiment == 'i' and metric == 'accuracy_minority'").paper
    (crosses,) = first.lines
    assert crosses.get_xdata().tolist() == printed.astype(float).tolist()
    assert [label.get_text() for label in first.get_yticklabels()] == list(METHODS.values())


def test_differences_draw_means_and_intervals_in_points(table, points):
    evidence = pd.concat(
        paired_difference(table[table.epoch == 2], "wlf_wbn", baseline, "accuracy_minority")
        for baseline in ("lf_sbn", "wlf_sbn")
    )
    figure = differences({"first": evidence, "second": evidence}, "points")
    axis = figure.axes[1]
    assert axis.get_title("left") == "(ii)"
    assert [list(line.get_xdata()) for line in points(axis)] == [pytest.approx([0.5, 0.5])] * 2
    low, high = (100 * evidence[end].iloc[1] for end in ("low", "high"))
    bars = [bar[:, 0].tolist() for bar in segments(axis) if bar[0, 1] == bar[1, 1]]
    assert bars == [pytest.approx([low, high])] * 4
    legend = [text.get_text() for text in figure.legends[0].texts]
    assert legend == ["to Plain + BN", "to Weighted + BN"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["first", "second"]


def test_differences_need_no_second_baseline(table, points):
    one = paired_difference(table[table.epoch == 2], "wlf_wbn", "lf_sbn", "accuracy_minority")
    (line,) = points(differences({"a": one}, "").axes[0])
    assert list(line.get_ydata()) == [0]


def area(steps):
    """What is below a histogram, by the shoelace formula."""
    (path,) = steps.get_paths()
    x, y = path.vertices.T
    return abs(x @ np.roll(y, 1) - y @ np.roll(x, 1)) / 2


def test_margins_draw_every_image_of_both_classes():
    minority = np.array([True] * 3 + [False] * 7)
    values = {"one": np.linspace(-1, 1, 10), "two": np.linspace(-2, 2, 10)}
    figure = margin_histograms(values, minority)
    assert [axis.get_title("left") for axis in figure.axes] == ["one", "two"]
    low, high = np.quantile(np.concatenate(list(values.values())), [0.001, 0.999])
    width = (high - low) / 50
    for axis, numbers in zip(figure.axes, ([7, 3], [6, 2]), strict=True):  # the ends are cut
        drawn = {steps.get_facecolor()[0, :3].tobytes(): area(steps) for steps in axis.collections}
        expected = {np.array(to_rgb(c)).tobytes() for c in (MAJORITY, MINORITY)}
        assert drawn.keys() == expected
        assert sorted(drawn.values()) == pytest.approx(sorted(width * n for n in numbers))
        assert axis.lines[-1].get_xdata()[0] == 0


def test_heat_map_prints_points_and_marks_clear_changes():
    cells = pd.DataFrame(
        {"choice": r, "kind": g, "method": c, "mean": m, "low": m - 0.0005, "high": m + 0.0005}
        for r, g, c, m in [
            ("b", "A", "i", 0.1),
            ("b", "A", "ii", 0.004),
            ("a", "A", "i", -0.3),
            ("a", "A", "ii", 0.0004),
            ("b", "B", "i", -0.2),
        ]
    )
    left, right = heat_map(cells, "choice", "method", "kind", limit=0.3).axes
    assert [(t.get_text(), t.get_fontweight()) for t in left.texts] == [
        ("+10", "bold"),
        ("0", "normal"),  # clear, but nothing that the number shows
        ("\u221230", "bold"),
        ("0", "normal"),
    ]
    assert [t.get_text() for t in right.texts] == ["\u221220"]
    assert [t.get_text() for t in left.get_yticklabels()] == ["b", "a"]
    assert (left.get_title("left"), right.get_title("left")) == ("A", "B")
    assert left.xaxis.get_ticks_position() == "top"
