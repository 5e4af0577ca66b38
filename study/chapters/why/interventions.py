"""Why WBN is behind: suspected causes taken away one at a time, and the probe of weights."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pandas as pd

from study.chapters.variants import paired
from study.chapters.why.cause import HARDER
from study.chapters.why.shift_model import predicted
from study.engine.protocol import EPOCH, FAMILY, PROBES, Protocol
from study.stats.intervals import paired_difference
from study.stores.plan import load_or_run

# Where runs with batches of each size are, and the epoch by which they have made as many steps.
SIZES = {100: ("evaluation", EPOCH), 200: ("mechanism", 2 * EPOCH), 500: ("mechanism", 5 * EPOCH)}
BOTH = {"method": ("wlf_sbn", "wlf_wbn"), "experiment": HARDER}


def ladder() -> dict[str, pd.DataFrame]:
    """Gap in minority accuracy to Weighted + BN in (ii) and (iii), one cause less in each row.

    All are compared with Weighted + BN in the same setting, after about as many steps as 20 epochs
    with batches of 100; oversampling is compared with Weighted + BN in the reference reading.

    Returns
    -------
    dict
        For each intervention rows of `paired_difference`.
    """
    batch, dataset = {"loss_normalizer": "batch"}, {"loss_normalizer": "dataset"}
    reference = load_or_run("family", epoch=EPOCH, **FAMILY[0], **BOTH)
    oversampling = load_or_run("control", epoch=EPOCH, experiment=HARDER).assign(
        method="oversampling"
    )
    interventions = {
        "reference": reference,
        "pooled statistics": load_or_run("evaluation", epoch=EPOCH, inference="pooled", **BOTH),
        "loss: data set": load_or_run("family", epoch=EPOCH, **FAMILY[0] | dataset, **BOTH),
        "batches of 200": larger_batches(batch_order="reshuffle", **batch),
        "… loss: data set": larger_batches(batch_order="reshuffle", **dataset),
        "… stratified": larger_batches(batch_order="stratified", **batch),
        "… both": larger_batches(batch_order="stratified", **dataset),
    }
    gaps = {label: minority_gap(runs) for label, runs in interventions.items()}
    replicated = pd.concat([oversampling, reference])
    return gaps | {"oversampling": minority_gap(replicated, "oversampling")}


def larger_batches(**choices: object) -> pd.DataFrame:
    """Rows of both methods in batches of 200, averages, after as many steps as with 100."""
    store, epoch = SIZES[200]
    return load_or_run(
        store, batch_size=200, epoch=epoch, inference="batch_average", **BOTH, **choices
    )


def normalizer_effects() -> pd.DataFrame:
    r"""What the data set's normalizer changes of the gap to BN, and a difference of the two.

    .. math:: (g_d - g_b)_\text{random} - (g_d - g_b)_\text{stratified}

    with the gaps g in minority accuracy under the data set's and the batch's normalizer, in
    batches of 200 that lack the minority at times, and in batches that never do; paired over
    seeds.

    Returns
    -------
    pandas.DataFrame
        Columns batches ("random", "stratified" and "difference"), experiment, mean, low, high, n.
    """
    orders = {"random": "reshuffle", "stratified": "stratified"}
    terms = {
        name: [
            (sign * side, rows[rows.method == method])
            for sign, normalizer in ((1, "dataset"), (-1, "batch"))
            for rows in [larger_batches(batch_order=order, loss_normalizer=normalizer)]
            for side, method in ((1, "wlf_wbn"), (-1, "wlf_sbn"))
        ]
        for name, order in orders.items()
    }
    opposite = [(-factor, rows) for factor, rows in terms["stratified"]]
    terms["difference"] = [*terms["random"], *opposite]
    tables = {name: paired(combination) for name, combination in terms.items()}
    return pd.concat(tables, names=["batches"]).reset_index("batches")


def modeled_shifts() -> pd.DataFrame:
    """The counting model's shift of WBN in (iii) in batches of 200, random and stratified.

    The stored runs have no shift to compare it with. Columns batches and loss normalizer.
    """
    steps = {"batch_size": 200, "last_batch": "drop", "epochs": SIZES[200][1]}
    shifts = {
        order: {
            normalizer: _last_shift(batch_order=order, loss_normalizer=normalizer, **steps)
            for normalizer in ("batch", "dataset")
        }
        for order in ("reshuffle", "stratified")
    }
    return pd.DataFrame(shifts).T.rename_axis("batches")


def _last_shift(**changes: object) -> float:
    model = predicted(Protocol.paper("iii", "wlf_wbn", **changes), range(10))
    return model[model.epoch == model.epoch.max()]["shift"].mean()


def minority_gap(runs: pd.DataFrame, method: str = "wlf_wbn") -> pd.DataFrame:
    """`paired_difference` of the minority accuracy, a method minus Weighted + BN."""
    return paired_difference(runs, method, "wlf_sbn", "accuracy_minority")


def runs_by_batch_size() -> pd.DataFrame:
    """Rows of WBN in batches of 100, 200 and 500, averages and pooled, after as many steps."""
    only = {"method": "wlf_wbn", "experiment": HARDER, "batch_order": "reshuffle",
            "loss_normalizer": "batch", "inference": ("batch_average", "pooled")}  # fmt: skip
    return pd.concat(
        load_or_run(store, "batch_size", batch_size=size, epoch=epoch, **only)
        for size, (store, epoch) in SIZES.items()
    )


def probed() -> dict[str, pd.DataFrame]:
    """Rows of the probe of weights in (iii), by setting; BN, which sees none, is the null."""
    probe = partial(load_or_run, "probe", experiment="iii")
    weighted = partial(probe, method="wlf_wbn")
    return {
        "Weighted + BN": probe(method="wlf_sbn"),
        "Weighted + WBN": weighted(batch_size=100, loss_normalizer="batch"),
        "loss: data set": weighted(loss_normalizer="dataset"),
        "batches of 200": weighted(batch_size=200),
    }


def taken_for_minority(runs: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Mean share of test images of either class taken for the minority, with either weight.

    Parameters
    ----------
    runs
        For each label rows of ``sweep`` of one protocol with the probes "minority_weight" and
        "majority_weight", at one epoch.

    Returns
    -------
    pandas.DataFrame
        A row for each label; columns for the images and the weight that they carry.
    """
    table = pd.concat(runs, names=["setting"])
    probes = table[table["inference"].isin(PROBES)]
    images = {
        "minority images": probes["accuracy_minority"],
        "majority images": 1 - probes["accuracy_majority"],
    }
    means = probes.assign(**images).pivot_table(list(images), "setting", "inference")
    return means.loc[list(runs), list(images)]
