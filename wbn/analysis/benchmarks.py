"""What `make bench` has measured: ratios to ``nn.BatchNorm``, and whether they are of this code."""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd

import wbn
from wbn.experiments.plan import RESULTS

TABLES = RESULTS / "benchmarks"
TIMED = (
    "blocks", "checks", "context", "core", "distributed", "divisors", "layers", "normalization",
    "recall",
)  # fmt: skip


def code_hash(folder: Path | None = None) -> str:
    """Hash of the layer's code: what Python runs, without docstrings, comments and layout.

    Examples
    --------
    >>> from wbn.analysis.benchmarks import code_hash
    >>> len(code_hash())
    12
    """
    folder = Path(wbn.__file__).parent if folder is None else folder
    trees = [without_docstrings(ast.parse((folder / f"{name}.py").read_text())) for name in TIMED]
    return hashlib.sha256("".join(map(ast.dump, trees)).encode()).hexdigest()[:12]


def without_docstrings(tree: ast.Module) -> ast.Module:
    """The tree, its docstrings replaced by empty ones."""
    for node in ast.walk(tree):
        kinds = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef
        if isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            node.body[0] = ast.Expr(ast.Constant(""))
    return tree


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


def geometric_mean(values: pd.Series | pd.DataFrame) -> float:
    r"""The mean of ratios, :math:`\exp \frac{1}{n} \sum_i \log r_i`.

    Examples
    --------
    >>> import pandas as pd
    >>> from wbn.analysis.benchmarks import geometric_mean
    >>> geometric_mean(pd.Series([0.5, 2.0]))
    1.0
    """
    return float(np.exp(np.log(values.to_numpy()).mean()))


def slope(rows: pd.DataFrame, value: str) -> float:
    """Slope of log(value) over log(size): 1 where one grows as the other, 0 where it doesn't."""
    return float(np.polyfit(np.log(rows["size"]), np.log(rows[value]), 1)[0])
