"""Numbers of the paper's three experiments: Table 2, the family of readings and the claims."""

from __future__ import annotations

from functools import cache

import pandas as pd

from study.chapters.claims import (
    CLAIMS,
    EARLIER,
    SAME,
    held_by_epoch,
    table_2_by_reading,
    table_2_runs,
)
from study.chapters.open_choices.effects import STATED
from study.chapters.statement import Statement, rows
from study.chapters.why.cause import NORMALIZERS, WEIGHTED_LOSS, arm, paired
from study.engine.protocol import EPOCH, FAMILY, METHODS
from study.figures.text import count, percent
from study.stats.intervals import LEVEL, paired_difference
from study.stats.power import equivalence_power
from study.stats.scores import table_2_score
from study.stats.table_2 import TABLE_2, audit, beside_paper
from study.stores.plan import RESULTS
from study.stores.store import Store

RUN = ["protocol", "seed"]
STANDARD = ["lf_sbn", "wlf_sbn"]


def runs(*stores: str) -> int:
    """How many runs the stores hold."""
    return sum(len(rows(store)[RUN].drop_duplicates()) for store in stores)


def seeds_and_readings() -> list[object]:
    """How many seeds each run of the family has, and how many readings there are."""
    (seeds,) = set(rows("family").groupby("protocol").seed.nunique())
    return [seeds, count(len(FAMILY))]


def hours() -> list[str]:
    """Of all stored units together."""
    stores = (Store(plan.parent) for plan in RESULTS.glob("*/plan.toml"))
    total = sum(seconds for store in stores for _, seconds in store.units())
    return [f"{total / 3600:.0f}"]


def with_the_data_set_s_normalizer() -> list[object]:
    """Minority accuracy of Weighted + WBN in (iii), and the epoch."""
    reading = FAMILY[0] | {"loss_normalizer": "dataset"}
    only = {"experiment": "iii", "method": "wlf_wbn", "epoch": EPOCH}
    return [percent(rows("family", **reading, **only).accuracy_minority.mean()), EPOCH]


@cache
def leads() -> pd.DataFrame:
    """Paired differences of Weighted + WBN to both other methods, by experiment and reading."""
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


def behind_by_normalizer(experiment: str, metric: str = "accuracy_overall") -> list[str]:
    """Points by which WBN is behind Weighted + BN: the batch's normalizer, the data set's."""
    gaps = []
    for normalizer in NORMALIZERS:
        reading = FAMILY[0] | {"loss_normalizer": normalizer}
        runs_of = rows("family", epoch=EPOCH, experiment=experiment, **reading)
        gap = paired_difference(runs_of, "wlf_wbn", "wlf_sbn", metric)
        gaps.append(percent(-gap["mean"].item()))
    return gaps


def left_at_best_threshold(experiment: str) -> list[str]:
    """Points of balanced accuracy behind at the best threshold and as it is, by normalizer."""
    points = []
    for normalizer in NORMALIZERS:
        only = {"loss_normalizer": normalizer, "inference": STATED, "epoch": EPOCH}
        standard, weighted = (arm(method, **only) for method in WEIGHTED_LOSS)
        for metric in ("accuracy_best_threshold", "accuracy_balanced"):
            gap = paired([(1, weighted), (-1, standard)], metric).set_index("experiment")["mean"]
            points.append(percent(-gap[experiment]))
    return points


def fall(experiment: str) -> list[object]:
    """Minority accuracy of Weighted + WBN by epoch, the epochs, and what the paper has."""
    only = {"experiment": experiment, "method": "wlf_wbn", "inference": STATED}
    mean = rows("family", **FAMILY[0], **only).groupby("epoch").accuracy_minority.mean()
    longer = rows("longer", **only).groupby("epoch").accuracy_minority.mean()
    early, last = [*EARLIER[1:], EPOCH], int(longer.index.max())
    cell = (TABLE_2.experiment == experiment) & (TABLE_2.method == "wlf_wbn")
    paper = TABLE_2.paper[cell & (TABLE_2.metric == "accuracy_minority")].item()
    ours = [*(percent(mean[epoch], 0) for epoch in early), percent(longer[last])]
    return [*ours, *early, last, paper]


def printed_scores() -> list[str]:
    """Scores of the printed minority accuracies by normalizer, then those of our own runs."""
    tables = table_2_by_reading(rows("family"))
    readings = [FAMILY[0] | {"loss_normalizer": normalizer} for normalizer in NORMALIZERS]
    scores = [table_2_score(tables[1 + FAMILY.index(reading)]) for reading in readings]
    return [percent(score[name]) for name in ("all nine", "own run") for score in scores]


def too_few() -> list[str]:
    """Readings in which C5 had next to no chance to hold, all readings, and the claim's seeds."""
    claim, table = CLAIMS[4], pd.concat([rows("family"), rows("corrections")])
    chances = [
        equivalence_power(claim.under(reading, table).evidence.sd, claim.seeds, SAME)
        for reading in FAMILY
    ]
    return [count(sum(chance < 1e-3 for chance in chances)), count(len(FAMILY)), count(claim.seeds)]


FAMILY_RUNS = "results/family"
AT_END = f"{FAMILY_RUNS}, epoch {EPOCH}, averages over mini-batches"
PAIRED = (
    f"{AT_END}: 95 % intervals of Weighted + WBN minus Plain + BN and Weighted + BN in overall "
    "accuracy"
)

BEST = (
    f"results/cause, epoch {EPOCH}, averages over mini-batches: balanced accuracy, "
    "Weighted + WBN minus Weighted + BN, at the best threshold and as it is"
)

