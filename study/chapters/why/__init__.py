"""Chapter 7, why weighted BN falls behind.

It asks what Weighted + WBN loses, and why: the decision threshold drifts into the minority, with
the learned shift of the output. A model that knows only how many minority images each mini-batch
has predicts the drift. Interventions remove suspected causes one at a time.
"""

from study.chapters.variants import TEN, TWO
from study.chapters.why.cause import (
    drifts,
    farther_drifts,
    freezing,
    gap_at_thresholds,
    gap_by_loss,
    gap_when_frozen,
    parts,
    parts_by_loss,
    remaining,
    variant_means,
)
from study.chapters.why.figures import (
    drift_curves,
    either_weight,
    one_curve,
    position_histograms,
    remaining_gaps,
)
from study.chapters.why.interventions import (
    modeled_shifts,
    normalizer_effects,
    probed,
    taken_for_minority,
)
from study.chapters.why.predictions import CAUSE, evidence
from study.chapters.why.shift_model import lone_positions, threshold
from study.chapters.why.tables import (
    medians,
    misses,
    other_shifts,
    other_statistics,
    rungs,
    running_sums,
    stored_positions,
    weights_in_layers,
    without_output_norm,
)
from study.chapters.why.threshold_curve import harder_settings
from study.figures.network import places_of_weights

__all__ = [
    "CAUSE",
    "TEN",
    "TWO",
    "drift_curves",
    "drifts",
    "either_weight",
    "evidence",
    "farther_drifts",
    "freezing",
    "gap_at_thresholds",
    "gap_by_loss",
    "gap_when_frozen",
    "harder_settings",
    "lone_positions",
    "medians",
    "misses",
    "modeled_shifts",
    "normalizer_effects",
    "one_curve",
    "other_shifts",
    "other_statistics",
    "parts",
    "parts_by_loss",
    "places_of_weights",
    "position_histograms",
    "probed",
    "remaining",
    "remaining_gaps",
    "rungs",
    "running_sums",
    "stored_positions",
    "taken_for_minority",
    "threshold",
    "variant_means",
    "weights_in_layers",
    "without_output_norm",
]
