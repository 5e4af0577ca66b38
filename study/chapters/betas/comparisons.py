"""What a sweep over the beta of class-balanced weights says: contrasts, and a choice."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from study.engine.columns import SETTING
from study.stats.intervals import intervals, paired_difference

# Steps of beta whose contrasts are told, fixed before the runs: a beta and its baseline.
STEPS = {"0 to 0.99": (0.99, 0.0), "0 to 0.999": (0.999, 0.0), "0 to 1": (1.0, 0.0)}


def by_reading(table: pd.DataFrame) -> pd.DataFrame:
    """Runs with a column ``reading``: "reference", "loss: data set" or "and no output BN".

    Parameters
    ----------
    table
        Rows of ``sweep`` with the columns ``loss_normalizer`` and ``output_norm``.

    Examples
    --------
    >>> table = pd.DataFrame({"loss_normalizer": ["batch", "dataset", "dataset"]})
    >>> table["output_norm"] = ["weighted", "standard", "none"]
    >>> by_reading(table).reading.tolist()
    ['reference', 'loss: data set', 'and no output BN']
    """
    readings = {
        ("batch", True): "reference",
        ("dataset", True): "loss: data set",
        ("dataset", False): "and no output BN",
    }
    keys = zip(table["loss_normalizer"], table["output_norm"] != "none", strict=True)
    return table.assign(reading=[readings[key] for key in keys])


def contrasts(
    table: pd.DataFrame, beta: float, baseline: float, metric: str, by: Sequence[str] = ()
) -> pd.DataFrame:
    r"""Mean :math:`\frac{1}{n} \sum_s (x_s^\beta - x_s^\mathrm{baseline})`, for each method.

    Runs of one seed are compared, as in :func:`study.stats.intervals.paired_difference`. A
    third row has the difference of the two, what the step in beta does under WBN minus what it
    does under standard BN. Both betas are to be declared in advance: between the best and the
    worst of many, the interval would not hold what it promises.

    Parameters
    ----------
    table
        Rows of ``sweep`` with a column ``beta``, of the methods "wlf_sbn" and "wlf_wbn", which
        have the same seeds.
    beta, baseline
        Positive means favor the first.
    metric
        A column.
    by
        Columns that tell protocols apart beyond method and beta.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment, inference, evaluated_on, epoch, `by` and contrast
        ("wlf_sbn", "wlf_wbn" or "difference"), with mean, low, high, n and sd.

    Examples
    --------
    >>> table = pd.DataFrame({"seed": [0, 1] * 4, "beta": [0, 0, 1, 1] * 2})
    >>> table["method"] = ["wlf_sbn"] * 4 + ["wlf_wbn"] * 4
    >>> table["accuracy_overall"] = [0.8, 0.8, 0.9, 0.9, 0.8, 0.8, 0.6, 0.6]
    >>> table[["experiment", "inference", "evaluated_on", "epoch"]] = ["i", "pooled", "test", 20]
    >>> found = contrasts(table, beta=1, baseline=0, metric="accuracy_overall")
    >>> found[["contrast", "mean"]].round(2).values.tolist()
    [['wlf_sbn', 0.1], ['wlf_wbn', -0.2], ['difference', -0.3]]
    """
    groups = [*SETTING, *by]
    runs = table[table["beta"].isin([beta, baseline])]
    wide = runs.pivot(index=[*groups, "seed"], columns=["method", "beta"], values=metric)
    if wide.isna().any(axis=None):
        raise ValueError(
            f"not every seed has both methods with beta {beta} and {baseline}: "
            f"{wide[wide.isna().any(axis=1)].index[0]} lacks one"
        )
    steps = {m: wide[m, beta] - wide[m, baseline] for m in ("wlf_sbn", "wlf_wbn")}
    steps["difference"] = steps["wlf_wbn"] - steps["wlf_sbn"]
    tables = [
        intervals(
            change.rename("change").reset_index(), groups, "change", bounds=(-2.0, 2.0)
            if name == "difference" else (-1.0, 1.0),
        ).assign(contrast=name)
        for name, change in steps.items()
    ]  # fmt: skip
    return pd.concat(tables).sort_values(groups, kind="stable", ignore_index=True)


def paired_by_beta(table: pd.DataFrame, method: str, baseline: str, metric: str) -> pd.DataFrame:
    """Rows of ``paired_difference`` at each beta, the smallest first, with the beta.

    Parameters
    ----------
    table
        Rows of ``sweep`` with a column ``beta``, both methods with the same betas and seeds.
    method, baseline, metric
        As in :func:`study.stats.intervals.paired_difference`.

    Examples
    --------
    >>> table = pd.DataFrame({"seed": [0, 1] * 4, "beta": [0, 0, 1, 1] * 2})
    >>> table["method"] = ["wlf_sbn"] * 4 + ["wlf_wbn"] * 4
    >>> table["accuracy_overall"] = [0.8, 0.8, 0.9, 0.9, 0.8, 0.8, 0.6, 0.6]
    >>> table[["experiment", "inference", "evaluated_on", "epoch"]] = ["i", "pooled", "test", 20]
    >>> found = paired_by_beta(table, "wlf_wbn", "wlf_sbn", "accuracy_overall")
    >>> found[["beta", "mean"]].round(2).values.tolist()
    [[0.0, 0.0], [1.0, -0.3]]
    """
    rows = {
        beta: paired_difference(runs, method, baseline, metric)
        for beta, runs in table.groupby("beta")
    }
    return pd.concat(rows, names=["beta"]).reset_index("beta").reset_index(drop=True)


def chosen_betas(folds: pd.DataFrame, metric: str, by: Sequence[str] = ()) -> pd.DataFrame:
    r"""The :math:`\arg\max_\beta` of a metric's mean over validation folds and seeds.

    Of betas with equal means the smallest is taken, which weights least.

    Parameters
    ----------
    folds
        Rows of ``sweep`` at one epoch, evaluated on validation folds, with the columns
        ``beta`` and ``fold``: every beta with the same folds and seeds.
    metric
        A column.
    by
        Columns beyond experiment, method and inference for each of whose values to choose;
        "seed" gives each seed a choice of its own.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment, method, inference and `by`, with the chosen ``beta``, the
        ``validation`` mean, and in ``tied`` how many betas share it.

    Examples
    --------
    >>> folds = pd.DataFrame({"beta": [0, 0, 0.9, 0.9], "fold": [0, 1] * 2, "seed": 0})
    >>> folds["accuracy_balanced"] = [0.7, 0.8, 0.9, 0.8]
    >>> folds[["experiment", "method", "inference"]] = ["i", "wlf_wbn", "pooled"]
    >>> chosen_betas(folds, "accuracy_balanced")[["beta", "validation", "tied"]].round(2)
       beta  validation  tied
    0   0.9        0.85     1
    """
    groups = ["experiment", "method", "inference", *by]
    sizes = folds.groupby([*groups, "beta"], sort=False).size().groupby(level=groups)
    repeated = folds.duplicated([*groups, "beta", "seed", "fold"]).any()
    if repeated or (sizes.nunique() > 1).any():
        raise ValueError(
            "every beta needs one row for each of the same seeds and folds: select one epoch, "
            "and name in `by` what else tells the rows apart"
        )
    means = folds.groupby([*groups, "beta"])[metric].mean().round(12).reset_index()
    best = means[means[metric] == means.groupby(groups)[metric].transform("max")]
    return best.groupby(groups, as_index=False).agg(
        beta=("beta", "min"), validation=(metric, "first"), tied=("beta", "size")
    )
