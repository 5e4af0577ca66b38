"""The paper's Table 2 as printed: beside our runs, against single runs, and its arithmetic."""

from __future__ import annotations

import pandas as pd

from wbn.experiments.results import LEVEL, prediction_interval, summarize

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
    """Table 2 as printed beside our means at the last epoch, in percent.

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
    last = table[table.epoch == table.epoch.max()]
    ours = summarize(last)
    percent = ["mean", "low", "high"]
    ours[percent] = 100 * ours[percent]
    keys = ["experiment", "method", "metric"]
    return TABLE_2.merge(ours[[*keys, *percent, "n"]], on=keys)


def half_width(printed: str) -> float:
    """Half a unit of the last printed digit: what "67.4" may have been rounded from.

    Examples
    --------
    >>> half_width("67.4"), half_width("100")
    (0.05, 0.5)
    """
    return 0.5 * 10.0 ** -len(printed.partition(".")[2])


def among_single_runs(table: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """Each accuracy of Table 2 against what most single runs give, in percent.

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
        mine = (table.experiment == cell["experiment"]) & (table.method == cell["method"])
        runs = 100 * table.loc[mine, cell["metric"]]
        low, high = prediction_interval(runs, level)
        paper, half = float(cell["paper"]), half_width(cell["paper"])
        inside = low <= paper + half and paper - half <= high
        rows.append(cell | {"low": low, "high": high, "n": len(runs), "inside": inside})
    return pd.DataFrame(rows)


def audit(test_sizes: dict[str, tuple[int, int]]) -> pd.DataFrame:
    """Overall accuracies that follow from the printed class accuracies, beside the printed ones.

    Parameters
    ----------
    test_sizes
        Minority and majority test images of each experiment.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment and method: experiment, method, paper (as printed), the
        lowest and highest overall accuracy that printed class accuracies may stand for, and
        `consistent`, whether a number in between is printed as the paper's.
    """
    rows = []
    for (experiment, method), cells in TABLE_2.groupby(["experiment", "method"], sort=False):
        *classes, overall = cells.paper
        sizes = test_sizes[experiment]
        low, high = (
            sum(
                n * min(float(printed) + side * half_width(printed), 100.0)
                for n, printed in zip(sizes, classes, strict=True)
            )
            / sum(sizes)
            for side in (-1, 1)
        )
        value, half = float(overall), half_width(overall)
        consistent = low <= value + half and value - half <= high
        key = {"experiment": experiment, "method": method, "paper": overall}
        rows.append(key | {"low": low, "high": high, "consistent": consistent})
    return pd.DataFrame(rows)
