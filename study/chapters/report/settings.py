"""Every setting that was run with all three methods on the same 40 seeds, and C1's verdict."""

from __future__ import annotations

import pandas as pd

from study.chapters.claims import CLAIMS, table_2_by_reading
from study.stats.intervals import intervals
from study.stats.table_2 import TABLE_2
from study.stores.plan import load_or_run

STATED = "batch_average"
OTHERS = ("pooled", "evaluation_set")  # inference statistics, of the reference reading only
METRICS = ("accuracy_balanced", "accuracy_overall", "accuracy_minority")
SETTING = ["inference", "reading", "epoch"]


def explored(epochs: range = range(1, 21)) -> tuple[pd.DataFrame, pd.Series]:
    """Accuracies and verdicts of every setting: the family, and other statistics at inference.

    Parameters
    ----------
    epochs
        Which of the 20.

    Returns
    -------
    accuracies : pandas.DataFrame
        Rows by `SETTING`, experiment, method and metric (of `METRICS`), with mean, low, high, n.
    verdicts : pandas.Series
        The outcome of C1 by `SETTING`.
    """
    family, evaluation = load_or_run("family"), load_or_run("evaluation", inference=list(OTHERS))
    tables = {
        (STATED, reading, epoch): rows
        for epoch in epochs
        for reading, rows in table_2_by_reading(family, epoch).items()
    }
    for (inference, epoch), rows in evaluation.groupby(["inference", "epoch"]):
        if epoch in epochs:
            tables[inference, 1, epoch] = rows
    verdicts = pd.Series(
        {setting: CLAIMS[0].judge(rows).outcome for setting, rows in tables.items()}
    )
    runs = pd.concat(
        {setting: rows.drop(columns=["inference", "epoch"]) for setting, rows in tables.items()},
        names=SETTING,
    ).reset_index(SETTING)
    keys = [*SETTING, "experiment", "method"]
    accuracies = [intervals(runs, keys, metric).assign(metric=metric) for metric in METRICS]
    return pd.concat(accuracies).drop(columns="sd"), verdicts.rename_axis(SETTING)


def printed() -> pd.Series:
    """Table 2 in percent by metric, experiment and method; balanced accuracies follow from it."""
    table = TABLE_2.assign(paper=TABLE_2.paper.astype(float))
    paper = table.set_index(["metric", "experiment", "method"]).paper
    classes = paper.loc[["accuracy_minority", "accuracy_majority"]]
    balanced = classes.groupby(["experiment", "method"], sort=False).mean()
    return pd.concat([paper, pd.concat({"accuracy_balanced": balanced})])
