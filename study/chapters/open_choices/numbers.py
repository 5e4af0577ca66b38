"""Numbers of the choices that the paper leaves open: the screening and its confirmation."""

from __future__ import annotations

from study.chapters.numbers import states
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
from study.chapters.three_experiments.numbers import behind, runs
from study.engine.protocol import EPOCH
from study.figures.text import COUNTS, count
from study.stats.design import model_matrix
from study.stats.intervals import paired_difference
from study.stores.plan import RESULTS, load_or_run, read_plan

METRIC = "accuracy_balanced"
PROTOCOLS, _ = read_plan(RESULTS / "study" / "plan.toml")


@states(
    "study of {0} unstated choices and of output BN ({3} runs)",
    "{0} unstated choices and of output BN, with {1} kinds of inference statistics and {2} epochs: "
    "{3} runs",
)
def design() -> tuple:
    """Choices besides output BN, kinds of statistics, epochs and runs in `results/study`."""
    kinds, epochs = (load_or_run("study")[column].nunique() for column in ("inference", "epoch"))
    return count(len(LEVELS) - 1), count(kinds), count(epochs), runs("study")


@states("{} points and {} coefficients")
def points_and_coefficients() -> tuple:
    """Size of the model that is fitted to `results/study`."""
    points, coefficients = model_matrix(design_points(PROTOCOLS), LEVELS, PAIRS).shape
    return COUNTS[points], coefficients


@states("move weighted BN by up to {:.0f} points on average")
def largest_effect() -> float:
    """The largest mean change that one choice makes in WBN's balanced accuracy, in points."""
    effects = all_effects(load_or_run("study"), PROTOCOLS, METRIC)
    return 100 * effects["mean"][effects.method == "wlf_wbn"].abs().max()


@states("clearly behind Weighted + BN in {} of {} fitted cells and clearly ahead in {}")
def clear_cells() -> tuple:
    """Fitted cells with an interval of WBN minus Weighted + BN below zero; all; above zero."""
    lead = leads(load_or_run("study", epoch=EPOCH, inference=STATED), PROTOCOLS, METRIC, "wlf_sbn")
    ahead = (lead.low > 0).sum()
    return (lead.high < 0).sum(), len(lead), count(ahead) if ahead else "none"


@states(
    "one of {} normalizers: in (iii) WBN is {} points behind with the batch's and {} with the data "
    "set's"
)
def behind_by_normalizer() -> tuple:
    """Balanced accuracy in (iii), Weighted + BN minus WBN: readings 1 and 5 of `results/family`."""
    return count(len(LEVELS["loss_normalizer"])), *behind(METRIC)


@states(
    "{} to {} points ahead of standard BN with averages over mini-batches; with pooled statistics "
    "of the same networks it is {} and {} points behind in (i) and (iii)",
    "WBN is then {3} points behind in (iii)",
)
def confirmed() -> tuple:
    """WBN minus Weighted + BN, `results/confirmation`: smallest, largest; pooled in (i), (iii)."""
    fresh = load_or_run("confirmation", epoch=EPOCH, seed=range(10, 40))
    lead = paired_difference(fresh, "wlf_wbn", "wlf_sbn", "accuracy_overall")
    means = lead.pivot(index="experiment", columns="inference", values="mean")
    ahead, behind = means[STATED], -means["pooled"]
    return ahead.min(), ahead.max(), behind["i"], behind["iii"]


@states(
    "among {} candidates is no better on the test set than a weighted loss with standard BN and {} "
    "epochs"
)
def recipe() -> tuple:
    """Candidates that validation chose from (`results/recipe`), and the epoch of its choice."""
    (epoch,) = load_or_run("recipe_test").epoch.unique()
    return len(ranked(load_or_run("recipe", *RECIPE), METRIC)), epoch
