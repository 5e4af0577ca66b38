"""What the study's figures draw."""

import pandas as pd
import pytest

from wbn.analysis.intervals import mean_interval
from wbn.figures.study import chances, either_weight, scores


@pytest.mark.parametrize(("draw", "column"), [(chances, "chance"), (scores, "score")])
def test_every_point_is_drawn_in_the_row_of_its_kind(draw, column):
    fits = pd.DataFrame({
        "inference": ["pooled", "pooled", "evaluation_set"],
        "output_norm": ["on", "none", "none"],
        column: [0.1, 0.2, 0.9],
    })  # fmt: skip
    (axis,) = draw(fits).axes
    dots = sorted(place.tolist() for c in axis.collections for place in c.get_offsets())
    assert dots == [
        [pytest.approx(10), pytest.approx(-0.2, abs=0.19)],  # with output BN above
        [pytest.approx(20), pytest.approx(0.2, abs=0.19)],
        [pytest.approx(90), pytest.approx(1.2, abs=0.19)],
    ]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["pooled", "test set"]
    assert axis.yaxis_inverted()


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
