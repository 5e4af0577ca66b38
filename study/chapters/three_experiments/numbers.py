"""Numbers of the paper's three experiments: our runs, the claims and Table 2."""

from __future__ import annotations

import pandas as pd

from study.chapters.claims import CLAIMS, SAME, held_by_epoch, table_2_by_reading
from study.chapters.numbers import states
from study.engine.protocol import EPOCH, FAMILY, METHODS
from study.figures.text import count, percent
from study.stats.intervals import LEVEL, paired_difference
from study.stats.power import equivalence_power
from study.stats.scores import table_2_score
from study.stats.table_2 import TABLE_2, audit, beside_paper
from study.stores.plan import load_or_run

NORMALIZERS = 1, 5  # readings that differ in the loss normalizer only: batch, data set


def runs(*stores: str) -> int:
    """How many runs the stores hold."""
    return sum(len(load_or_run(store)[["protocol", "seed"]].drop_duplicates()) for store in stores)


@states("worst of the {} methods", "best of its {} methods", "{} methods are compared")
def methods() -> str:
    """Methods of the paper (Table 2)."""
    return count(len(METHODS))


@states(
    "{0} seeds under each of {1} readings",
    "{0} seeds under {1} readings",
    "{0} seeds for each of its runs, under {1} readings",
    "on the same {0} seeds",
    "a mark is the mean of {0} seeds",
)
def seeds_and_readings() -> tuple:
    """Seeds of each run in `results/family`, and readings of the paper's text."""
    (seeds,) = set(load_or_run("family").groupby("protocol").seed.nunique())
    return seeds, count(len(FAMILY))


@states("leaves open ({0} runs)", "{0} runs in place of {1}", "{2} runs for the claims")
def runs_and_cells() -> tuple:
    """Runs in `results/family`, runs in Table 2, runs in `results/family` and `corrections`."""
    cells = TABLE_2[["experiment", "method"]].drop_duplicates()
    return runs("family"), len(cells), runs("family", "corrections")


@states(
    "{0} claims of the paper, judged after {1} epochs under {2} readings",
    "{0} claims are judged",
    "judged {0} claims",
    "behind both other methods after {1} epochs",
    "After {1} epochs WBN is behind both other methods",
    "At epoch {1}, Weighted + WBN is the worst",
    "at epoch {1}, which in (iii) is an accident of the epoch",
    "Verdicts are at epoch {1}",
    "In C5, {3} seeds, the number declared",
)
def judgment() -> tuple:
    """Claims, the epoch at which they are judged, readings, and seeds for C5."""
    return count(len(CLAIMS)), EPOCH, count(len(FAMILY)), count(CLAIMS[4].seeds)


@states("{} % intervals", "seeds with its {} % interval")
def level() -> str:
    """Level of all intervals."""
    return percent(LEVEL, 0)


@states(
    "{1} of {0} paired differences lie below zero, {2} touches it",
    "of {0} paired differences in overall accuracy, {1} lie below zero and {2} touches it",
    "but for {2} tie",
)
def differences() -> tuple:
    """Intervals behind C1's verdicts (overall accuracy): all, below zero, around zero."""
    table = load_or_run("family")
    found = pd.concat(CLAIMS[0].under(reading, table).evidence for reading in FAMILY)
    around = (found.low <= 0) & (found.high >= 0)
    return len(found), (found.high < 0).sum(), count(around.sum())


@states("After the first epoch it is the best method in {} of the readings")
def best_after_the_first_epoch() -> str:
    """Readings in which C1 is replicated at epoch 1."""
    return count(held_by_epoch(CLAIMS[:1], load_or_run("family"), [1]).loc[1, "C1"])


@states("in {} of {} readings {} seeds were too few for its margin")
def too_few_seeds() -> tuple:
    """Readings in which C5 would hold with a chance below 0.1 % if nothing differed; seeds."""
    claim, table = CLAIMS[4], pd.concat([load_or_run("family"), load_or_run("corrections")])
    spreads = [claim.under(reading, table).evidence.sd for reading in FAMILY]
    hopeless = sum(equivalence_power(sd, claim.seeds, SAME) < 1e-3 for sd in spreads)
    return count(hopeless), count(len(FAMILY)), count(claim.seeds)


@states("in (iii) {} and {} % of the minority class, where the paper has {} and {} %")
def minority_with_standard_bn() -> tuple:
    """Minority accuracy of Plain + BN and Weighted + BN in reading 1, and as the paper has it."""
    cells = beside_paper(table_2_by_reading(load_or_run("family"))[1])
    cells = cells.query("experiment == 'iii' and metric == 'accuracy_minority'")
    standard = cells.set_index("method").loc[["lf_sbn", "wlf_sbn"]]
    return *standard["mean"], *standard.paper


@states("{} overall accuracies of experiment (ii) do not follow from their class accuracies")
def inconsistent() -> str:
    """Overall accuracies in Table 2 (ii) that contradict its class accuracies."""
    return count((~audit().query("experiment == 'ii'").consistent).sum())


def behind(metric: str) -> tuple:
    """Points by which WBN is behind Weighted + BN in (iii), for each of `NORMALIZERS`."""
    tables = table_2_by_reading(load_or_run("family", experiment="iii"))
    gaps = [paired_difference(tables[n], "wlf_wbn", "wlf_sbn", metric) for n in NORMALIZERS]
    return tuple(-gap["mean"].item() for gap in gaps)


@states(
    "{0} points of overall accuracy behind Weighted + BN in the reference reading",
    "and {1} behind with the data set's loss normalizer",
    "{0} points in (iii) in the reference reading, {1} with the data set's",
    "{0} points of overall accuracy behind the weighted loss",
    "{0} points behind the weighted loss",
    "own weight normalizes its loss, and {1} points with the data set's",
    "by {0} points of overall accuracy to the weighted loss",
    "and by {1} with the data set's loss normalizer",
)
def behind_in_overall_accuracy() -> tuple:
    """Overall accuracy in (iii), Weighted + BN minus WBN: readings 1 and 5 of `results/family`."""
    return behind("accuracy_overall")


@states(
    "in (iii) they are {0:.0f}, {1:.0f}, {2:.0f} and {3:.1f} % at epochs 5, 10, 20 and 100 in the "
    "reference reading, so that {2:.0f} at epoch 20 is near the paper's {4} by accident",
    "with the data set's normalizer they are at {5:.1f} % at epoch 20",
)
def minority_of_wbn() -> tuple:
    """WBN's minority accuracy in (iii): reading 1 by epoch, in the paper, and reading 5."""
    only = {"experiment": "iii", "method": "wlf_wbn", "inference": "batch_average"}
    tables = [load_or_run("family", **FAMILY[0], **only), load_or_run("longer", **only)]
    tables += [load_or_run("family", **FAMILY[4], **only)]
    first, longer, other = (100 * t.groupby("epoch").accuracy_minority.mean() for t in tables)
    paper = TABLE_2.query("experiment == 'iii' and method == 'wlf_wbn'").set_index("metric").paper
    return *first[[5, 10, 20]], longer[100], paper["accuracy_minority"], other[20]


@states(
    "{} points from our runs in the reference reading and {} with the data set's normalizer, where "
    "our own runs score {} and {}"
)
def printed_scores() -> tuple:
    """Scores of Table 2's minority accuracies, then of our own runs, for readings 1 and 5."""
    tables = table_2_by_reading(load_or_run("family"))
    scores = [table_2_score(tables[n]) for n in NORMALIZERS]
    return tuple(score[name] for name in ("all nine", "own run") for score in scores)
