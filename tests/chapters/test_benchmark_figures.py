"""What the figures of the benchmarks draw."""

import pandas as pd
import pytest

from study.chapters.benchmarks.figures import LAYERS, LOOPS, ratio_dots, replica_times
from study.figures.style import MAJORITY, MINORITY

pytestmark = pytest.mark.usefixtures("house_style")


def test_a_dot_for_each_ratio_and_a_line_for_its_quartiles():
    rows = pd.DataFrame({
        "shape": ["2 x 3", "2 x 3", "4 x 5", "4 x 5"],
        "candidate": ["weights", "no weights"] * 2,
        "ratio": [1.5, 1.1, 2.0, 0.9],
        "low": [1.4, 1.0, 1.9, 0.8],
        "high": [1.6, 1.2, 2.1, 1.0],
    })  # fmt: skip
    (axis,) = ratio_dots(rows, {"weights": "with", "no weights": "without"}).axes
    dots = {line.get_label(): line for line in axis.lines if line.get_marker() != "None"}
    assert dots["with"].get_xdata().tolist() == [1.5, 2.0]
    assert dots["without"].get_xdata().tolist() == [1.1, 0.9]
    assert [round(place) for place in dots["with"].get_ydata()] == [0, 1]
    ends = [segment[:, 0].tolist() for segment in axis.collections[0].get_segments()]
    assert ends == [[1.4, 1.6], [1.9, 2.1]]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["2 × 3", "4 × 5"]
    assert axis.yaxis_inverted()
    assert axis.get_xscale() == "log"
    assert len(axis.get_xticks()) >= 3


def test_times_are_drawn_in_milliseconds():
    rows = pd.DataFrame({
        "candidate": ["floor", "engine"] * 2,
        "size": [1, 1, 16, 16],
        "microseconds_per_replica": [400.0, 900.0, 300.0, 450.0],
    })  # fmt: skip
    (axis,) = replica_times(rows).axes
    assert len({line.get_marker() for line in axis.lines}) == len(axis.lines)
    drawn = {line.get_label(): line.get_ydata().tolist() for line in axis.lines}
    assert list(axis.get_yticks()) == [0.5]
    assert drawn == {"engine": pytest.approx([0.9, 0.45]), "floor": pytest.approx([0.4, 0.3])}


def test_no_color_of_a_class_is_used():
    colors = {color for color, _ in (*LAYERS, *LOOPS)}
    assert not colors & {MAJORITY, MINORITY}
