"""The signal that decides, of single trained networks: one margin for each test image.

``python -m study.chapters.three_experiments.margins FILE`` trains the networks again and writes
the file anew.
"""

from __future__ import annotations

import sys

import pandas as pd

from study.chapters.three_experiments.thresholds import EXPERIMENT, SEED
from study.engine.data import load_split
from study.engine.protocol import EPOCH, METHODS, Protocol
from study.engine.training import Trainer

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


if __name__ == "__main__":
    trained_margins().to_csv(sys.argv[1], index=False)
