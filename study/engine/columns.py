"""The columns of a table of results, named once: what tells rows apart, and what they measure."""

from __future__ import annotations

import pandas as pd

# What tells one row from another, in the order of a stored file.
KEYS = ("protocol", "experiment", "method", "inference", "evaluated_on", "seed", "epoch")
# Runs that differ in none of these can be compared: only seed, method and protocol are left.
SETTING = ("experiment", "inference", "evaluated_on", "epoch")
# Fractions; accuracies of single classes and of groups of them are among the first.
METRICS = r"^(accuracy_|average_precision$|calibration_error$)"


def metrics(table: pd.DataFrame) -> list[str]:
    """Names of the columns that are metrics.

    Examples
    --------
    >>> metrics(pd.DataFrame(columns=["seed", "accuracy_overall", "train_loss"]))
    ['accuracy_overall']
    """
    return list(table.filter(regex=METRICS))
