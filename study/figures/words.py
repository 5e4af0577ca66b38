"""One vocabulary: what a table calls methods, experiments, choices, statistics and metrics."""

from __future__ import annotations

import re

from study.engine import EXPERIMENTS, LONG_TAILED, METHODS
from study.figures.text import MINUS

STATISTICS = {
    "batch_average": "averages over mini-batches",
    "last_epoch": "averages over the last epoch",
    "moving_average": "moving average",
    "pooled": "pooled statistics",
    "evaluation_set": "the test set's own statistics",
    "pooled_hidden": "hidden layer pooled, output layer averaged",
    "pooled_output": "output layer pooled behind averages",
    "averaged_output": "output layer averaged behind a pooled hidden layer",
    "running_sums": "running sums",
}
CHOICES = {
    "batch": "the batch",
    "dataset": "the data set",
    "reshuffle": "reshuffled",
    "replacement": "drawn with replacement",
    "loss_normalizer": "loss normalized by",
    "batch_order": "order of batches",
    "output_norm": "output BN",
    "hidden_norm": "hidden BN",
    "beta": "β",
    "inference": "inference statistics",
    "c - b": f"{METHODS['wlf_wbn']} minus {METHODS['wlf_sbn']}",
    "fraction": "screening",
    "reference": "reference reading",
    "loss: data set": "the data set's loss normalizer",
    "and no output BN": "the data set's loss normalizer, no output BN",
    "… loss: data set": "… the data set's loss normalizer",
    "order: fixed": "fixed order of batches",
    "order: replaced": "batches drawn with replacement",
    "last batch: drop": "last batch dropped",
    "corr.: none": "correction `none`",
    "corr.: reliability": "correction `reliability`",
    "minority_weight": "the minority's weight",
    "majority_weight": "the majority's weight",
}
METRICS = {
    "accuracy_best_threshold": "balanced accuracy, best threshold",
    "accuracy_largest": "accuracy of the largest classes",
    "accuracy_middle": "accuracy of the middle classes",
    "accuracy_smallest": "accuracy of the smallest classes",
    "own run": "a run of its own",
    "low": "lower end",
    "high": "upper end",
}
WORDS = {
    **METHODS,
    **{name: f"({name})" for name in EXPERIMENTS},
    **{name: f"ratio {ratio}" for name, ratio in LONG_TAILED.items()},
    **STATISTICS,
    **CHOICES,
    **METRICS,
    **{f"accuracy_{kind}": f"{kind} accuracy" for kind in ("overall", "balanced")},
    **{f"accuracy_{kind}": f"{kind} accuracy" for kind in ("minority", "majority")},
}
IDENTIFIER = re.compile(r"[a-z0-9]+(_[a-z0-9]+)+")


def words(text: str) -> str:
    """What a reader calls the thing that has this name in code; other text as it is.

    A name that the vocabulary lacks gets spaces for underscores. Minus signs of numbers are true
    ones, and a percent sign stays with its number.

    Examples
    --------
    >>> words("batch_average"), words("iii"), words("train_loss"), words("mean of 40 seeds")
    ('averages over mini-batches', '(iii)', 'train loss', 'mean of 40 seeds')
    >>> words("-0.5 of 3 %") == "\u22120.5 of 3\u00a0%"
    True
    """
    if text in WORDS:
        return WORDS[text]
    if IDENTIFIER.fullmatch(text):
        return text.replace("_", " ")
    return re.sub(r"(?<!\w)-(?=\.?\d)", MINUS, text).replace(" %", "\u00a0%")
