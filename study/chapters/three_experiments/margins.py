"""The signal that decides, of single trained networks: one margin for each test image.

``python -m study.chapters.three_experiments.margins FILE`` trains the networks again and writes
the file anew.
"""

from __future__ import annotations

import sys

import pandas as pd

from study.engine.data import load_split
from study.engine.protocol import EPOCH, METHODS, Protocol
from study.engine.training import Trainer
from study.stores.plan import RESULTS

FILE = RESULTS / "margins.csv"
EXPERIMENT, SEED = "iii", 0
DIGITS = 3
OTHER = f"{METHODS['wlf_wbn']}, loss normalized by the data set"
NETWORKS = {
    **{name: Protocol.paper(EXPERIMENT, method) for method, name in METHODS.items()},
    OTHER: Protocol.paper(EXPERIMENT, "wlf_wbn", loss_normalizer="dataset"),
}


def trained_margins(epochs: int = EPOCH) -> pd.DataFrame:
    """Logit of the minority minus that of the majority, with averages over mini-batches.

    Returns
    -------
    pandas.DataFrame
        A row for each test image of (iii): `minority`, whether it belongs to that class, and its
        margin in each of `NETWORKS`, trained from seed 0. A positive margin is taken for the
        minority.
    """
    split = load_split(EXPERIMENT, SEED)
    table = {"minority": (split.test_labels == split.minority).numpy()}
    for name, protocol in NETWORKS.items():
        trainer = Trainer(protocol.resolved(), seeds=[SEED])
        for _ in range(epochs):
            trainer.train_epoch()
        logits = trainer.logits("batch_average")[0].double()
        margin = logits[:, split.minority] - logits[:, 1 - split.minority]
        table[name] = margin.numpy().round(DIGITS)
    return pd.DataFrame(table)


def stored_margins() -> pd.DataFrame:
    """`trained_margins` as they were stored."""
    return pd.read_csv(FILE)


def balanced_accuracy(margin: pd.Series, minority: pd.Series, threshold: float = 0.0) -> float:
    """Mean of the shares of minority margins above a threshold and of majority margins below.

    Examples
    --------
    >>> margin, minority = pd.Series([-1.0, 0.5, 2.0]), pd.Series([False, False, True])
    >>> balanced_accuracy(margin, minority), balanced_accuracy(margin, minority, 1.0)
    (0.75, 1.0)
    """
    taken = margin > threshold
    return float(taken[minority].mean() + (~taken)[~minority].mean()) / 2


if __name__ == "__main__":
    trained_margins().to_csv(sys.argv[1], index=False)
