"""What the figure of repairs shows is what it is given."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.repair.figures import leads_by_problem

pytestmark = pytest.mark.usefixtures("house_style")


def test_each_finalist_has_its_lead_and_interval_in_its_loss_and_row():
    leads = pd.DataFrame({
        "loss": ["a", "a", "a", "a", "b", "b"], "arm": ["x", "x", "y", "y", "z", "z"],
        "experiment": ["i", "lt50"] * 3, "mean": [0.01, -0.02, 0.0, 0.03, 0.04, 0.05],
    })  # fmt: skip
    leads = leads.assign(low=leads["mean"] - 0.01, high=leads["mean"] + 0.02)
    figure = leads_by_problem(leads, {"i": "(i)", "lt50": "ratio 50"})
    first, second = figure.axes
    assert [axis.get_title("left") for axis in figure.axes] == ["a", "b"]
    marks = {container.get_label(): container for container in first.containers}
    assert list(marks) == ["x", "y"]
    assert list(marks["x"].lines[0].get_xdata()) == pytest.approx([1, -2])
    (bars,) = marks["y"].lines[2]
    assert bars.get_segments()[1][:, 0].tolist() == pytest.approx([2, 5])
    upper, lower = (np.array(marks[arm].lines[0].get_ydata(), float) for arm in "xy")
    assert (np.round(upper) == [0, 1]).all()
    assert (upper < lower).all()
    assert [label.get_text() for label in first.get_yticklabels()] == ["(i)", "ratio 50"]
    assert len(second.containers) == 1
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["x", "y", "z"]
    drawn = [c.lines[0].get_marker() for axis in figure.axes for c in axis.containers]
    assert len(set(drawn)) == 3
