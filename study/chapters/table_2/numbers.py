"""Numbers of where the paper's Table 2 could come from."""

from __future__ import annotations

from functools import cache

import pandas as pd

from study.chapters.statement import Statement
from study.chapters.table_2.hypotheses import HYPOTHESES, TEXT
from study.chapters.table_2.scoring import board, by_epoch, recovered
from study.figures.text import count, percent
from study.stats.scores import PRINTED


@cache
def scored() -> pd.DataFrame:
    """The board of hypotheses, by name."""
    return board().set_index("hypothesis")


def scores_of_moments() -> list[str]:
    """With the hidden layer's moments of the test set, with all four, and as the text says."""
    names = ["hidden mean, hidden variance", "all four", TEXT]
    return [percent(scored().score[name]) for name in names]


def explaining() -> list[object]:
    """How many hypotheses explain numbers and ranking, of all."""
    return [count((scored().verdict == "both").sum()).capitalize(), len(scored())]


def given_back() -> list[str]:
    """Share of own tables that are given to the hypothesis that made them."""
    shares = recovered()
    return [percent(sum(shares.iloc[i, i] for i in range(len(shares))) / len(shares), 0)]


def medians_after(epoch: int) -> list[object]:
    """The epoch, and median scores of the hypotheses with test images and without."""
    scores = pd.Series([by_epoch(hypothesis).score[epoch] for hypothesis in HYPOTHESES])
    medians = scores.groupby([hypothesis.by_test_images for hypothesis in HYPOTHESES]).median()
    return [epoch, percent(medians[True]), percent(medians[False])]


BOARD = "results/forensics and forensics_training, study.chapters.table_2.scoring"

ORIGIN = (
    Statement("We declare {} hypotheses", "HYPOTHESES", lambda: [len(HYPOTHESES)]),
    Statement(
        "{} points with the hidden layer's moments from the test set and {} with all four, against "
        "{} as the text says",
        BOARD,
        scores_of_moments,
    ),
    Statement("{} of {} hypotheses explain both", BOARD, explaining),
    Statement("{} % of the tables that we make ourselves", BOARD, given_back),
    Statement(
        "After {} epochs the median score is {} points with test images and {} without",
        BOARD,
        lambda: medians_after(100),
    ),
    Statement("the {} minority accuracies", "the paper's Table 2", lambda: [count(len(PRINTED))]),
)
