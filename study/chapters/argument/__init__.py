"""Chapters 1 to 4 and the introduction: the paper's argument, step by step.

They ask what weights in the loss mean, what batch normalization does, where the two disagree
about the size of a mini-batch, and which data the three experiments have.
"""

from study.chapters.argument.batches import example_batch
from study.figures.batches import (
    digit_sheets,
    mini_batch,
    places_of_batches,
    share_of_images,
    spread_of_means,
    variance_ratios,
    weight_in_loss,
)
from study.figures.interactive import another_batch, minority_weight_slider

__all__ = [
    "another_batch",
    "digit_sheets",
    "example_batch",
    "mini_batch",
    "minority_weight_slider",
    "places_of_batches",
    "share_of_images",
    "spread_of_means",
    "variance_ratios",
    "weight_in_loss",
]
