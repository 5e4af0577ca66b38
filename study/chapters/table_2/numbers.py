"""Numbers of where the paper's Table 2 could come from."""

from __future__ import annotations

import numpy as np
import pandas as pd

from study.chapters.numbers import states
from study.chapters.table_2.hypotheses import HYPOTHESES, TEXT
from study.chapters.table_2.scoring import board, by_epoch, recovered
from study.figures.text import count
from study.stats.scores import PRINTED


@states("the {} minority accuracies")
def minority_accuracies() -> str:
    """Minority accuracies in the paper's Table 2."""
    return count(len(PRINTED))


@states("We declare {0} hypotheses", "{1} of {0} hypotheses explain both")
def hypotheses() -> tuple:
    """Hypotheses, and those that explain numbers and ranking (`results/forensics`)."""
    return len(HYPOTHESES), count((board().verdict == "both").sum())


@states(
    "{} points with the hidden layer's moments from the test set and {} with all four, against {} "
    "as the text says"
)
def scores() -> tuple:
    """Scores of three hypotheses (`results/forensics`)."""
    names = ["hidden mean, hidden variance", "all four", TEXT]
    return tuple(board().set_index("hypothesis").score[names])


@states("{:.0f} % of the tables that we make ourselves")
def recognized() -> float:
    """Percent of the tables made from a hypothesis that are attributed to it."""
    return 100 * np.diag(recovered()).mean()


@states("After 100 epochs the median score is {} points with test images and {} without")
def medians_after_100_epochs() -> tuple:
    """Median score of hypotheses with and without test images, `results/forensics_training`."""
    scores = pd.Series([by_epoch(hypothesis).score[100] for hypothesis in HYPOTHESES])
    medians = scores.groupby([hypothesis.by_test_images for hypothesis in HYPOTHESES]).median()
    return medians[True], medians[False]
