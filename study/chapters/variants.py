"""Variants of the two weighted methods: stored runs that differ in one choice, and their pairing.

The runs are those of results/cause and results/cause_ten. A variant is the reference reading with
some changes. Chapters compare variants seed by seed.
"""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from study.engine.protocol import EPOCH
from study.stats.intervals import intervals
from study.stores.plan import load_or_run

TWO, TEN = "cause", "cause_ten"  # the stores: two classes, and ten
REFERENCE = {
    "loss_normalizer": "batch", "learning_rate": 1e-3, "batch_size": 100, "epochs": EPOCH,
    "statistics": "batch", "output_shift_start": 0.0, "output_shift_rate": 1.0,
}  # fmt: skip


def variant(method: str, store: str = TWO, **changes: object) -> pd.DataFrame:
    """Rows of one variant: a method with `changes` to the reference reading."""
    norm = "weighted" if method == "wlf_wbn" else "standard"
    norms = {"hidden_norm": norm, "output_norm": norm}
    return load_or_run(store, **{"method": method, **REFERENCE, **norms, **changes})


def variants(method: str, changes: dict[str, dict], **only: object) -> pd.DataFrame:
    """Rows of several variants, named by a column `arm`; `only` selects rows of each."""
    rows = {label: variant(method, **own, **only) for label, own in changes.items()}
    return pd.concat(rows, names=["arm"]).reset_index("arm")


def paired(
    combine: Sequence[tuple[float, pd.DataFrame]], metric: str = "accuracy_minority"
) -> pd.DataFrame:
    """Mean over seeds of a weighted sum of variants, with its 95 % interval.

    Parameters
    ----------
    combine
        Factors and rows of variants. Only seeds, experiments, epochs and kinds of statistics that
        all of them have are used.
    metric
        The column.

    Returns
    -------
    pandas.DataFrame
        Columns experiment, inference, epoch, mean, low, high, n and sd.

    Examples
    --------
    >>> keys = {"experiment": "i", "inference": "pooled", "epoch": 20}
    >>> a, b = (pd.DataFrame({"seed": [1, 2], **keys, "x": x}) for x in ([0.5, 0.7], [0.1, 0.1]))
    >>> paired([(1, a), (-1, b)], "x")["mean"].round(3).tolist()
    [0.5]
    """
    keys = ["experiment", "inference", "epoch", "seed"]
    columns = [factor * rows.set_index(keys)[metric] for factor, rows in combine]
    total = pd.concat(columns, axis=1, join="inner").sum(axis=1).rename(metric).reset_index()
    size = sum(abs(factor) for factor, _ in combine)
    return intervals(total, keys[:3], metric, (-size, size))
