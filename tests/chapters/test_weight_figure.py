"""What the study's figures draw."""

import pandas as pd
import pytest

from study.chapters.why.weight_figure import either_weight
from study.stats.intervals import mean_interval

pytestmark = pytest.mark.usefixtures("house_style")


def test_both_weights_are_drawn_as_shares_taken_for_the_minority(points):
    rows = pd.DataFrame({
        "inference": ["minority_weight"] * 2 + ["majority_weight"] * 2 + ["batch_average"],
        "accuracy_minority": [0.9, 1.0, 0.1, 0.3, 0.6],
        "accuracy_majority": [0.6, 0.8, 1.0, 0.9, 0.6],
    })  # fmt: skip
    left, right = either_weight({"reference": rows, "larger": rows}).axes
    for axis, expected in ((left, [95, 20]), (right, [30, 5])):
        for line, share in zip(points(axis), expected, strict=True):
            assert line.get_xdata() == pytest.approx([share, share])
            assert list(line.get_ydata()) == [0, 1]
        (between,) = axis.collections
        ends = [segment[:, 0].tolist() for segment in between.get_segments()]
        assert ends == [pytest.approx(sorted(expected))] * 2
    _, low, high, *_ = mean_interval([0.9, 1.0])
    assert left.lines[1].get_xdata() == pytest.approx([100 * low, 100 * high])
    assert [t.get_text() for t in left.get_yticklabels()] == ["reference", "larger"]
