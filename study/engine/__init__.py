"""The experiments of the paper and others: data, protocols, networks and their training."""

from study.engine.data import (
    EXPERIMENTS,
    LONG_TAILED,
    imbalanced,
    load_mnist,
    load_split,
    long_tail_counts,
)
from study.engine.protocol import METHODS, Protocol
from study.engine.training import run

__all__ = [
    "EXPERIMENTS",
    "LONG_TAILED",
    "METHODS",
    "Protocol",
    "imbalanced",
    "load_mnist",
    "load_split",
    "long_tail_counts",
    "run",
]
