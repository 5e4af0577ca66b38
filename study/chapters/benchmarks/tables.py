"""What `make bench` has measured: ratios to ``nn.BatchNorm``."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from study.stores.plan import RESULTS

TABLES = RESULTS / "benchmarks"
VIEWS = (
    "detach", "expand", "flatten", "lift_fresh", "movedim", "mT", "promote_types", "reshape",
    "resolve_conj", "resolve_neg", "slice", "to", "unsqueeze", "view",
)  # fmt: skip


def provenance() -> dict:
    """What was timed, when, with what and on what."""
    return json.loads((TABLES / "provenance.json").read_text())


def table(name: str) -> pd.DataFrame:
    """A table that is stored, as it was written."""
    return pd.read_csv(TABLES / f"{name}.csv")


def ratios(use: str, candidate: str) -> pd.DataFrame:
    """Ratios to ``nn.BatchNorm`` of one kind of use: a row a shape, a column a thread count."""
    rows = table("layers").query("use == @use and candidate == @candidate")
    found = rows.pivot(index="shape", columns="threads", values="ratio")
    return found.loc[rows["shape"].unique()]


def side_by_side(use: str, **candidates: str) -> pd.DataFrame:
    """Ratios of candidates by what they are called, each with a column for a number of threads."""
    found = {name: shown(ratios(use, candidate)) for name, candidate in candidates.items()}
    both = pd.concat(found, axis=1)
    return both.set_axis([f"{name}, {threads}" for name, threads in both.columns], axis=1)


def shown(found: pd.DataFrame) -> pd.DataFrame:
    """Ratios by shapes and numbers of threads, as a table for readers."""
    threads = {number: f"{number} thread{'s' if number > 1 else ''}" for number in found.columns}
    shapes = found.index.names.index("shape")
    renamed = found.rename(columns=threads).rename_axis(columns=None)
    return renamed.rename(index=lambda shape: shape.replace(" x ", " × "), level=shapes).round(2)


def other_uses() -> pd.DataFrame:
    """Ratios in other uses than an eager training step, a row for each use and shape."""
    compiled = ratios("compiled", "compiled")
    found = {
        "at inference": ratios("inference", "inference"),
        "compiled": compiled,
        "compiled, to the eager one": compiled / ratios("compiled", "eager"),
        "channels last": ratios("channels last", "weights"),
        "bfloat16": ratios("bfloat16", "weights"),
    }
    return pd.concat(found, names=["use"]).round(2)


def geometric_mean(values: pd.Series | pd.DataFrame) -> float:
    r"""The mean of ratios, :math:`\exp \frac{1}{n} \sum_i \log r_i`.

    Examples
    --------
    >>> import pandas as pd
    >>> from study.chapters.benchmarks.tables import geometric_mean
    >>> geometric_mean(pd.Series([0.5, 2.0]))
    1.0
    """
    return float(np.exp(np.log(values.to_numpy()).mean()))


def slope(rows: pd.DataFrame, value: str) -> float:
    """Slope of log(value) over log(size): 1 where one grows as the other, 0 where it doesn't."""
    return float(np.polyfit(np.log(rows["size"]), np.log(rows[value]), 1)[0])


def targets() -> pd.DataFrame:
    """What was aimed for, set beside what was measured, the worse of the numbers of threads.

    The engine trains on one thread, and is measured there.
    """
    weights, plain = ratios("training", "weights"), ratios("training", "no weights")
    compiled, inference = ratios("compiled", "compiled"), ratios("inference", "inference")
    small = [np.prod([int(n) for n in shape.split(" x ")]) < 1e5 for shape in plain.index]
    models, memory, engine = table("models"), table("memory"), table("engine")
    of_model = models[models["candidate"] == "weights"]["ratio"].max()
    of_memory = memory[memory["candidate"] == "weights"]["ratio"].max()
    sixteen = engine.query(  # on one thread, with which it trains
        "varied == 'replicas' and size == 16 and candidate == 'engine' and threads == 1"
    )
    aims = [
        ("with weights, geometric mean", 1.6, max(geometric_mean(weights[t]) for t in weights)),
        ("with weights, slowest shape", 2.2, weights.max().max()),
        ("without weights, slowest large shape", 1.05, plain[~np.array(small)].max().max()),
        ("without weights, slowest small shape", 1.3, plain[small].max().max()),
        ("compiled, geometric mean", 1.1, max(geometric_mean(compiled[t]) for t in compiled)),
        ("inference, slowest shape", 1.02, inference.max().max()),
        ("channels last", 1.5, ratios("channels last", "weights").max().max()),
        ("bfloat16, slowest shape", 1.5, ratios("bfloat16", "weights").max().max()),
        ("memory of a training step", 1.1, of_memory),
        ("ResNet-18, a training step", 1.05, of_model),
        ("engine at 16 replicas, to its floor", 1.4, sixteen["ratio"].item()),
    ]
    rows = pd.DataFrame(aims, columns=["what", "at most", "measured"])
    met = np.where(rows["measured"] <= rows["at most"], "yes", "no")
    return rows.assign(measured=rows["measured"].round(2), met=met)


def behaviors() -> pd.DataFrame:
    """Which alternative has which behavior, as marks that a reader sees at a glance."""
    rows = table("conformance")
    marks = rows.assign(mark=np.where(rows["passes"], "✓", "✗"))
    found = marks.pivot(index="behavior", columns="alternative", values="mark")
    return found.loc[rows["behavior"].unique(), rows["alternative"].unique()]


def operators() -> pd.DataFrame:
    """Operators that a training step calls, before the layer was rewritten for speed and now.

    Those that only give another view of a tensor, or check whether one is needed, are left out.
    """
    calls = {"before": table("operators_before"), "now": table("operators")}
    at_work = {k: t[~t["operator"].isin(VIEWS)] for k, t in calls.items()}
    return pd.DataFrame({k: t.groupby("candidate")["calls"].sum() for k, t in at_work.items()})
