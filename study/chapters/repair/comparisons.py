"""Which weighted BN works: candidates, how validation chooses among them, and what they must show.

Declared before the runs of results/repair_folds, results/repair and results/repair_ten.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache

import pandas as pd

from study.engine.data import EXPERIMENTS, LONG_TAILED
from study.engine.protocol import Protocol
from study.stats.intervals import paired_difference
from study.stores.plan import RESULTS, load_or_run, read_plan

DECLARED = "wbn/analysis/repair.py, 2026-11-17, before the runs"
# The primary endpoint; everything else is secondary.
EPOCH, METRIC, NORMALIZER = 20, "accuracy_balanced", "batch"
KINDS = ("batch_average", "class_averages")  # averages over mini-batches, or those of training
POOLED = ("pooled", "class_averages_pooled")
FINALISTS = 2  # of each loss; the second ones were run when the first ones' results were known
MARGIN = 0.005  # how far a repair may be behind where it is not ahead

STANDARD, WEIGHTED = "standard BN", "weighted BN"
BOTH = {"hidden_norm": "weighted", "output_norm": "weighted"}
HIDDEN = {"hidden_norm": "weighted", "output_norm": "standard", "statistics": "class_averages"}
# What normalizes hidden and output layer; all but the first two are candidates.
ARMS: dict[str, Mapping[str, object]] = {
    STANDARD: {"hidden_norm": "standard", "output_norm": "standard"},
    WEIGHTED: BOTH,
    "weighted BN, frozen shift": BOTH | {"output_shift_rate": 0.0},
    "weighted output": {"hidden_norm": "standard", "output_norm": "weighted"},
    "class averages": HIDDEN,
    "class averages, weighted output": HIDDEN | BOTH,
    "class averages, weighted output, frozen shift": HIDDEN | BOTH | {"output_shift_rate": 0.0},
}
CANDIDATES = tuple(ARMS)[2:]
# The same averages without balance: a control that was added when validation had chosen, before the
# test runs. It is no candidate.
CONTROL = "running averages"
CONTROLS = {CONTROL: HIDDEN | {"hidden_norm": "standard"}}
WEIGHTED_LOSS, ADJUSTED = "weighted loss", "logit adjustment"
SAMPLER, PLAIN = "oversampling", "plain loss"
LOSSES = (WEIGHTED_LOSS, ADJUSTED)
PROBLEMS = [*EXPERIMENTS, *LONG_TAILED]
FIELDS = ("hidden_norm", "output_norm", "statistics", "output_shift_rate")


def loss_of(protocol: Protocol) -> str:
    """The loss of a protocol, in words; oversampling, with a plain loss, is one of its own."""
    if protocol.logit_adjustment:
        return ADJUSTED
    if protocol.method != "lf_sbn":
        return WEIGHTED_LOSS
    return SAMPLER if protocol.batch_order == "balanced" else PLAIN


def arm_of(protocol: Protocol) -> str:
    """The name in `ARMS` or `CONTROLS` of what normalizes a protocol's layers."""
    resolved = protocol.resolved()
    chosen = {name: getattr(resolved, name) for name in FIELDS}
    reference = {name: getattr(Protocol, name) for name in FIELDS}
    arms = (ARMS | CONTROLS).items()
    return next(arm for arm, choices in arms if reference | choices == chosen)


@cache
def labeled(store: str) -> pd.DataFrame:
    """Rows of a store, problems in order, with the columns `loss`, `arm` and `loss_normalizer`."""
    protocols, _ = read_plan(RESULTS / store / "plan.toml")
    labels = pd.DataFrame(
        {"loss": loss_of(p), "arm": arm_of(p), "loss_normalizer": p.resolved().loss_normalizer}
        for p in protocols
    )
    labels.index = [p.hash for p in protocols]
    rows = load_or_run(store).join(labels[~labels.index.duplicated()], on="protocol")
    return rows.sort_values(
        "experiment", key=lambda names: names.map(PROBLEMS.index), kind="stable"
    )


