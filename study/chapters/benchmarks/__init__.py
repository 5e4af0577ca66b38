"""The benchmarks page: what a weighted layer costs, against its targets and alternatives."""

from study.chapters.benchmarks.figures import ratio_dots, replica_times
from study.chapters.benchmarks.tables import (
    behaviors,
    operators,
    other_uses,
    provenance,
    shown,
    side_by_side,
    slope,
    table,
    targets,
)

__all__ = [
    "behaviors",
    "operators",
    "other_uses",
    "provenance",
    "ratio_dots",
    "replica_times",
    "shown",
    "side_by_side",
    "slope",
    "table",
    "targets",
]
