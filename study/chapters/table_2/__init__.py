"""Chapter 8, where Table 2 could come from.

It asks which ways to train and to normalize test images could have made the paper's Table 2, and
how well such a question can be answered from nine numbers.
"""

from study.chapters.table_2.figures import scores_and_chances
from study.chapters.table_2.hypotheses import HYPOTHESES
from study.chapters.table_2.predictions import FORENSICS
from study.chapters.table_2.scoring import by_cell, cube, own_scores, recovered
from study.chapters.table_2.tables import (
    FIGURE_NAMES,
    at_every_epoch,
    board_by_family,
    by_moment,
    examples_by_epoch,
    families,
    families_by_epoch,
    fits_of_the_design,
    of_groups,
    taken_for,
    trainings_by_epoch,
)

__all__ = [
    "FIGURE_NAMES",
    "FORENSICS",
    "HYPOTHESES",
    "at_every_epoch",
    "board_by_family",
    "by_cell",
    "by_moment",
    "cube",
    "examples_by_epoch",
    "families",
    "families_by_epoch",
    "fits_of_the_design",
    "of_groups",
    "own_scores",
    "recovered",
    "scores_and_chances",
    "taken_for",
    "trainings_by_epoch",
]