THREE_EXPERIMENTS = (
    *(
        Statement(words, "the paper's Table 2", lambda: [count(len(METHODS))])
        for words in (
            "the worst of the {} methods",
            "the best of its {} methods",
            "{} methods are compared throughout",
        )
    ),
    Statement("{} seeds under each of {} readings", FAMILY_RUNS, seeds_and_readings),
    Statement("{} seeds under {} readings", FAMILY_RUNS, seeds_and_readings),
    Statement("{} seeds for each of its runs, under {} readings", FAMILY_RUNS, seeds_and_readings),
    Statement(
        "a mark is the mean of {} seeds with its {} % interval",
        "study.chapters.report.hero.hero_rows, study.stats.intervals.LEVEL",
        lambda: [seeds_and_readings()[0], percent(LEVEL, 0)],
    ),
    Statement("on the same {} seeds", FAMILY_RUNS, lambda: seeds_and_readings()[:1]),
    Statement(
        "{} claims of the paper, judged after {} epochs under {} readings",
        "study.chapters.claims, CLAIMS and EPOCH; study.engine.protocol.FAMILY",
        lambda: [count(len(CLAIMS)), EPOCH, count(len(FAMILY))],
    ),
    Statement(
        "In C5, {} seeds, the number declared",
        "study.chapters.claims",
        lambda: [count(CLAIMS[4].seeds)],
    ),
    Statement("leaves open ({} runs)", FAMILY_RUNS, lambda: [runs("family")]),
    Statement(
        "{} runs for the claims",
        "results/family and results/corrections",
        lambda: [runs("family", "corrections")],
    ),
    Statement("took {} hours of one core", "seconds of the units in results/", hours),
    Statement(
        "with the data set's normalizer they are at {} % at epoch {}",
        f"{FAMILY_RUNS}, reading 5, (iii): mean minority accuracy of Weighted + WBN",
        with_the_data_set_s_normalizer,
    ),
    Statement(
        "{} runs in place of {}",
        f"{FAMILY_RUNS}, and the rows of the paper's Table 2",
        lambda: [runs("family"), len(TABLE_2[["experiment", "method"]].drop_duplicates())],
    ),
    *(
        Statement(words, "study.chapters.claims.CLAIMS", lambda: [count(len(CLAIMS))])
        for words in ("{} claims are judged", "judged {} claims")
    ),
    *(
        Statement(words, "study.chapters.claims.EPOCH", lambda: [EPOCH])
        for words in (
            "behind both other methods after {} epochs",
            "After {} epochs WBN is behind both other methods",
            "At epoch {}, Weighted + WBN is the worst",
            "at epoch {}, which in (iii) is an accident of the epoch",
            "Verdicts are at epoch {}",
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
        f"{AT_END}, reference reading: means of Plain + BN and Weighted + BN; the paper's Table 2",
        lambda: minority_of_standard("iii"),
    ),
    Statement("{} % intervals", "study.stats.intervals.LEVEL", lambda: [percent(LEVEL, 0)]),
    Statement(
        "{} overall accuracies of experiment (ii) do not follow from their class accuracies",
        "arithmetic of the paper's Table 2, study.stats.table_2.audit",
        lambda: [count((~audit().query("experiment == 'ii'").consistent).sum())],
    ),
    *(
        Statement(
            words,
            f"{AT_END}: overall accuracy, Weighted + WBN minus Weighted + BN",
            lambda: behind_by_normalizer("iii"),
        )
        for words in (
            "{} points of overall accuracy behind Weighted + BN in the reference reading, and {} "
            "behind with the data set's loss normalizer",
            "{} points in (iii) in the reference reading, {} with the data set's",
            "{} points of overall accuracy behind the weighted loss with standard BN where each "
            "mini-batch's own weight normalizes its loss, and {} points with the data set's",
            "{} points behind the weighted loss with standard BN where each mini-batch's own "
            "weight normalizes its loss, and {} points with the data set's",
            "by {} points of overall accuracy to the weighted loss with standard BN in the "
            "reference reading, and by {} with the data set's loss normalizer",
        )
    ),
    *(
        Statement(words, BEST, lambda: left_at_best_threshold("iii"))
        for words in (
            "{} points of {} remain in (iii), and {} of {} with the data set's normalizer",
            "{} of {} points of balanced accuracy are left in (iii), and {} of {} with the data "
            "set's normalizer",
        )
    ),
    Statement(
        "in (iii) they are {0}, {1}, {2} and {3} % at epochs {4}, {5}, {6} and {7} in the "
        "reference reading, so that {2} at epoch {6} is near the paper's {8} by accident",
        "results/family and results/longer: mean minority accuracy of Weighted + WBN; the paper's "
        "Table 2",
        lambda: fall("iii"),
    ),
    Statement(
        "{} points from our runs in the reference reading and {} with the data set's normalizer, "
        "where our own runs score {} and {}",
        f"{AT_END}: study.stats.scores.table_2_score, mean over nine minority accuracies",
        printed_scores,
    ),
    Statement(
        "in {} of {} readings {} seeds were too few for its margin",
        f"results/family and results/corrections, epoch {EPOCH}: readings in which C5 had a chance "
        "below 0.1 % to hold if nothing differed, study.stats.power.equivalence_power",
        too_few,
    ),
    Statement(
        "After the first epoch it is the best method in {} of the readings",
        f"{FAMILY_RUNS}, epoch 1: claim C1 by its criterion",
        lambda: [count(held_by_epoch(CLAIMS[:1], rows("family"), [1]).loc[1, "C1"])],
    ),
)
