"""What the study's figures draw."""

import pandas as pd
import pytest

from wbn.figures.study import chances, either_weight

pytestmark = pytest.mark.usefixtures("no_figures_left")


def test_chances_draw_every_point_in_the_row_of_its_kind():
    fits = pd.DataFrame({
        "inference": ["pooled", "pooled", "evaluation_set"],
        "output_norm": ["on", "none", "none"],
        "chance": [0.1, 0.2, 0.9],
    })  # fmt: skip
    (axis,) = chances(fits).axes
    on, none = ([offset.tolist() for offset in dots.get_offsets()] for dots in axis.collections)
    assert on == [[pytest.approx(10), pytest.approx(0, abs=0.3)]]
    assert none == [
        [pytest.approx(20), pytest.approx(0, abs=0.3)],
        [pytest.approx(90), pytest.approx(1, abs=0.3)],
    ]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["pooled", "test set"]


def test_both_weights_are_drawn_as_shares_taken_for_the_minority():
    rows = pd.DataFrame({
        "inference": ["minority_weight"] * 2 + ["majority_weight"] * 2,
        "accuracy_minority": [0.9, 1.0, 0.1, 0.3],
        "accuracy_majority": [0.6, 0.8, 1.0, 0.9],
    })  # fmt: skip
    left, right = either_weight({"reference": rows, "larger": rows}).axes
    for axis, expected in ((left, [95, 20]), (right, [30, 5])):
        drawn = [bar[0].get_xydata()[0].tolist() for bar in axis.containers]
        assert drawn == [[pytest.approx(share), line] for line in (0, 1) for share in expected]
    assert [t.get_text() for t in left.get_yticklabels()] == ["reference", "larger"]
