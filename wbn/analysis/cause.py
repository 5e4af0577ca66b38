"""Why WLF+WBN loses the minority: arms of the interventions, shares of the gap, one curve."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd
from scipy.optimize import isotonic_regression

from wbn.analysis.claims import EPOCH
from wbn.analysis.counting import predicted
from wbn.analysis.intervals import mean_interval
from wbn.experiments import EXPERIMENTS
from wbn.experiments.diagnosis import minority_signal
from wbn.experiments.plan import stored
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import Trainer

TWO, TEN = "cause", "cause_ten"  # the stores
METHODS, NORMALIZERS = ("wlf_sbn", "wlf_wbn"), ("batch", "dataset")
BOTH_KINDS = ("batch_average", "pooled")
REFERENCE = {
    "loss_normalizer": "batch", "learning_rate": 1e-3, "batch_size": 100, "epochs": EPOCH,
    "statistics": "batch", "output_shift_start": 0.0, "output_shift_rate": 1.0,
}  # fmt: skip
FROZEN = {"output_shift_rate": 0.0}
# What is taken away from WLF+WBN, and how.
INTERVENTIONS = {
    "shift frozen": FROZEN,
    "cross-fitted": {"statistics": "cross_fitted"},
    "running sums": {"statistics": "running_sums"},
}


def arm(method: str, store: str = TWO, **changes: object) -> pd.DataFrame:
    """Rows of one arm: a method with `changes` to the reference reading, other rows left out."""
    norm = "weighted" if method == "wlf_wbn" else "standard"
    norms = {"hidden_norm": norm, "output_norm": norm}
    return stored(store, **{"method": method, **REFERENCE, **norms, **changes})


def paired(
    combine: Iterable[tuple[float, pd.DataFrame]], metric: str = "accuracy_minority"
) -> pd.DataFrame:
    """Mean over seeds of a sum of arms with factors, with its 95 % interval.

    Parameters
    ----------
    combine
        Factors and rows of arms; seeds, experiments, epochs and kinds of statistics that all of
        them have are taken together.
    metric
        The column.

    Returns
    -------
    pandas.DataFrame
        Columns experiment, inference, epoch, mean, low, high, n and sd.

    Examples
    --------
    >>> keys = {"experiment": "i", "inference": "pooled", "epoch": 20}
    >>> a, b = (pd.DataFrame({"seed": [1, 2], **keys, "x": x}) for x in ([0.5, 0.7], [0.1, 0.1]))
    >>> paired([(1, a), (-1, b)], "x")["mean"].round(3).tolist()
    [0.5]
    """
    keys = ["experiment", "inference", "epoch", "seed"]
    columns = [factor * rows.set_index(keys)[metric] for factor, rows in combine]
    total = pd.concat(columns, axis=1, join="inner").sum(axis=1)
    size = sum(abs(factor) for factor, _ in combine)
    grouped = total.groupby(level=keys[:3], sort=False)
    estimates = {key: mean_interval(values, (-size, size)) for key, values in grouped}
    index = pd.MultiIndex.from_tuples(estimates, names=keys[:3])
    return pd.DataFrame(estimates.values(), index).reset_index()


def beyond_half(changed: pd.DataFrame, store: str, metric: str) -> pd.DataFrame:
    """By how much an arm is nearer to WLF+sBN than to WLF+WBN, from half of the way on.

    The metric of the arm minus the mean of the two, paired over seeds: above zero, more than half
    of the gap is gone.
    """
    standard, weighted = (arm(method, store) for method in ("wlf_sbn", "wlf_wbn"))
    return paired([(1, changed), (-0.5, standard), (-0.5, weighted)], metric)


def weighted_arms(store: str, **changes: object) -> dict[str, pd.DataFrame]:
    """Rows of WLF+WBN as it is and with each intervention, averages and pooled statistics.

    Running sums are the averages of the arm that is trained with them.
    """
    arms = {"as it is": {}} | INTERVENTIONS
    rows = {label: arm("wlf_wbn", store, **own, **changes) for label, own in arms.items()}
    return {
        label: _averages_or_pooled(table.replace({"inference": {"running_sums": "batch_average"}}))
        for label, table in rows.items()
    }


def _averages_or_pooled(rows: pd.DataFrame) -> pd.DataFrame:
    """Rows with these two kinds of statistics, after the last epoch."""
    return rows[rows.inference.isin(BOTH_KINDS) & (rows.epoch == EPOCH)]


def remaining(store: str, metric: str, **changes: object) -> dict[str, pd.DataFrame]:
    """Gap of WLF+WBN to WLF+sBN as it is and with each intervention, paired over seeds."""
    standard = arm("wlf_sbn", store, **changes)
    arms = weighted_arms(store, **changes)
    return {label: paired([(1, rows), (-1, standard)], metric) for label, rows in arms.items()}


def shares(store: str, metric: str, draws: int = 2000) -> pd.DataFrame:
    r"""Share of the gap that each intervention takes away, with its 95 % interval.

    .. math:: \frac{\sum_s (a_s - c_s)}{\sum_s (b_s - c_s)}

    over seeds s, with the metric of the arm, of WLF+sBN and of WLF+WBN. The interval is the
    bootstrap's, over seeds. Beyond 1 the arm is ahead of WLF+sBN, below 0 behind WLF+WBN.
    """
    arms = weighted_arms(store)
    keys = ["experiment", "inference", "seed"]
    known = {"standard": _averages_or_pooled(arm("wlf_sbn", store)), **arms}
    columns = {label: rows.set_index(keys)[metric] for label, rows in known.items()}
    table, rows = pd.DataFrame(columns), []
    for (experiment, inference), runs in table.groupby(level=keys[:2], sort=False):
        random = np.random.default_rng(0)
        gains = runs.sub(runs["as it is"], axis=0)
        drawn = gains.to_numpy()[random.integers(len(gains), size=(draws, len(gains)))].sum(1)
        resampled = pd.DataFrame(drawn, columns=gains.columns)
        for label in INTERVENTIONS:
            low, high = (resampled[label] / resampled["standard"]).quantile([0.025, 0.975])
            share = gains[label].sum() / gains["standard"].sum()
            rows.append({"experiment": experiment, "inference": inference, "taken away": label,
                         "mean": share, "low": low, "high": high})  # fmt: skip
    return pd.DataFrame(rows)


def drifts() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Shift and gain of the references in the networks, and in the counting model.

    Both normalizers of the loss; columns experiment, method, loss_normalizer, seed, epoch, shift
    and gain.
    """
    networks, model = [], []
    for experiment, method, normalizer in itertools.product(EXPERIMENTS, METHODS, NORMALIZERS):
        names = {"experiment": experiment, "method": method, "loss_normalizer": normalizer}
        rows = arm(**names, inference="pooled")
        networks.append(rows[["seed", "epoch", "shift", "gain"]].assign(**names))
        seeds = range(rows.seed.min(), rows.seed.max() + 1)
        model.append(predicted(Protocol.paper(**names), seeds).assign(**names))
    return pd.concat(networks), pd.concat(model)


