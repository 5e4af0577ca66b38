"""Chapter 9, class-balanced weights.

It asks what the beta of class-balanced weights does: its limits, when raw weights fail, a sweep
under three readings, and the beta that validation chooses.
"""

from study.chapters.betas.figures import beta_curves
from study.chapters.betas.tables import (
    BETAS,
    LABELS,
    final_runs,
    remedies,
    steps,
    validated,
    whole_step,
)
from study.figures.interactive import class_balanced_sliders

__all__ = [
    "BETAS",
    "LABELS",
    "beta_curves",
    "class_balanced_sliders",
    "final_runs",
    "remedies",
    "steps",
    "validated",
    "whole_step",
]
