"""Tables of chapter 5: Table 2 beside our runs, the claims by reading, and what WBN loses."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd

from study.chapters.claims import CLAIMS, SAME
from study.chapters.variants import paired, variant
from study.engine.protocol import EPOCH, FAMILY
from study.figures.text import percent, written
from study.stats.intervals import intervals, paired_difference
from study.stats.power import equivalence_power, false_refutations, seeds_needed
from study.stats.scores import table_2_score
from study.stats.table_2 import among_single_runs, beside_paper
from study.stores.plan import load_or_run

AVERAGES = "batch_average"
NORMALIZERS = ("batch", "dataset")


def cell_by_cell(table: pd.DataFrame) -> pd.DataFrame:
    """Table 2 beside our runs at the last epoch, in print: `beside_paper` and `among_single_runs`.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep``, with one protocol for each experiment and method, and 39
        seeds or more.

    Returns
    -------
    pandas.DataFrame
        A row for each of the 27 cells, by experiment and method, with its class, the number of
        the paper, whether that fits among single runs, our mean with its 95 % interval, and the
        range of single runs.
    """
    keys = ["experiment", "method", "metric"]
    runs = among_single_runs(table[table.epoch == table.epoch.max()])
    cells = beside_paper(table).merge(
        runs[[*keys, "low", "high", "inside"]], on=keys, suffixes=("", "_run")
    )
    ends = zip(cells.low_run, cells.high_run, strict=True)
    return pd.DataFrame(
        {
            "experiment": cells.experiment,
            "method": cells.method,
            "class": cells.metric.str.removeprefix("accuracy_"),
            "paper": cells.paper,
            "fits": cells.inside.map({True: "yes", False: "no"}),
            "ours": written(cells),
            "single runs": [f"{percent(low)} to {percent(high)}" for low, high in ends],
        }
    ).set_index(["experiment", "method"])


def family_of_readings() -> pd.DataFrame:
    """The choices of each reading, from 1 on."""
    return pd.DataFrame(FAMILY, pd.RangeIndex(1, len(FAMILY) + 1, name="reading"))


def criteria() -> pd.DataFrame:
    """Each claim, and by what it is judged."""
    return pd.DataFrame(
        {
            "claim": [f"{c.name} ({c.origin}). {c.words}" for c in CLAIMS],
            "criterion": [c.criterion for c in CLAIMS],
        }
    )


def first_claim(tables: Mapping[object, pd.DataFrame], name: str) -> pd.DataFrame:
    """The outcome of C1 in each of several tables of runs; `name` says what their keys are."""
    outcomes = {key: CLAIMS[0].judge(rows).outcome for key, rows in tables.items()}
    return pd.DataFrame({"C1": outcomes}).rename_axis(name)


def evidence_by_reading(family: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """The differences that decide C1 under each reading."""
    return {
        f"reading {n}": CLAIMS[0].under(reading, family).evidence
        for n, reading in enumerate(FAMILY, 1)
    }


def minority_by_loss(readings: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Minority accuracy of each method with 95 % intervals, by what normalizes the loss."""
    rows = pd.concat(_by_loss(readings), names=["loss_normalizer"]).reset_index("loss_normalizer")
    return intervals(rows, ["loss_normalizer", "method", "experiment"], "accuracy_minority")


def behind_by_loss(readings: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """Weighted + WBN minus Weighted + BN in three accuracies, by what normalizes the loss."""
    return pd.concat(
        paired_difference(rows, "wlf_wbn", "wlf_sbn", f"accuracy_{kind}").assign(loss=normalizer)
        for kind in ("balanced", "minority", "overall")
        for normalizer, rows in _by_loss(readings).items()
    )


def _by_loss(readings: Mapping[int, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Readings 1 and 5, which differ in nothing else."""
    return {"batch": readings[1], "dataset": readings[5]}


def falls() -> pd.DataFrame:
    """Minority accuracy of Weighted + WBN in (iii), by epoch and what normalizes the loss."""
    only = {"experiment": "iii", "method": "wlf_wbn"}
    runs = {
        "the batch": load_or_run("family", **FAMILY[0], **only),
        "the data set": load_or_run("family", **FAMILY[4], **only),
        "the batch, longer runs": load_or_run("longer", inference=AVERAGES, **only),
    }
    rows = pd.concat(runs, names=["loss"]).reset_index("loss")
    return intervals(
        rows[rows.epoch.isin([5, 10, 20, 50, 100])], ["loss", "epoch"], "accuracy_minority"
    )


def behind_at_thresholds() -> pd.DataFrame:
    """Weighted + WBN minus Weighted + BN at its own and the best threshold, and in precision."""
    rows = []
    for normalizer in NORMALIZERS:
        only = {"loss_normalizer": normalizer, "inference": AVERAGES, "epoch": EPOCH}
        pair = [(1, variant("wlf_wbn", **only)), (-1, variant("wlf_sbn", **only))]
        rows += [
            paired(pair, metric).assign(loss=normalizer, metric=metric)
            for metric in ("accuracy_balanced", "accuracy_best_threshold", "average_precision")
        ]
    return pd.concat(rows).sort_values("experiment", kind="stable")


def pooled_minority() -> pd.DataFrame:
    """Minority accuracy of WBN with averages and pooled, the loss normalized by the data set."""
    only = {"inference": [AVERAGES, "pooled"], "epoch": EPOCH}
    runs = variant("wlf_wbn", loss_normalizer="dataset", **only)
    rows = intervals(runs, ["inference", "experiment"], "accuracy_minority")
    return rows.sort_values("experiment", kind="stable")


def oversampling_minus(baseline: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Oversampling minus a method in three accuracies, paired over seeds."""
    control = load_or_run("control", epoch=EPOCH).assign(method="oversampling")
    both = pd.concat([control, runs])
    return pd.concat(
        paired_difference(both, "oversampling", baseline, f"accuracy_{kind}")
        for kind in ("balanced", "minority", "majority")
    )


def accidents(readings: Mapping[int, pd.DataFrame]) -> pd.DataFrame:
    """How often the rule of C1 would refute methods that do not differ, by reading."""
    rates = {n: false_refutations(rows) for n, rows in readings.items()}
    return pd.DataFrame({"refuted by accident": rates}).rename_axis("reading")


def table_2_scores(tables: Mapping[object, pd.DataFrame], names: str | list[str]) -> pd.DataFrame:
    """The `table_2_score` of several tables of runs; `names` says what their keys are."""
    scores = {key: table_2_score(rows) for key, rows in tables.items()}
    return pd.DataFrame(scores).T.rename_axis(names)


def power_of_c5(runs: pd.DataFrame) -> pd.DataFrame:
    """The chance that C5 could hold with ten seeds, and the seeds that 80 % would need."""
    power = {}
    for n, reading in enumerate(FAMILY, 1):
        sd = CLAIMS[4].under(reading, runs).evidence.sd
        chance, seeds = equivalence_power(sd, 10, SAME), seeds_needed(sd, SAME)
        power[n] = {"chance": f"{100 * chance:.2f}", "seeds": seeds}
    return pd.DataFrame.from_dict(power, "index").rename_axis("reading")
