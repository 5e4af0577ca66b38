"""Experiments of the paper and beyond: data, protocol, training, sweeps and statistics."""

from wbn.experiments.data import (
    EXPERIMENTS,
    LONG_TAILED,
    imbalanced,
    load_mnist,
    load_split,
    long_tail_counts,
)
from wbn.experiments.example import ExampleBatch, example_batch
from wbn.experiments.protocol import METHODS, Protocol
from wbn.experiments.training import run

__all__ = [
    "EXPERIMENTS",
    "LONG_TAILED",
    "METHODS",
    "ExampleBatch",
    "Protocol",
    "example_batch",
    "imbalanced",
    "load_mnist",
    "load_split",
    "long_tail_counts",
    "run",
]
