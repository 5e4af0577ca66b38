"""Numbers of the paper's three experiments: Table 2, the family of readings and the claims."""

from __future__ import annotations

from functools import cache

import pandas as pd

from wbn.analysis.claims import CLAIMS, EPOCH, table_2_runs
from wbn.analysis.intervals import LEVEL
from wbn.analysis.ledger.statement import Statement, rows
from wbn.analysis.table_2 import TABLE_2, audit, beside_paper
from wbn.analysis.text import count, percent
from wbn.experiments.protocol import FAMILY, METHODS

RUN = ["protocol", "seed"]
STANDARD = ["lf_sbn", "wlf_sbn"]


def runs(*stores: str) -> int:
    """How many runs the stores hold."""
    return sum(len(rows(store)[RUN].drop_duplicates()) for store in stores)


def seeds_and_readings() -> list[object]:
    """How many seeds each run of the family has, and how many readings there are."""
    (seeds,) = set(rows("family").groupby("protocol").seed.nunique())
    return [seeds, count(len(FAMILY))]


@cache
def leads() -> pd.DataFrame:
    """Paired differences of WLF+WBN to both other methods, by experiment and reading."""
    return pd.concat(CLAIMS[0].under(reading, rows("family")).evidence for reading in FAMILY)


def behind() -> list[object]:
    """How many of `leads` there are, how many lie below zero, and how many hold it."""
    below = (leads().high < 0).sum()
    holding = ((leads().low <= 0) & (leads().high >= 0)).sum()
    return [len(leads()), below, count(holding)]


def minority_of_standard(experiment: str) -> list[str]:
    """Minority accuracies of plain and weighted loss with standard BN: ours, the paper's."""
    table = rows("family", epoch=EPOCH)
    reference = table.protocol.isin([protocol.hash for protocol in table_2_runs(FAMILY[0])])
    cells = beside_paper(table[reference])
    cells = cells[(cells.experiment == experiment) & (cells.metric == "accuracy_minority")]
    cells = cells.set_index("method").loc[STANDARD]
    return [*cells["mean"].map(percent), *cells.paper]


FAMILY_RUNS = "results/family"
AT_END = f"{FAMILY_RUNS}, epoch {EPOCH}, averages over mini-batches"
PAIRED = f"{AT_END}: 95 % intervals of WLF+WBN minus LF+sBN and WLF+sBN in overall accuracy"

THREE_EXPERIMENTS = (
    *(
        Statement(words, "the paper's Table 2", lambda: [count(len(METHODS))])
        for words in ("the worst of the {} methods", "the best of its {} methods")
    ),
    Statement("{} seeds under each of {} readings", FAMILY_RUNS, seeds_and_readings),
    Statement("{} seeds under {} readings", FAMILY_RUNS, seeds_and_readings),
    Statement("{} seeds for each of its runs, under {} readings", FAMILY_RUNS, seeds_and_readings),
    Statement("leaves open ({} runs)", FAMILY_RUNS, lambda: [runs("family")]),
    Statement(
        "{} runs in place of {}",
        f"{FAMILY_RUNS}, and the rows of the paper's Table 2",
        lambda: [runs("family"), len(TABLE_2[["experiment", "method"]].drop_duplicates())],
    ),
    *(
        Statement(words, "wbn.analysis.claims.CLAIMS", lambda: [count(len(CLAIMS))])
        for words in ("{} claims are judged", "judged {} claims")
    ),
    *(
        Statement(words, "wbn.analysis.claims.EPOCH", lambda: [EPOCH])
        for words in (
            "behind both other methods after {} epochs",
            "After {} epochs WBN is behind both other methods",
            "At epoch {}, WLF+WBN is the worst",
        )
    ),
    Statement("{1} of {0} paired differences lie below zero, {2} touches it", PAIRED, behind),
    Statement(
        "of {} paired differences in overall accuracy, {} lie below zero and {} touches it",
        PAIRED,
        behind,
    ),
    Statement("but for {} tie", PAIRED, lambda: behind()[2:]),
    Statement(
        "in (iii) {} and {} % of the minority class, where the paper has {} and {} %",
        f"{AT_END}, reference reading: means of LF+sBN and WLF+sBN; the paper's Table 2",
        lambda: minority_of_standard("iii"),
    ),
    Statement("{} % intervals", "wbn.analysis.intervals.LEVEL", lambda: [percent(LEVEL, 0)]),
    Statement(
        "{} overall accuracies of experiment (ii) do not follow from their class accuracies",
        "arithmetic of the paper's Table 2, wbn.analysis.table_2.audit",
        lambda: [count((~audit().query("experiment == 'ii'").consistent).sum())],
    ),
)
