"""Numbers of what the paper leaves open: the designed study, the normalizers, the recipe."""

from __future__ import annotations

from functools import cache

from study.chapters.open_choices.effects import (
    LEVELS,
    PAIRS,
    STATED,
    all_effects,
    design_points,
    leads,
)
from study.chapters.repair.recipe import CHOICES as RECIPE
from study.chapters.repair.recipe import ranked
from study.chapters.statement import Statement, rows
from study.chapters.three_experiments.numbers import behind_by_normalizer, runs
from study.engine.protocol import EPOCH, Protocol
from study.figures.text import COUNTS, count, percent
from study.stats.design import model_matrix
from study.stats.intervals import paired_difference
from study.stores.plan import RESULTS, read_plan

METRIC = "accuracy_balanced"
FRESH = 10  # the first of the seeds that the study has not used


@cache
def protocols() -> list[Protocol]:
    """Those of the designed study."""
    return read_plan(RESULTS / "study" / "plan.toml")[0]


def design() -> list[object]:
    """Choices beside output BN, kinds of inference statistics, epochs, and runs."""
    kinds, epochs = (rows("study")[column].nunique() for column in ("inference", "epoch"))
    return [count(len(LEVELS) - 1), count(kinds), count(epochs), runs("study")]


def points_and_coefficients() -> list[object]:
    """Size of the model that is fitted to the study."""
    points, coefficients = model_matrix(design_points(protocols()), LEVELS, PAIRS).shape
    return [COUNTS[points], coefficients]


def largest_effect() -> list[str]:
    """What a choice changes most for Weighted + WBN, in whole points, without its sign."""
    effects = all_effects(rows("study"), protocols(), METRIC)
    return [percent(effects["mean"][effects.method == "wlf_wbn"].abs().max(), 0)]


def clear_cells() -> list[object]:
    """Fitted cells in which WBN is clearly behind Weighted + BN, all, and where it is ahead."""
    table = rows("study", epoch=EPOCH, inference=STATED)
    lead = leads(table, protocols(), METRIC, "wlf_sbn")
    ahead = (lead.low > 0).sum()
    return [(lead.high < 0).sum(), len(lead), count(ahead) if ahead else "none"]


def confirmed() -> list[str]:
    """Without output BN: smallest and largest lead with averages, and what pooling loses.

    Points of WBN ahead of Weighted + BN on fresh seeds; with pooled statistics points behind, in
    (i) and (iii).
    """
    table = rows("confirmation", epoch=EPOCH)
    fresh = table[table.seed >= FRESH]
    lead = paired_difference(fresh, "wlf_wbn", "wlf_sbn", "accuracy_overall")
    means = lead.pivot(index="experiment", columns="inference", values="mean")
    ahead, behind = means[STATED], -means["pooled"]
    return list(map(percent, (ahead.min(), ahead.max(), behind["i"], behind["iii"])))


def recipe() -> list[int]:
    """Candidates that validation chose from, and the epoch at which its choice was tested."""
    (epoch,) = rows("recipe_test").epoch.unique()
    return [len(ranked(rows("recipe", *RECIPE), "accuracy_balanced")), epoch]


STUDY = "plan and rows of results/study"
FITTED = f"results/study, epoch {EPOCH}, averages over mini-batches, balanced accuracy"

CONFIRMED = (
    f"results/confirmation, epoch {EPOCH}, seeds from {FRESH} on: overall accuracy, "
    "Weighted + WBN minus Weighted + BN, averages over mini-batches and pooled"
)

CHOICES = (
    Statement("study of {0} unstated choices and of output BN ({3} runs)", STUDY, design),
    Statement(
        "{} unstated choices and of output BN, with {} kinds of inference statistics and {} "
        "epochs: {} runs",
        STUDY,
        design,
    ),
    Statement("{} points and {} coefficients", STUDY, points_and_coefficients),
    Statement(
        "move weighted BN by up to {} points on average",
        f"{STUDY}, all_effects: the largest mean change in balanced accuracy of Weighted + WBN",
        largest_effect,
    ),
    Statement(
        "clearly behind Weighted + BN in {} of {} fitted cells and clearly ahead in {}",
        f"{FITTED}: 95 % intervals of leads, with the model's error",
        clear_cells,
    ),
    Statement(
        "one of {} normalizers: in (iii) WBN is {} points behind with the batch's and {} with the "
        "data set's",
        f"results/family, epoch {EPOCH}, averages over mini-batches: balanced accuracy, "
        "Weighted + WBN minus Weighted + BN",
        lambda: [count(len(LEVELS["loss_normalizer"])), *behind_by_normalizer("iii", METRIC)],
    ),
    Statement(
        "among {} candidates is no better on the test set than a weighted loss with standard BN "
        "and {} epochs",
        "results/recipe and results/recipe_test",
        recipe,
    ),
    Statement(
        "{} to {} points ahead of standard BN with averages over mini-batches; with pooled "
        "statistics of the same networks it is {} and {} points behind in (i) and (iii)",
        CONFIRMED,
        confirmed,
    ),
    Statement("WBN is then {} points behind in (iii)", CONFIRMED, lambda: confirmed()[3:]),
)
