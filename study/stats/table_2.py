"""The paper's Table 2 as printed: beside our runs, against single runs, and its arithmetic."""

from __future__ import annotations

import numpy as np
import pandas as pd

from study.engine.data import load_split
from study.stats.intervals import LEVEL, intervals, prediction_interval

METRICS = ("accuracy_minority", "accuracy_majority", "accuracy_overall")

# Percent as printed, in the order of METRICS; the number of digits is the paper's.
_PRINTED = {
    "i": {
        "lf_sbn": ("67.4", "100", "82.5"),
        "wlf_sbn": ("63.3", "100", "80.28"),
        "wlf_wbn": ("87.5", "99.8", "93.2"),
    },
    "ii": {
        "lf_sbn": ("71", "100", "84.4"),
        "wlf_sbn": ("75", "100", "87.9"),
        "wlf_wbn": ("83", "100", "92.7"),
    },
    "iii": {
        "lf_sbn": ("34.8", "100", "68.2"),
        "wlf_sbn": ("28.1", "100", "64.9"),
        "wlf_wbn": ("49.3", "99.4", "74.9"),
    },
}
TABLE_2 = pd.DataFrame(
    [
        (experiment, method, metric, printed)
        for experiment, rows in _PRINTED.items()
        for method, cells in rows.items()
        for metric, printed in zip(METRICS, cells, strict=True)
    ],
    columns=["experiment", "method", "metric", "paper"],
)


def beside_paper(table: pd.DataFrame) -> pd.DataFrame:
    """Table 2 as printed beside our means at the last epoch.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep``, with one protocol for each experiment and method.

    Returns
    -------
    pandas.DataFrame
        A row for each cell: experiment, method, metric, paper (as printed), mean, low, high
        (95 % interval over seeds) and n.
    """
    last, keys = table[table.epoch == table.epoch.max()], ["experiment", "method"]
    ours = pd.concat(intervals(last, keys, metric).assign(metric=metric) for metric in METRICS)
    return TABLE_2.merge(ours.drop(columns="sd"), on=[*keys, "metric"])


def printed_range(printed: str) -> tuple[float, float]:
    """Ends of what a printed percentage may have been rounded from, as fractions.

    Examples
    --------
    >>> [round(end, 4) for end in printed_range("67.4")], printed_range("100")
    ([0.6735, 0.6745], (0.995, 1.005))
    """
    half = 0.5 * 10.0 ** -len(printed.partition(".")[2])
    return (float(printed) - half) / 100, (float(printed) + half) / 100


def among_single_runs(table: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Each accuracy of Table 2 against what most single runs give.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep`` at one epoch, with one protocol for each experiment and
        method, and seeds enough for the level: 39 for 95 %.
    level
        Of :func:`prediction_interval`.

    Returns
    -------
    pandas.DataFrame
        A row for each of the 27 cells: experiment, method, metric, paper (as
        printed), low and high of :func:`prediction_interval`, n, and `inside`, whether a
        number in between is printed as the paper's.
    """
    rows = []
    for cell in TABLE_2.to_dict("records"):
        of_cell = (table.experiment == cell["experiment"]) & (table.method == cell["method"])
        runs = table.loc[of_cell, cell["metric"]]
        low, high = prediction_interval(runs, level)
        lowest, highest = printed_range(cell["paper"])
        inside = low <= highest and lowest <= high
        rows.append(cell | {"low": low, "high": high, "n": len(runs), "inside": inside})
    return pd.DataFrame(rows)


def fitting(table: pd.DataFrame) -> pd.DataFrame:
    """How many of a method's six class accuracies in Table 2 fit among single runs.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep``; those of each kind of inference and epoch are given to
        :func:`among_single_runs`.

    Returns
    -------
    pandas.DataFrame
        A row for each kind of inference and epoch, a column for each method.
    """
    counts = {}
    for setting, runs in table.groupby(["inference", "epoch"]):
        cells = among_single_runs(runs)
        classes = cells[cells.metric != "accuracy_overall"]
        counts[setting] = classes.groupby("method").inside.sum()
    return pd.DataFrame(counts).T.rename_axis(["inference", "epoch"])


def audit() -> pd.DataFrame:
    """Overall accuracies that follow from the printed class accuracies, beside the printed ones.

    An overall accuracy is the mean of two class accuracies, weighted with the sizes of the test
    classes.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment and method: experiment, method, paper (as printed), the
        lowest and highest overall accuracy that printed class accuracies may stand for, and
        `consistent`, whether a number in between is printed as the paper's.
    """
    rows = []
    for experiment, printed in _PRINTED.items():
        split = load_split(experiment, seed=0)
        share = (split.test_labels == split.minority).double().mean().item()
        for method, (*classes, overall) in printed.items():
            ends = np.minimum([printed_range(text) for text in classes], 1.0)
            low, high = [share, 1 - share] @ ends
            lowest, highest = printed_range(overall)
            key = {"experiment": experiment, "method": method, "paper": overall}
            consistent = low <= highest and lowest <= high
            rows.append(key | {"low": low, "high": high, "consistent": consistent})
    return pd.DataFrame(rows)
