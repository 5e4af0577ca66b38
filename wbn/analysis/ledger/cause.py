"""Numbers of what weighted BN loses and why, on seeds that no other store has used."""

from __future__ import annotations

from functools import cache

from wbn.analysis.cause import AS_IT_IS, BOTH_KINDS, TWO, arm, arm_means, remaining
from wbn.analysis.claims import EPOCH
from wbn.analysis.ledger.statement import Statement, rows
from wbn.analysis.predictions_cause import CAUSE, shifts
from wbn.analysis.text import COUNTS, count, percent


@cache
def gap(label: str, normalizer: str = "batch") -> tuple[float, float]:
    """What WLF+WBN is behind in (iii), with averages and with pooled statistics."""
    found = remaining(TWO, "accuracy_balanced", loss_normalizer=normalizer)[label]
    means = found[found.experiment == "iii"].set_index("inference")["mean"]
    averages, pooled = (-means[kind] for kind in BOTH_KINDS)
    return averages, pooled


def frozen() -> list[str]:
    """Points behind as it is and with a frozen shift: averages, then pooled."""
    both = zip(gap(AS_IT_IS), gap("shift frozen"), strict=True)
    return [percent(points) for pair in both for points in pair]


def given_back() -> list[str]:
    """Points that a frozen shift gives back, of those behind: averages, then pooled."""
    both = zip(gap(AS_IT_IS), gap("shift frozen"), strict=True)
    return [percent(points) for whole, left in both for points in (whole - left, whole)]


def relative_threshold(method: str) -> list[str]:
    """Where the threshold lies in (iii) with pooled statistics, in the mean over seeds."""
    runs = arm(method, experiment="iii", inference="pooled", epoch=EPOCH)
    return [f"{runs.relative_threshold.mean():.2f}"]


@cache
def drift() -> tuple[int, str]:
    """How many mean shifts were predicted, and the largest error."""
    found = shifts()
    return len(found), f"{(found['shift'] - found.shift_predicted).abs().max():.2f}"


@cache
def outcomes() -> list[str]:
    """Of all predictions, in order."""
    return [prediction.verdict().outcome for prediction in CAUSE]


def held() -> list[object]:
    """How many predictions there are, and how many held."""
    return [len(outcomes()), count(outcomes().count("held"))]


def lost_with_running_sums() -> list[str]:
    """Percent of the fours that fall short of the threshold."""
    means = arm_means(TWO, "accuracy_minority").set_index(["arm", "experiment", "inference"])[
        "mean"
    ]
    return [percent(1 - means["running sums", "iii", "batch_average"], 0)]


def seeds() -> list[int]:
    """First and last of the two stores."""
    both = [rows(store).seed for store in ("cause", "cause_ten")]
    return [min(map(min, both)), max(map(max, both))]


AT_END = f"results/cause, epoch {EPOCH}, experiment (iii)"
GAP = f"{AT_END}: balanced accuracy, WLF+WBN minus WLF+sBN, as it is and with a frozen output shift"
JUDGED = "wbn.analysis.predictions_cause, judged"
THRESHOLD = f"{AT_END}, pooled statistics: mean of the relative threshold"

CAUSES = (
    *(
        Statement(words, GAP, frozen)
        for words in (
            "shrinks from {} to {} points of balanced accuracy with averages over mini-batches at "
            "inference, and from {} to {} with pooled statistics",
            "With this shift frozen, {1} points are left with averages over mini-batches, and {3} "
            "of {2} with pooled statistics",
            "{1} points of balanced accuracy in place of {0} with averages over mini-batches, {3} "
            "in place of {2} with pooled statistics",
        )
    ),
    Statement(
        "gives back {} of the {} points of balanced accuracy that weighted BN is behind in (iii) "
        "with averages over mini-batches, and {} of {} with pooled statistics",
        GAP,
        given_back,
    ),
    Statement(
        "the gaps are {} and {} points",
        f"{GAP}, the data set's normalizer",
        lambda: list(map(percent, gap(AS_IT_IS, "dataset"))),
    ),
    *(
        Statement(words, f"{THRESHOLD} of WLF+sBN", lambda: relative_threshold("wlf_sbn"))
        for words in (
            "the threshold lies at {} of the way",
            "standard BN puts it at {}",
            "next to the majority, at {} in (iii)",
        )
    ),
    *(
        Statement(words, f"{THRESHOLD} of WLF+WBN", lambda: relative_threshold("wlf_wbn"))
        for words in ("starts halfway, and ends at {}", "moves it towards the minority, to {}")
    ),
    Statement("{} mean shifts to within {}", "prediction 7.1, its evidence", drift),
    Statement(
        "predict the drift to within {}", "prediction 7.1, its evidence", lambda: drift()[1:]
    ),
    Statement("Of {} predictions, declared before their runs, {} held", JUDGED, held),
    Statement("Of {} predictions {} held; that", JUDGED, held),
    Statement(
        "Of {} predictions {} held and {} failed",
        JUDGED,
        lambda: [COUNTS[len(CAUSE)], held()[1], count(outcomes().count("failed"))],
    ),
    Statement(
        "{} % of the fours are lost in (iii)",
        f"{AT_END}: minority accuracy of WLF+WBN with running sums",
        lost_with_running_sums,
    ),
    Statement("on seeds {} to {}", "plans of results/cause and results/cause_ten", seeds),
)
