"""Chapter 11, what to use.

It asks which repairs of weighted BN work, how much of the gain is due to balanced statistics, and
what else one could use: candidates, the choice of validation among them, their verdicts on the
test set, baselines and a recipe.
"""

from study.chapters.repair.comparisons import leads, verdicts
from study.chapters.repair.figures import leads_by_problem
from study.chapters.repair.predictions import REPAIR
from study.chapters.repair.recipe import CHOICES
from study.chapters.repair.recipe import ranked as ranked_recipes
from study.chapters.repair.tables import (
    balance_by_loss,
    baseline_means,
    minus_weighted_loss,
    recipe_leads,
    secondary_endpoints,
    tested_recipe,
    validation,
)

__all__ = [
    "CHOICES",
    "REPAIR",
    "balance_by_loss",
    "baseline_means",
    "leads",
    "leads_by_problem",
    "minus_weighted_loss",
    "ranked_recipes",
    "recipe_leads",
    "secondary_endpoints",
    "tested_recipe",
    "validation",
    "verdicts",
]
