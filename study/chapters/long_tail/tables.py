"""Tables of chapter 10: batches, stored runs, and the variants in both networks."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from study.chapters.argument.batches import what_batches_have
from study.chapters.long_tail.comparisons import (
    BASELINE,
    OUTPUTS,
    VARIANTS,
    gains,
    variant_means,
)
from study.engine.data import LONG_TAILED, load_split
from study.engine.protocol import EPOCH, FAMILY
from study.figures.text import in_percent, written
from study.stats.intervals import paired_difference
from study.stores.plan import RESULTS, load_or_run
from study.stores.store import Store

STORES = ("long_tail", "bare_output", "convolution")


def class_sizes() -> dict[str, list[int]]:
    """Training images of each class, in (iii) and in each of the long-tailed data sets."""
    return {name: load_split(name, seed=0).counts.long().tolist() for name in ("iii", *LONG_TAILED)}


def batches_of_100(sizes: Mapping[str, list[int]]) -> pd.DataFrame:
    """The table of `what_batches_have`, with percents and names for a reader."""
    table = what_batches_have(sizes, batch_size=100)
    table = in_percent(table.iloc[:, :2]).join(table.iloc[:, 2:])
    return table.set_axis(
        [
            "lacks the smallest class, %",
            "lacks some class, %",
            "classes it lacks",
            "samples it is worth, β = 0.999",
            "samples it is worth, β = 1",
        ],
        axis=1,
    )


def stored_runs() -> pd.DataFrame:
    """How many protocols and seeds each of `STORES` has, and the time they took."""
    table = {}
    for store in STORES:
        rows = load_or_run(store)
        (seeds,) = set(rows.groupby("protocol").seed.nunique())
        seconds = sum(s for _, s in Store(RESULTS / store).units())
        table[f"`{store}`"] = {
            "protocols": rows.protocol.nunique(),
            "seeds of each": seeds,
            "minutes of one core": round(seconds / 60),
        }
    return pd.DataFrame(table).T.rename_axis("store")


def in_convolutions(networks: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Means of the variants in `convolutions`, and how far each is ahead of `BASELINE`."""
    percents = in_percent(variant_means(networks).droplevel("experiment", axis=1))
    parts = {}
    for name, rows in networks.items():
        ahead = gains(rows).set_index("method")
        columns = {
            "balanced accuracy, %": percents[name],
            f"points ahead of {BASELINE}": written(ahead, sign=True),
        }
        parts[OUTPUTS[name]] = pd.DataFrame(columns, index=pd.Index(VARIANTS, name="method"))
    return pd.concat(parts)


def gains_by_digit(table: pd.DataFrame) -> pd.DataFrame:
    """Gains of three variants in the accuracy of each digit, with columns digit and ratio."""
    shown = ["CB-weighted + WBN", "Sampler + BN", "Adjusted + BN"]
    cells = {f"digit {k}": gains(table, shown, BASELINE, f"accuracy_{k}") for k in range(10)}
    rows = pd.concat(cells, names=["digit"]).reset_index("digit")
    return rows.assign(ratio=rows.experiment.map(LONG_TAILED))


def calibration(
    paper: Mapping[str, pd.DataFrame], convolutional: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Expected calibration error of the variants at a ratio of 100, in both networks.

    Parameters
    ----------
    paper, convolutional
        Of `settings` and of `convolutions`.
    """
    errors = {}
    networks = {"paper's network": paper, "convolutional network": convolutional}
    for network, tables in networks.items():
        outputs = {OUTPUTS[name]: tables[name] for name in convolutional}
        means = variant_means(outputs, "calibration_error")
        errors[network] = means.xs("lt100", axis=1, level="experiment")
    return pd.concat(errors, axis=1)


def two_classes() -> pd.DataFrame:
    """Weighted + WBN minus Weighted + BN in (iii), by what normalizes the loss."""
    found = {}
    for reading in (FAMILY[0], FAMILY[4]):
        rows = load_or_run("family", experiment="iii", epoch=EPOCH, **reading)
        found[reading["loss_normalizer"]] = paired_difference(
            rows, "wlf_wbn", "wlf_sbn", "accuracy_balanced"
        )
    return pd.concat(found, names=["loss_normalizer"]).reset_index(level=0)
