"""Numbers of where the paper's Table 2 could come from."""

from __future__ import annotations

from functools import cache

import pandas as pd

from wbn.analysis.fits import table_2_at_points
from wbn.analysis.forensics import board, recovered
from wbn.analysis.hypotheses import HYPOTHESES, TEXT
from wbn.analysis.ledger.choices import protocols
from wbn.analysis.ledger.statement import Statement, rows
from wbn.analysis.scores import PRINTED
from wbn.analysis.study import design_points
from wbn.analysis.text import count, percent


@cache
def fits() -> pd.DataFrame:
    """Each point of the study, kind of inference and epoch, judged against Table 2."""
    return table_2_at_points(rows("study"), protocols())


def screened() -> list[object]:
    """Combinations, points, epochs, kinds of statistics, and runs of each."""
    epochs, kinds, seeds = (
        count(rows("study")[column].nunique()) for column in ("epoch", "inference", "seed")
    )
    return [len(fits()), len(design_points(protocols())), epochs, kinds, seeds]


def best_scores() -> list[str]:
    """The best with the test set's statistics, with any other, and a run of the first's own."""
    test = fits().inference == "evaluation_set"
    best = fits().loc[fits().score[test].idxmin()]
    return list(map(percent, (best["score"], fits().score[~test].min(), best["own run"])))


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


SCREEN = "results/study, wbn.analysis.fits.table_2_at_points"

BOARD = "results/forensics and forensics_training, wbn.analysis.forensics"

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
        "{} combinations: {} points of the designed study, {} epochs, {} kinds of inference "
        "statistics, {} runs each",
        "plan and rows of results/study",
        screened,
    ),
    Statement("the {} minority accuracies", "the paper's Table 2", lambda: [count(len(PRINTED))]),
    Statement(
        "{} points at best, against {} for any statistics of the training set and {} for a run of "
        "its own",
        f"{SCREEN}: smallest scores",
        best_scores,
    ),
)
