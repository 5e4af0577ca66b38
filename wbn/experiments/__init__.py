"""The paper's experiments: data, protocol, training, sweeps and statistics."""

from wbn.experiments.data import EXPERIMENTS, imbalanced, load_mnist, load_split, long_tail_counts

__all__ = ["EXPERIMENTS", "imbalanced", "load_mnist", "load_split", "long_tail_counts"]