def primary(
    rows: pd.DataFrame,
    epoch: int = EPOCH,
    kinds: Collection[str] = KINDS,
    normalizer: str = NORMALIZER,
) -> pd.DataFrame:
    """Rows of the primary endpoint, or of one that differs from it in what is given.

    Logit adjustment has no weights to normalize by; its rows have the normalizer "batch".
    """
    at = (rows.epoch == epoch) & rows.inference.isin(kinds)
    return rows[at & (rows.loss_normalizer == normalizer)]


def ranked(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean balanced accuracy over experiments, folds and seeds: losses as columns, arms as rows."""
    return rows.pivot_table(METRIC, "arm", "loss", sort=False).loc[list(ARMS)]


def finalists() -> dict[str, list[str]]:
    """The candidates of each loss with the best means of `ranked` at the primary endpoint."""
    means = ranked(primary(labeled("repair_folds"))).loc[list(CANDIDATES), list(LOSSES)]
    return {loss: means[loss].nlargest(FINALISTS).index.tolist() for loss in LOSSES}


def ahead(rows: pd.DataFrame, loss: str, arm: str, metric: str = METRIC) -> pd.DataFrame:
    """`paired_difference` of an arm to standard BN with the same loss, for each problem."""
    chosen = rows[(rows.loss == loss) & rows.arm.isin([arm, STANDARD])]
    # Kinds of statistics differ in name between arms, not in what is compared.
    return paired_difference(
        chosen.assign(method=chosen.arm, inference="primary"), arm, STANDARD, metric
    )


def leads() -> pd.DataFrame:
    """The finalists' `ahead` on the test set at the primary endpoint, in all problems.

    Returns
    -------
    pandas.DataFrame
        A row for each loss, arm and experiment: mean, low, high and n.
    """
    tests = [primary(labeled(store)) for store in ("repair", "repair_ten")]
    found = {
        (loss, arm): pd.concat(ahead(rows, loss, arm) for rows in tests)
        for loss, arms in finalists().items()
        for arm in arms
    }
    return pd.concat(found, names=["loss", "arm"]).reset_index(["loss", "arm"])


def secondary(loss: str, arm: str) -> pd.DataFrame:
    """A finalist's `ahead` on the paper's experiments at other endpoints than the primary one.

    Returns
    -------
    pandas.DataFrame
        A row for each setting and experiment: mean, low, high and n.
    """
    rows = labeled("repair")
    settings = {
        "primary endpoint": (primary(rows), METRIC),
        "pooled statistics": (primary(rows, kinds=POOLED), METRIC),
        "epoch 5": (primary(rows, epoch=5), METRIC),
        "best threshold": (primary(rows), "accuracy_best_threshold"),
        "minority accuracy": (primary(rows), "accuracy_minority"),
        "majority accuracy": (primary(rows), "accuracy_majority"),
    }
    if loss == WEIGHTED_LOSS:
        dataset = primary(rows, normalizer="dataset"), METRIC
        settings |= {"loss normalized by the data set": dataset}
    found = {name: ahead(at, loss, arm, metric) for name, (at, metric) in settings.items()}
    return pd.concat(found, names=["setting"]).reset_index("setting")


def earned(table: pd.DataFrame) -> bool:
    """Whether a repair earns its place in the package, from its rows of `leads`.

    Its interval lies above zero in at least two of the paper's three experiments, and in no
    problem is its mean behind by more than `MARGIN`.

    Examples
    --------
    >>> rows = pd.DataFrame({"experiment": ["i", "ii", "iii", "lt50"]})
    >>> rows = rows.assign(mean=[0.01, 0.02, -0.004, 0.0], low=[0.002, 0.01, -0.01, -0.01])
    >>> earned(rows), earned(rows.assign(mean=[0.01, 0.02, -0.006, 0.0]))
    (True, False)
    """
    clear = (table.low > 0) & table.experiment.isin(list(EXPERIMENTS))
    return bool(clear.sum() >= 2 and (table["mean"] >= -MARGIN).all())


def verdicts() -> pd.Series:
    """For each loss and finalist whether it `earned` its place."""
    groups = leads().groupby(["loss", "arm"], sort=False)
    return pd.Series({key: earned(rows) for key, rows in groups})
