"""The cells of Table 2 beside our runs, in print."""

from __future__ import annotations

import pandas as pd

from study.figures.text import percent, written
from study.stats.table_2 import among_single_runs, beside_paper


def cell_by_cell(table: pd.DataFrame) -> pd.DataFrame:
    """Table 2 beside our runs at the last epoch, in print: `beside_paper` and `among_single_runs`.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep``, with one protocol for each experiment and method, and 39
        seeds or more.

    Returns
    -------
    pandas.DataFrame
        A row for each of the 27 cells, by experiment and method, with its class, the number of
        the paper, whether that fits among single runs, our mean with its 95 % interval, and the
        range of single runs.
    """
    keys = ["experiment", "method", "metric"]
    runs = among_single_runs(table[table.epoch == table.epoch.max()])
    cells = beside_paper(table).merge(
        runs[[*keys, "low", "high", "inside"]], on=keys, suffixes=("", "_run")
    )
    ends = zip(cells.low_run, cells.high_run, strict=True)
    return pd.DataFrame(
        {
            "experiment": cells.experiment,
            "method": cells.method,
            "class": cells.metric.str.removeprefix("accuracy_"),
            "paper": cells.paper,
            "fits": cells.inside.map({True: "yes", False: "no"}),
            "ours": written(cells),
            "single runs": [f"{percent(low)} to {percent(high)}" for low, high in ends],
        }
    ).set_index(["experiment", "method"])
