"""The stored margins of single networks, and what a threshold makes of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
from torch import Tensor

from study.engine.data import load_split
from study.engine.protocol import EPOCH, FAMILY, METHODS
from study.stores.plan import RESULTS, load_or_run

FILE = RESULTS / "margins.csv"  # `study.chapters.three_experiments.margins` writes it
EXPERIMENT, SEED = "iii", 0
SHEET = 36  # images of a sheet


def stored_margins() -> pd.DataFrame:
    """The table of `margins.trained_margins`, as stored."""
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


def agreement(margins: pd.DataFrame, minority: pd.Series) -> pd.DataFrame:
    """Balanced accuracy of the networks behind stored margins, and of the stored runs.

    Parameters
    ----------
    margins
        A column for each network.
    minority
        Whether each image belongs to the minority class.
    """
    here = {name: balanced_accuracy(margins[name], minority) for name in margins}
    runs = load_or_run("family", **FAMILY[0], experiment=EXPERIMENT, epoch=EPOCH)
    runs = runs[runs.seed == SEED].replace(METHODS).set_index("method")
    table = pd.DataFrame({"here": here, "stored": runs["accuracy_balanced"]})
    return table.loc[list(METHODS.values())].rename_axis("method")


def lost_images(margins: pd.DataFrame, minority: pd.Series) -> dict[str, Tensor]:
    """Up to 36 random minority images that each method takes for the majority.

    Parameters
    ----------
    margins, minority
        As in `agreement`.
    """
    split = load_split(EXPERIMENT, seed=SEED)
    rare = split.test_images[split.test_labels == split.minority]
    random, lost = np.random.default_rng(0), {}
    for name in METHODS.values():
        wrong = np.flatnonzero(margins[name][minority] < 0)
        lost[name] = rare[random.permutation(wrong)[:SHEET]]
    return lost
