"""Names of the columns in a table of results: those that identify a row, and the metrics."""

from __future__ import annotations

import pandas as pd

# These identify a row. A stored unit has them first, in this order.
KEYS = ("protocol", "experiment", "method", "inference", "evaluated_on", "seed", "epoch")
# Runs can be compared if they agree in these: they then differ in seed, method and protocol only.
SETTING = ("experiment", "inference", "evaluated_on", "epoch")
# All are fractions. The first pattern includes accuracies of single classes and of groups.
METRICS = r"^(accuracy_|average_precision$|calibration_error$)"


def metrics(table: pd.DataFrame) -> list[str]:
    """Names of the columns that are metrics.

    Examples
    --------
    >>> metrics(pd.DataFrame(columns=["seed", "accuracy_overall", "train_loss"]))
    ['accuracy_overall']
    """
    return list(table.filter(regex=METRICS))
