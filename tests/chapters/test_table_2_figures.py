"""What the figure of hypotheses shows is what it is given."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.table_2.figures import SHAPES, scores_and_chances

pytestmark = pytest.mark.usefixtures("house_style")


def test_a_mark_for_each_hypothesis_at_its_score_and_chance():
    board = pd.DataFrame({
        "group": list(SHAPES), "hypothesis": [f"h{n}" for n in range(len(SHAPES))],
        "score": np.linspace(0.05, 0.3, len(SHAPES)), "chance": np.linspace(0, 1, len(SHAPES)),
    })  # fmt: skip
    (axes,) = scores_and_chances(board, {"h0": "the text", "h2": "another"}).axes
    drawn = axes.collections[0].get_offsets()
    np.testing.assert_allclose(drawn, 100 * board[["score", "chance"]])
    assert [text.get_text() for text in axes.texts] == ["the text", "another"]
    assert [text.get_ha() for text in axes.texts] == ["right", "left"]  # the best score is leftmost
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(SHAPES)
