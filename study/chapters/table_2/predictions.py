"""The predictions of chapter 8, about where Table 2 could come from.

Declared with their criteria before the runs of results/forensics and results/forensics_training.
"""

from __future__ import annotations

import pandas as pd

from study.chapters.predictions import Prediction
from study.chapters.table_2.hypotheses import DECLARED, HYPOTHESES, SIXTEEN, TEXT
from study.chapters.table_2.scoring import board, by_epoch, recovered

NEAREST = "hidden mean, hidden variance"  # at epoch 30 the best of what had been seen before 8.6
ALIKE = ("all four", "test batches of 100, in their order", "test batches of 50, in their order")


def scores() -> pd.DataFrame:
    """Scores of the sixteen choices of moments, and whether the output mean is the test set's."""
    names = [hypothesis.name for hypothesis in SIXTEEN]
    table = board().set_index("hypothesis").loc[names]
    mean = table.index.str.contains("output mean") | (table.index == "all four")
    return table.assign(output_mean=mean)


def _all_four_before_text(table: pd.DataFrame) -> bool:
    return bool(table.score["all four"] < table.score[TEXT])


def _output_mean_decides(table: pd.DataFrame) -> bool:
    means = table.groupby("output_mean").score.mean()
    return bool(means[True] < means[False])


def running_averages() -> pd.DataFrame:
    """The hypotheses whose statistics are of the training set, as libraries keep them."""
    table = board()
    kept = table.hypothesis.str.contains("running averages|moving average")
    return table[kept]


def confusions() -> pd.DataFrame:
    """Shares of `recovered` among three ways that are nearly the same, and on the diagonal."""
    table = recovered(HYPOTHESES)
    among = table.loc[list(ALIKE), list(ALIKE)]
    return among.assign(itself=[among.loc[name, name] for name in ALIKE])


def after_100_epochs() -> pd.DataFrame:
    """Scores of Table 2 after 100 epochs under the other ways to train, beside `NEAREST`."""
    others = [hypothesis for hypothesis in HYPOTHESES if hypothesis.training != "reference"]
    nearest = next(hypothesis for hypothesis in SIXTEEN if hypothesis.name == NEAREST)
    scores = {hypothesis.name: by_epoch(hypothesis).score[100] for hypothesis in others}
    table = pd.Series(scores, name="score").rename_axis("hypothesis").reset_index()
    return table.assign(nearest=by_epoch(nearest).score[30])


FORENSICS = (
    Prediction(
        "8.1 test set",
        "With all four moments from the test set Table 2 scores better than with the text's "
        "averages, on the same networks.",
        DECLARED,
        "score(all four) < score(text), over epochs 1, 3, 10 and 30",
        scores,
        _all_four_before_text,
    ),
    Prediction(
        "8.2 output mean",
        "Of the four moments the output layer's mean decides: the eight ways that take it from "
        "the test set score better in the mean than the other eight.",
        DECLARED,
        "mean score of eight < mean score of the other eight",
        scores,
        _output_mean_decides,
    ),
    Prediction(
        "8.3 none",
        "No hypothesis explains both the numbers and the ranking.",
        DECLARED,
        'no verdict is "both": p > 0.05 and a chance of the ranking above one half',
        board,
        lambda table: bool((table.verdict != "both").all()),
    ),
    Prediction(
        "8.4 running averages",
        "No way that keeps running averages of the training set makes the ranking likely.",
        DECLARED,
        "the chance of the ranking is below one half for moving averages and all frameworks'",
        running_averages,
        lambda table: bool((table.chance < 0.5).all()),
    ),
    Prediction(
        "8.5 alike",
        "The test set as one batch and its batches of 50 and 100 cannot be told apart: fewer than "
        "half of the tables from each of them are given to it.",
        DECLARED,
        "three shares on the diagonal of `recovered` below one half",
        confusions,
        lambda table: bool((table.itself < 0.5).all()),
    ),
    Prediction(
        "8.6 hundred epochs",
        "After 100 epochs no other way to train brings Table 2 as near as the hidden layer's "
        "moments did after 30.",
        "wbn/analysis/predictions_forensics.py, 2026-11-17, before epochs 31 to 100 of these runs",
        "30 scores at epoch 100 above that of the hidden layer's moments at epoch 30",
        after_100_epochs,
        lambda table: bool((table.score > table.nearest).all()),
    ),
)
