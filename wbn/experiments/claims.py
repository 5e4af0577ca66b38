"""The paper's Table 2, and claims with criteria that are fixed before looking at results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from wbn.experiments.data import EXPERIMENTS
from wbn.experiments.results import paired_difference, summarize

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


@dataclass(frozen=True)
class Verdict:
    """What became of a claim, and the numbers behind it."""

    outcome: Literal["replicated", "not replicated", "undecided"]
    evidence: pd.DataFrame


@dataclass(frozen=True)
class Claim:
    """A statement that results can confirm or refute.

    Parameters
    ----------
    name, words
        A short name, and what the paper says.
    origin
        Whether the paper states it, its tables imply it, or it is ours.
    criterion
        In words, what `judge` computes.
    judge
        From rows of ``run`` or ``sweep``, with one protocol for each experiment and method, to
        a verdict.
    """

    name: str
    words: str
    origin: Literal["stated", "implied", "ours"]
    criterion: str
    judge: Callable[[pd.DataFrame], Verdict]


def _best_overall(table: pd.DataFrame) -> Verdict:
    last = table[table.epoch == table.epoch.max()]
    differences = pd.concat(
        paired_difference(last, "wlf_wbn", other).assign(against=other)
        for other in ("lf_sbn", "wlf_sbn")
    )
    evidence = differences[differences.metric == "accuracy_overall"].reset_index(drop=True)
    missing = set(EXPERIMENTS) - set(evidence.experiment)
    if missing:
        raise ValueError(f"the claim is about all three experiments; missing: {sorted(missing)}")
    if (evidence.low > 0).all():
        return Verdict("replicated", evidence)
    return Verdict("not replicated" if (evidence.high < 0).any() else "undecided", evidence)


C1 = Claim(
    name="C1",
    words="The proposed method (WLF+pBN) was found to be the best in all experiments.",
    origin="stated",
    criterion=(
        "In each experiment, at the last epoch, the 95 % interval of the paired difference in "
        "overall accuracy of WLF+WBN lies above zero against both other methods: replicated. "
        "One of the six intervals lies below zero: not replicated. Otherwise undecided."
    ),
    judge=_best_overall,
)
CLAIMS = (C1,)
