"""Tables of chapter 6: choices and levels, the readings, and runs without output BN."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from study.chapters.claims import CLAIMS
from study.chapters.open_choices.effects import LEVELS, METRIC, PAIRS, design_points
from study.engine.protocol import EPOCH, FAMILY, METHODS, Protocol
from study.figures.words import words
from study.stats.design import model_matrix
from study.stats.intervals import paired_difference
from study.stores.plan import load_or_run

FRESH = range(10, 40)  # seeds that the designed study does not have
KINDS = ["batch_average", "pooled"]


def levels() -> pd.DataFrame:
    """The six choices of the study: the reference reading's level, and the others."""
    rows = [
        (factor, words(str(first)), ", ".join(words(str(other)) for other in others))
        for factor, (first, *others) in LEVELS.items()
    ]
    return pd.DataFrame(rows, columns=["choice", "reference reading", "other levels"])


def design_size(protocols: Sequence[Protocol]) -> tuple[int, int]:
    """How many points a design has, and how many coefficients the model of the study.

    Examples
    --------
    >>> design_size([Protocol.paper("i", "wlf_wbn")])
    (1, 18)
    """
    points = design_points(protocols)
    return len(points), model_matrix(points, LEVELS, PAIRS).shape[1]


def leads_by_loss(metric: str = METRIC) -> pd.DataFrame:
    """Weighted + WBN minus Weighted + BN, by what normalizes the loss, not fitted but run."""
    readings = {"batch's Z": FAMILY[0], "data set's Z": FAMILY[4]}
    return pd.concat(
        paired_difference(
            load_or_run("family", epoch=EPOCH, **reading), "wlf_wbn", "wlf_sbn", metric
        ).assign(loss=name)
        for name, reading in readings.items()
    )


def fresh_runs() -> pd.DataFrame:
    """Rows of all methods without output BN, on seeds that the study does not have."""
    return load_or_run("confirmation", epoch=EPOCH, seed=FRESH)


def first_claim_by_kind(runs: pd.DataFrame) -> tuple[dict[str, str], pd.DataFrame]:
    """The outcome of C1 by the statistics at inference, in words, and the evidence of all."""
    verdicts = {kind: CLAIMS[0].judge(rows) for kind, rows in runs.groupby("inference")}
    outcomes = {words(kind): verdict.outcome for kind, verdict in verdicts.items()}
    return outcomes, pd.concat(verdict.evidence for verdict in verdicts.values())


def without_output_norm(runs: pd.DataFrame) -> pd.DataFrame:
    """Overall accuracy of `fresh_runs`, and beside it Weighted + BN with output BN."""
    normed = load_or_run(
        "evaluation", method="wlf_sbn", inference=KINDS, epoch=EPOCH, seed=FRESH
    ).assign(method=f"{METHODS['wlf_sbn']}, output BN")
    table = pd.concat([runs, normed]).pivot_table(
        "accuracy_overall", ["inference", "experiment"], "method", sort=False
    )
    return table.sort_index()
