"""Which choices validation inside the training sets makes."""

from __future__ import annotations

import pandas as pd

CHOICES = ("loss_normalizer", "hidden_norm", "output_norm", "batch_order", "learning_rate")
CANDIDATE = ["method", *CHOICES, "inference", "epoch"]


def ranked(folds: pd.DataFrame, metric: str) -> pd.Series:
    r"""Mean :math:`\frac{1}{n} \sum x` of each candidate over experiments, folds and seeds.

    Parameters
    ----------
    folds
        Rows of ``sweep``, evaluated on validation folds, with the columns `CHOICES`: every
        candidate with as many of them.
    metric
        A column.

    Returns
    -------
    pandas.Series
        The means, best first; the index has the levels `CANDIDATE`.

    Examples
    --------
    >>> folds = pd.DataFrame({"epoch": [5, 5, 10, 10], "accuracy_balanced": [0.7, 0.8, 0.9, 0.8]})
    >>> folds[["method", *CHOICES]] = ["lf_sbn", "batch", "standard", "standard", "fixed", 1e-3]
    >>> ranked(folds.assign(inference="pooled"), "accuracy_balanced").droplevel(CANDIDATE[:-1])
    epoch
    10    0.85
    5     0.75
    Name: accuracy_balanced, dtype: float64
    """
    groups = folds.groupby(CANDIDATE)[metric]
    sizes = groups.size()
    if sizes.nunique() > 1:
        raise ValueError(
            f"candidates have {sizes.min()} to {sizes.max()} runs: give each the same experiments, "
            f"folds and seeds, to begin with {dict(zip(CANDIDATE, sizes.idxmin(), strict=True))}"
        )
    return groups.mean().sort_values(ascending=False, kind="stable")
