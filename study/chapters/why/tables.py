"""Tables of chapter 7: thresholds, shifts and accuracies of the variants in experiment (iii)."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from study.chapters.variants import variant, variants
from study.chapters.why.cause import BOTH_KINDS, SHIFTS, THRESHOLDS, WEIGHTED_LOSS, WEIGHTS_IN
from study.chapters.why.interventions import ladder
from study.chapters.why.predictions import evidence
from study.chapters.why.threshold_curve import ratios
from study.engine.protocol import EPOCH
from study.figures.text import in_percent
from study.stores.plan import RESULTS

POSITIONS = RESULTS / "positions.csv"  # `study.chapters.why.positions` writes it
AT_END = {"experiment": "iii", "epoch": EPOCH}
SCORES = ["accuracy_minority", *THRESHOLDS.values()]


def stored_positions() -> dict[str, pd.DataFrame]:
    """The table of `positions.trained_positions` of each of its networks, as stored."""
    table = pd.read_csv(POSITIONS)
    networks = table.groupby("network", sort=False)
    return {name: rows.drop(columns="network") for name, rows in networks}


def medians(networks: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The threshold of each network, and the median position of either class.

    Examples
    --------
    >>> rows = {"position": [0.0, 0.1, 0.8], "minority": [False, False, True]}
    >>> medians({"BN": pd.DataFrame(rows).assign(relative_threshold=0.4)}).loc["BN"].tolist()
    [0.4, 0.8, 0.05]
    """
    table = {
        name: {
            "relative threshold": rows.relative_threshold.iloc[0],
            "median of the minority": rows.position[rows.minority].median(),
            "median of the majority": rows.position[~rows.minority].median(),
        }
        for name, rows in networks.items()
    }
    return pd.DataFrame(table).T


def misses() -> pd.DataFrame:
    """Errors of a falling curve and of a plain mean, at all thresholds and at middle ones."""
    kinds = {"all": evidence("7.3"), "0.4 to 0.8": ratios(0.4, 0.8)}
    table = pd.concat(kinds, names=["thresholds"]).reset_index("thresholds")
    named = {"curve": "the curve misses", "mean": "the mean misses"}
    return table.set_index(["thresholds", "experiment"]).rename(columns=named)


def running_sums() -> pd.DataFrame:
    """Threshold and minority accuracy (%) with running sums and the data set's normalizer."""
    sums = {"statistics": "running_sums", "loss_normalizer": "dataset"}
    runs = variant("wlf_wbn", **sums, experiment="iii", inference="pooled").groupby("epoch")
    table = runs[["relative_threshold"]].mean()
    return table.assign(**{"minority accuracy": in_percent(runs[SCORES[:1]].mean())[SCORES[0]]})


def other_shifts() -> pd.DataFrame:
    """Shift, threshold and accuracies (%) of Weighted + BN, by how its shift is learned."""
    runs = variants("wlf_sbn", SHIFTS, inference="pooled", **AT_END)
    table = runs.groupby("arm", sort=False)[["shift", "relative_threshold", *SCORES]].mean()
    return _scores_in_percent(table)


def other_statistics() -> pd.DataFrame:
    """Threshold and accuracies (%) of Weighted + WBN, by the statistics at inference."""
    runs = variant("wlf_wbn", **AT_END)
    return _scores_in_percent(runs.groupby("inference")[["relative_threshold", *SCORES]].mean())


def _scores_in_percent(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(**in_percent(table[SCORES]))


def weights_in_layers() -> pd.DataFrame:
    """Threshold and minority accuracy (%) of WBN, by the layers in which it has weights."""
    runs = variants("wlf_wbn", WEIGHTS_IN, inference=BOTH_KINDS, **AT_END)
    table = runs.pivot_table(["relative_threshold", "accuracy_minority"], "arm", "inference")
    accuracy = in_percent(table[["accuracy_minority"]])
    return table[["relative_threshold"]].join(accuracy)


def without_output_norm() -> pd.DataFrame:
    """Shift and threshold of both weighted methods without output BN."""
    only = {"output_norm": "none", "inference": BOTH_KINDS, **AT_END}
    runs = pd.concat(variant(method, **only) for method in WEIGHTED_LOSS)
    columns = ["shift", "relative_threshold"]
    return runs.pivot_table(columns, "method", "inference")[columns]


def rungs() -> pd.DataFrame:
    """The rows of `ladder` in one table, named by a column `setting`."""
    return pd.concat(ladder(), names=["setting"]).reset_index("setting")
