"""Chapter 10, beyond two classes.

It asks what weighted BN does on ten long-tailed classes: which method is ahead at which imbalance
ratio, in the paper's network and a convolutional one, on which classes, and how well the methods
are calibrated.
"""

from study.chapters.long_tail.comparisons import (
    BASELINE,
    OUTPUTS,
    convolutions,
    gains,
    gaps,
    settings,
    variant_means,
    variants,
    wbn_minus_sbn,
)
from study.chapters.long_tail.figures import by_class_size, gains_by_ratio, gaps_by_ratio
from study.chapters.long_tail.predictions import LONG_TAIL, by_ratio, by_third, pooling
from study.chapters.long_tail.tables import (
    batches_of_100,
    calibration,
    class_sizes,
    gains_by_digit,
    in_convolutions,
    stored_runs,
    two_classes,
)
from study.figures.runs import heat_map

__all__ = [
    "BASELINE",
    "LONG_TAIL",
    "OUTPUTS",
    "batches_of_100",
    "by_class_size",
    "by_ratio",
    "by_third",
    "calibration",
    "class_sizes",
    "convolutions",
    "gains",
    "gains_by_digit",
    "gains_by_ratio",
    "gaps",
    "gaps_by_ratio",
    "heat_map",
    "in_convolutions",
    "pooling",
    "settings",
    "stored_runs",
    "two_classes",
    "variant_means",
    "variants",
    "wbn_minus_sbn",
]
