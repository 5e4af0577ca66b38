"""Minority accuracy as one curve of the relative threshold, judged by settings left out."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from study.chapters.variants import TWO, variant
from study.chapters.why.cause import BOTH_KINDS, HARDER, WEIGHTED_LOSS
from study.stores.plan import load_or_run


def settings(experiment: str) -> pd.DataFrame:
    """Mean relative threshold and minority accuracy of every setting of `TWO`.

    A setting is a protocol with averages or pooled statistics at the end of its training; of the
    two references, also after the first and the fifth epoch. Running sums enter with pooled
    statistics, which theirs hardly differ from.
    """
    runs = load_or_run(TWO, "epochs", experiment=experiment, inference=BOTH_KINDS)
    references = pd.concat(variant(m, experiment=experiment) for m in WEIGHTED_LOSS).protocol
    kept = runs[runs.protocol.isin(references) | (runs.epoch == runs.epochs)]
    keys = ["protocol", "method", "inference", "epoch"]
    return kept.groupby(keys)[["relative_threshold", "accuracy_minority"]].mean().reset_index()


def harder_settings() -> dict[str, pd.DataFrame]:
    """The `settings` of (ii) and of (iii)."""
    return {experiment: settings(experiment) for experiment in HARDER}


def left_out_errors(table: pd.DataFrame) -> pd.DataFrame:
    """Errors for each setting, predicted from the others: by one decreasing curve, by their mean.

    The curve is the isotonic regression of the minority accuracy on the relative threshold,
    linear in between and constant beyond its ends. All settings of a protocol are left out
    together, since they share networks.
    """
    rows = []
    for protocol, own in table.groupby("protocol"):
        rest = table[table.protocol != protocol].sort_values("relative_threshold")
        fitted = isotonic_regression(rest.accuracy_minority, increasing=False).x
        curve = np.interp(own.relative_threshold, rest.relative_threshold, fitted)
        errors = {"curve": own.accuracy_minority - curve,
                  "mean": own.accuracy_minority - rest.accuracy_minority.mean()}  # fmt: skip
        rows.append(own.assign(**errors))
    return pd.concat(rows, ignore_index=True)


def ratios(low: float, high: float) -> pd.DataFrame:
    """`error_ratio` over settings whose relative threshold lies in an interval, by experiment."""
    found = {}
    for experiment in HARDER:
        table = settings(experiment)
        within = table[table.relative_threshold.between(low, high)]
        found[experiment] = error_ratio(left_out_errors(within))
    return pd.DataFrame(found).T.rename_axis("experiment").reset_index()


def error_ratio(errors: pd.DataFrame, draws: int = 2000) -> dict[str, float]:
    """Root mean square errors of curve and mean, and their ratio with its 95 % interval.

    The interval is the bootstrap's, over protocols.
    """
    squares = errors.groupby("protocol").agg(
        curve=("curve", lambda e: (e**2).sum()), mean=("mean", lambda e: (e**2).sum()),
        n=("curve", "size"),
    )  # fmt: skip
    random = np.random.default_rng(0)
    drawn = squares.to_numpy()[random.integers(len(squares), size=(draws, len(squares)))].sum(1)
    ratios = np.sqrt(drawn[:, 0] / drawn[:, 1])
    curve, mean, n = squares.sum()
    low, high = np.quantile(ratios, [0.025, 0.975])
    return {"settings": len(errors), "curve": (curve / n) ** 0.5, "mean": (mean / n) ** 0.5,
            "ratio": (curve / mean) ** 0.5, "low": low, "high": high}  # fmt: skip
