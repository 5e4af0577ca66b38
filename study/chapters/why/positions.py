"""Where single trained networks put the test images, relative to the two training classes.

``python -m study.chapters.why.positions FILE`` trains the networks again and writes the file anew.
"""

from __future__ import annotations

import sys
from dataclasses import replace

import pandas as pd

from study.chapters.why.cause import FROZEN
from study.engine.protocol import METHODS, Protocol
from study.engine.threshold import minority_signal
from study.engine.training import Trainer

EXPERIMENT, SEED, INFERENCE = "iii", 100, "pooled"
DIGITS = 4
NETWORKS = {
    METHODS["wlf_sbn"]: Protocol.paper(EXPERIMENT, "wlf_sbn"),
    METHODS["wlf_wbn"]: Protocol.paper(EXPERIMENT, "wlf_wbn"),
    "WBN, shift frozen": Protocol.paper(EXPERIMENT, "wlf_wbn", **FROZEN),
    "WBN, running sums": Protocol.paper(EXPERIMENT, "wlf_wbn", statistics="running_sums"),
}


def trained_positions(protocol: Protocol) -> pd.DataFrame:
    """Where a network, trained from `SEED`, puts the test images: 0 and 1 are the training means.

    Returns
    -------
    pandas.DataFrame
        A row for each test image: `minority`, whether it belongs to that class, its `position`,
        with 0 at the mean of the training majority and 1 at that of the minority, and the
        `relative_threshold`, the same in each row.
    """
    trainer = Trainer(replace(protocol, diagnosis="threshold").resolved(), [SEED])
    for _ in range(protocol.epochs):
        trainer.train_epoch()
    signal = minority_signal(trainer.logits(INFERENCE), trainer.data)[0]
    tau, separation = trainer.evaluate(INFERENCE).loc[0, ["relative_threshold", "separation"]]
    return pd.DataFrame({
        "minority": (trainer.data.eval_labels[0] == trainer.data.minority).numpy(),
        "position": (tau + signal.double().numpy() / separation).round(DIGITS),
        "relative_threshold": round(tau, DIGITS),
    })  # fmt: skip


if __name__ == "__main__":
    rows = {name: trained_positions(protocol) for name, protocol in NETWORKS.items()}
    table = pd.concat(rows, names=["network"]).reset_index("network")
    table.to_csv(sys.argv[1], index=False)
