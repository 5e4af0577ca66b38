"""Experiments of the paper and beyond: data, protocol, training and sweeps."""

from wbn.experiments.data import EXPERIMENTS, LONG_TAILED, load_mnist, load_split
from wbn.experiments.draw import imbalanced, long_tail_counts
from wbn.experiments.protocol import METHODS, Protocol
from wbn.experiments.training import run

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