def positions_of_test_images(protocol: Protocol, seed: int, inference: str) -> pd.DataFrame:
    """Where a network puts test images: 0 is the training majority's mean, 1 the minority's.

    Columns position, minority (whether the image belongs to it) and relative_threshold. The
    network is trained here.
    """
    trainer = Trainer(replace(protocol, diagnosis="threshold").resolved(), [seed])
    for _ in range(protocol.epochs):
        trainer.train_epoch()
    signal = minority_signal(trainer.logits(inference), trainer.data)[0]
    scores = trainer.evaluate(inference)
    tau, separation = scores.loc[0, ["relative_threshold", "separation"]]
    return pd.DataFrame({
        "position": tau + signal.double().numpy() / separation,
        "minority": (trainer.data.eval_labels[0] == trainer.data.minority).numpy(),
        "relative_threshold": tau,
    })  # fmt: skip


def settings(experiment: str) -> pd.DataFrame:
    """Mean relative threshold and minority accuracy of every setting of `TWO`.

    A setting is a protocol with averages or pooled statistics at the end of its training; of the
    two references, also after the first and the fifth epoch.
    """
    runs = stored(TWO, "epochs", experiment=experiment, inference=BOTH_KINDS)
    references = pd.concat(arm(m, experiment=experiment) for m in ("wlf_sbn", "wlf_wbn")).protocol
    kept = runs[runs.protocol.isin(references) | (runs.epoch == runs.epochs)]
    keys = ["protocol", "method", "inference", "epoch"]
    return kept.groupby(keys)[["relative_threshold", "accuracy_minority"]].mean().reset_index()


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
