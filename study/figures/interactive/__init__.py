"""Figures that a reader can move: SVG and a little JavaScript, no kernel and no network.

The picture is complete before any script runs, and the same input gives the same bytes.
"""

from study.figures.interactive.another_batch import another_batch
from study.figures.interactive.class_balanced import class_balanced_sliders
from study.figures.interactive.minority_weight import minority_weight_slider

__all__ = ["another_batch", "class_balanced_sliders", "minority_weight_slider"]
