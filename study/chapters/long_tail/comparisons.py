"""Ten long-tailed classes: the variants that are compared, their means and their differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

from study.engine.protocol import EPOCH
from study.stats.intervals import paired_difference
from study.stores.plan import load_or_run

CHOICES = ("method", "beta", "batch_order", "logit_adjustment")
# What a chapter calls the variants, and what tells them apart. CB are class-balanced weights, IF
# their limit, inverse frequencies; "adjusted" are the logits.
VARIANTS = {
    "Plain + BN": ("lf_sbn", None, "reshuffle", 0.0),
    "CB-weighted + BN": ("wlf_sbn", 0.999, "reshuffle", 0.0),
    "CB-weighted + WBN": ("wlf_wbn", 0.999, "reshuffle", 0.0),
    "IF-weighted + BN": ("wlf_sbn", 1.0, "reshuffle", 0.0),
    "IF-weighted + WBN": ("wlf_wbn", 1.0, "reshuffle", 0.0),
    "Sampler + BN": ("lf_sbn", None, "balanced", 0.0),
    "Adjusted + BN": ("lf_sbn", None, "reshuffle", 1.0),
}
BASELINE = "CB-weighted + BN"  # what the others are compared with
OTHERS = tuple(name for name in VARIANTS if name != BASELINE)
WEIGHTS = ("CB-weighted", "IF-weighted")
# What a chapter calls the networks and losses of `settings` and `convolutions`.
OUTPUTS = {
    "output BN": "with output BN",
    "no output BN": "without output BN",
    "no output BN, data set": "without output BN, loss normalized by the data set",
}
THIRDS = {"largest": range(3), "middle": range(3, 7), "smallest": range(7, 10)}


def compared(table: pd.DataFrame) -> pd.DataFrame:
    """The table with a variant's name for its method, and accuracies of classes taken together.

    Parameters
    ----------
    table
        Rows of ten classes with the columns `CHOICES`, as of ``load_or_run(name, *CHOICES[1:])``.

    Returns
    -------
    pandas.DataFrame
        A copy. ``method`` is a name of `VARIANTS`; accuracy_largest, accuracy_middle and
        accuracy_smallest are means over the classes of `THIRDS`.

    Examples
    --------
    >>> row = dict(zip(CHOICES, VARIANTS["Sampler + BN"], strict=True))
    >>> row |= {f"accuracy_{k}": k / 10 for k in range(10)}
    >>> compared(pd.DataFrame([row])).filter(regex="method|st$").round(2).values.tolist()
    [['Sampler + BN', 0.1, 0.8]]
    """
    names = {choices: name for name, choices in VARIANTS.items()}
    choices = table[list(CHOICES)].astype(object)
    rows = [tuple(row) for row in choices.where(choices.notna(), None).to_numpy()]
    unknown = set(rows) - set(names)
    if unknown:
        raise ValueError(f"no variant has {CHOICES} of {unknown}: choose rows of {tuple(VARIANTS)}")
    together = {
        f"accuracy_{third}": table[[f"accuracy_{k}" for k in classes]].mean(axis=1)
        for third, classes in THIRDS.items()
    }
    return table.assign(method=[names[row] for row in rows], **together)


def gains(
    table: pd.DataFrame,
    names: Sequence[str] = OTHERS,
    baseline: str = BASELINE,
    metric: str = "accuracy_balanced",
) -> pd.DataFrame:
    """Paired differences of several variants to one, of one metric.

    Parameters
    ----------
    table
        Of `compared`.
    names, baseline
        Names in the column method.
    metric
        A column.

    Returns
    -------
    pandas.DataFrame
        Rows of ``paired_difference``, variant by variant.
    """
    return pd.concat(
        [paired_difference(table, name, baseline, metric) for name in names],
        ignore_index=True,
    )


def wbn_minus_sbn(table: pd.DataFrame, metric: str = "accuracy_balanced") -> pd.DataFrame:
    """Paired differences of weighted to standard BN with the same weights, of one metric.

    Parameters
    ----------
    table, metric
        As in `gains`.

    Returns
    -------
    pandas.DataFrame
        Rows of ``paired_difference`` with a name of `WEIGHTS` in the column weights.
    """
    rows = {
        weights: paired_difference(table, f"{weights} + WBN", f"{weights} + BN", metric)
        for weights in WEIGHTS
    }
    return pd.concat(rows, names=["weights"]).reset_index("weights").reset_index(drop=True)


def variants(store: str, *choices: str, **only: object) -> pd.DataFrame:
    """Rows of a stored comparison, as `compared`; the arguments are those of ``load_or_run``."""
    return compared(load_or_run(store, *CHOICES[1:], *choices, **only))


def settings(epoch: int = EPOCH) -> dict[str, pd.DataFrame]:
    """Rows of the paper's network with ten classes, for each setting of output, loss and inference.

    "Output BN" and "no output BN" are evaluated with averages over mini-batches; "pooled" with
    pooled statistics of the same networks; "data set" has the data set's loss normalizer.
    """
    output, bare = (
        variants("long_tail", epoch=epoch),
        variants("bare_output", "loss_normalizer", epoch=epoch),
    )
    batch = bare[bare.loss_normalizer == "batch"]
    dataset = bare[bare.loss_normalizer == "dataset"]
    rows = {
        "output BN": (output, "batch_average"),
        "output BN, pooled": (output, "pooled"),
        "no output BN": (batch, "batch_average"),
        "no output BN, pooled": (batch, "pooled"),
        "no output BN, data set": (dataset, "batch_average"),
        "no output BN, data set, pooled": (dataset, "pooled"),
    }
    return {name: table[table.inference == kind] for name, (table, kind) in rows.items()}


def convolutions() -> dict[str, pd.DataFrame]:
    """Rows of the convolutional network at its last epoch, with and without output BN."""
    table = variants("convolution", "output_norm")
    last = table[table.epoch == table.epoch.max()]
    bare = last.output_norm == "none"
    return {"output BN": last[~bare], "no output BN": last[bare]}


def gaps(tables: Mapping[str, pd.DataFrame], metric: str = "accuracy_balanced") -> pd.DataFrame:
    """`wbn_minus_sbn` of each of several tables.

    Parameters
    ----------
    tables
        Of `settings` or `convolutions`.
    metric
        A column.

    Returns
    -------
    pandas.DataFrame
        A table's name is in the column setting, and what `OUTPUTS` calls its network in the column
        output; the column inference has the statistics.
    """
    return pd.concat(
        [
            wbn_minus_sbn(table, metric).assign(
                setting=name, output=OUTPUTS[name.removesuffix(", pooled")]
            )
            for name, table in tables.items()
        ],
        ignore_index=True,
    )


def variant_means(
    tables: Mapping[str, pd.DataFrame], metric: str = "accuracy_balanced"
) -> pd.DataFrame:
    """Mean of a metric over seeds, a row for each variant, a column for each table and experiment.

    Parameters
    ----------
    tables
        Rows of all `VARIANTS`, as `settings` or `convolutions` gives them.
    metric
        A column.

    Returns
    -------
    pandas.DataFrame
        NaN where a table has no run of a variant.
    """
    runs = pd.concat(tables, names=["setting"]).reset_index("setting")
    return runs.pivot_table(metric, "method", ["setting", "experiment"], sort=False).loc[
        list(VARIANTS)
    ]
