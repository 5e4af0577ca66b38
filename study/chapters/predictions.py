"""Predictions: words that were declared before the runs, and criteria that judge them.

A prediction is strict: one that has several parts has held only if all of them did. The words
were declared before the runs that judge them. The criteria say the same as conditions on numbers;
those of chapter 10 are in its plans, those of chapter 3 were put in this form afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import pandas as pd

from study.chapters.claims import Verdict


@dataclass(frozen=True)
class Prediction:
    """A statement about runs that had not been made.

    Parameters
    ----------
    name
        The chapter that declares it and its number there, and a word.
    words
        As declared.
    declared
        Where, and when.
    criterion
        In words, what `judge` computes.
    evidence
        Reads the numbers that decide from the stored runs, or runs what is missing.
    judge
        From the evidence to whether the prediction held.
    """

    name: str
    words: str
    declared: str
    criterion: str
    evidence: Callable[[], pd.DataFrame]
    judge: Callable[[pd.DataFrame], bool]

    def verdict(self) -> Verdict:
        """The outcome, "held" or "failed", with the numbers behind it."""
        evidence = self.evidence()
        return Verdict("held" if self.judge(evidence) else "failed", evidence)


def evidence_of(predictions: Iterable[Prediction], number: str) -> pd.DataFrame:
    """The numbers that decide the prediction with this number, such as "7.3"."""
    (prediction,) = (p for p in predictions if p.name.split()[0] == number)
    return prediction.evidence()


def scoreboard(predictions: Iterable[Prediction]) -> pd.DataFrame:
    """A row for each prediction: its name, words, criterion, declaration and outcome.

    Examples
    --------
    >>> sure = Prediction("0.1 one", "One is one.", "here", "1 = 1", pd.DataFrame, lambda _: True)
    >>> scoreboard([sure])[["prediction", "outcome"]].values.tolist()
    [['0.1 one', 'held']]
    """
    return pd.DataFrame(
        {
            "prediction": prediction.name,
            "words": prediction.words,
            "criterion": prediction.criterion,
            "declared": prediction.declared,
            "outcome": prediction.verdict().outcome,
        }
        for prediction in predictions
    )
