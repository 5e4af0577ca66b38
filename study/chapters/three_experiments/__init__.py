"""Chapter 5, the paper's three experiments.

It asks whether the three experiments replicate: the claims and their verdicts under eight
readings of the text, Table 2 beside our runs, the margins of single networks, and controls.
"""

from study.chapters.three_experiments.predictions import JUDGED, evidence
from study.chapters.three_experiments.slider import threshold_slider
from study.chapters.three_experiments.tables import (
    accidents,
    behind_at_thresholds,
    behind_by_loss,
    cell_by_cell,
    criteria,
    evidence_by_reading,
    falls,
    family_of_readings,
    first_claim,
    minority_by_loss,
    oversampling_minus,
    pooled_minority,
    power_of_c5,
    table_2_scores,
)
from study.chapters.three_experiments.thresholds import agreement, lost_images, stored_margins
from study.figures.batches import digit_sheets
from study.figures.network import places_of_weights
from study.figures.runs import differences, margin_histograms, single_runs, trajectories
from study.stats.table_2 import audit, fitting

__all__ = [
    "JUDGED",
    "accidents",
    "agreement",
    "audit",
    "behind_at_thresholds",
    "behind_by_loss",
    "cell_by_cell",
    "criteria",
    "differences",
    "digit_sheets",
    "evidence",
    "evidence_by_reading",
    "falls",
    "family_of_readings",
    "first_claim",
    "fitting",
    "lost_images",
    "margin_histograms",
    "minority_by_loss",
    "oversampling_minus",
    "places_of_weights",
    "pooled_minority",
    "power_of_c5",
    "single_runs",
    "stored_margins",
    "table_2_scores",
    "threshold_slider",
    "trajectories",
]
