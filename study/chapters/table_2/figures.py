"""Figures of where Table 2 could come from."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd
import seaborn as sns
from matplotlib.figure import Figure

from study.figures.style import INK, panels

SHAPES = {"text": "*", "moments of the test set": "o", "training set": "s", "test batches": "D",
          "training": "^", "framework": "P"}  # fmt: skip


def scores_and_chances(board: pd.DataFrame, named: Mapping[str, str]) -> Figure:
    """A mark for each hypothesis: the score of Table 2, and the chance of its ranking.

    Parameters
    ----------
    board
        Of `study.chapters.table_2.scoring.board`.
    named
        Hypotheses to be named in the figure, and what to call them there.
    """
    figure, (axes,) = panels(3.6)
    rows = board.assign(score=100 * board.score, chance=100 * board.chance)
    sns.scatterplot(
        rows, x="score", y="chance", style="group", markers=SHAPES, color=INK, s=38, alpha=0.75,
        linewidth=0, ax=axes,
    )  # fmt: skip
    for hypothesis, label in named.items():
        at = rows[rows.hypothesis == hypothesis].iloc[0]
        aside = {"xytext": (7, -10)}
        if at.score == rows.score.min():  # nothing stands to its left
            aside = {"xytext": (-7, 0), "ha": "right", "va": "center"}
        axes.annotate(label, (at.score, at.chance), textcoords="offset points", fontsize=8, **aside)
    axes.set(
        xlabel="score of nine minority accuracies (points, less is better)",
        ylabel="chance of the ranking (%)", xlim=(0, None), ylim=(-6, 106),
    )  # fmt: skip
    sns.move_legend(axes, "lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, title=None)
    return figure
