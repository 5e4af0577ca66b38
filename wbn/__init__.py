"""Weighted batch normalization for class-weighted losses (Yasuda and Ueno, 2019)."""

from wbn.class_averages import (
    ClassAveragedBatchNorm1d,
    ClassAveragedBatchNorm2d,
    ClassAveragedBatchNorm3d,
    ClassAverages,
)
from wbn.context import current_sample_weight, sample_weights
from wbn.conversion import convert, register, revert
from wbn.functional import weighted_batch_norm, weighted_moments
from wbn.layers import (
    WeightedBatchNorm,
    WeightedBatchNorm1d,
    WeightedBatchNorm2d,
    WeightedBatchNorm3d,
)
from wbn.loss import WeightedCrossEntropyLoss, weighted_cross_entropy, weighted_mean
from wbn.population import population_statistics
from wbn.weights import (
    class_balanced,
    class_counts,
    effective_class_sizes,
    effective_sample_size,
    inverse_frequency,
    logit_adjustment,
    per_sample,
    rescale,
    uniform,
)

__version__ = "0.1.0"

__all__ = [
    "ClassAveragedBatchNorm1d",
    "ClassAveragedBatchNorm2d",
    "ClassAveragedBatchNorm3d",
    "ClassAverages",
    "WeightedBatchNorm",
    "WeightedBatchNorm1d",
    "WeightedBatchNorm2d",
    "WeightedBatchNorm3d",
    "WeightedCrossEntropyLoss",
    "class_balanced",
    "class_counts",
    "convert",
    "current_sample_weight",
    "effective_class_sizes",
    "effective_sample_size",
    "inverse_frequency",
    "logit_adjustment",
    "per_sample",
    "population_statistics",
    "register",
    "rescale",
    "revert",
    "sample_weights",
    "uniform",
    "weighted_batch_norm",
    "weighted_cross_entropy",
    "weighted_mean",
    "weighted_moments",
]
