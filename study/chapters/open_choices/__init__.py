"""Chapter 6, what the paper does not say.

It asks which of the choices that the paper leaves open matter, and whether weighted BN is ahead
under any of them: a designed study of six choices, direct comparisons, and fresh runs.
"""

from study.chapters.open_choices.effects import (
    LEVELS,
    PAIRS,
    all_effects,
    count_leads,
    direct_and_fraction,
    direct_effects,
    leads,
    misfits,
    stored_design,
)
from study.chapters.open_choices.tables import (
    design_size,
    first_claim_by_kind,
    fresh_runs,
    leads_by_loss,
    levels,
    without_output_norm,
)
from study.figures.runs import heat_map

__all__ = [
    "LEVELS",
    "PAIRS",
    "all_effects",
    "count_leads",
    "design_size",
    "direct_and_fraction",
    "direct_effects",
    "first_claim_by_kind",
    "fresh_runs",
    "heat_map",
    "leads",
    "leads_by_loss",
    "levels",
    "misfits",
    "stored_design",
    "without_output_norm",
]
