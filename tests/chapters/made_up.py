"""Small tables of runs, in the shape that `run` returns, for tests of the analysis."""

import pandas as pd

METRIC = "accuracy_overall"


def runs(values, method="a", **columns):
    """Runs of one method, with seeds 0, 1, ..."""
    fixed = {"experiment": "i", "inference": "pooled", "evaluated_on": "test", "epoch": 20}
    table = pd.DataFrame({"seed": range(len(values)), "accuracy_overall": values})
    return table.assign(protocol=f"hash of {method}", method=method, **fixed, **columns)


def methods(**values):
    """Runs of several methods, each with the same seeds."""
    return pd.concat([runs(v, name) for name, v in values.items()], ignore_index=True)
