"""How far accuracies move where a processor's kernels or the number of threads differ.

Trains 40 stored seeds of experiment (iii) with weighted BN again under each setting, compares their
accuracies with the stored ones, seed by seed and in the mean, and prints a table in Markdown.
``python -m benchmarks.processors`` takes about ten minutes on two cores.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pandas as pd

from study.engine import training
from study.engine.columns import metrics
from study.engine.protocol import EPOCH, Protocol
from study.stores.plan import RESULTS
from study.stores.provenance import cpu_model
from study.stores.sweep import sweep
from study.stores.verify import EARLY_EPOCHS

PROTOCOL, SEEDS = Protocol.paper("iii", "wlf_wbn"), range(40)
SETTINGS = {
    "as it is": {},
    "ATen without AVX": {"ATEN_CPU_CAPABILITY": "default"},
    "MKL's oldest kernels": {"MKL_CBWR": "COMPATIBLE"},
    "two threads": {"WBN_THREADS": "2"},
}


def train(path: str) -> None:
    """Train by the settings of this process, and write the rows."""
    training.THREADS = int(os.environ.get("WBN_THREADS", training.THREADS))
    training.run(PROTOCOL, SEEDS, progress=False).to_pickle(path)


def trained(setting: str) -> pd.DataFrame:
    """Rows under a setting, from a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.pkl")
        subprocess.run(
            [sys.executable, "-m", "benchmarks.processors", str(path)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **SETTINGS[setting]}, check=True,
        )  # fmt: skip
        return pd.read_pickle(path)


def moved(fresh: pd.DataFrame, kept: pd.DataFrame) -> dict[str, str]:
    """Largest changes over all accuracies, in points."""
    columns = [name for name in metrics(kept) if name.startswith("accuracy_")]
    before, after = (100 * t.set_index(["seed", "epoch"])[columns] for t in (kept, fresh))
    change, epoch = after - before, before.index.get_level_values("epoch")
    early, last = change[epoch <= EARLY_EPOCHS], change[epoch == EPOCH]
    same = (change == 0).groupby("seed").all().all(axis=1)
    error = before[epoch == EPOCH].sem()
    return {
        "identical seeds": f"{same.sum()} of {len(same)}",
        f"a run, up to epoch {EARLY_EPOCHS}": f"{early.abs().max(axis=None):.2f}",
        f"a run, epoch {EPOCH}": f"{last.abs().max(axis=None):.2f}",
        f"a mean, epoch {EPOCH}": f"{last.mean().abs().max():.2f}",
        "in standard errors": f"{(last.mean().abs() / error).max():.1f}",
    }


def main() -> None:
    kept = sweep([PROTOCOL], SEEDS, RESULTS / "family", progress=False)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tables = dict(zip(SETTINGS, pool.map(trained, SETTINGS), strict=True))
    rows = {name: moved(table, kept) for name, table in tables.items()}
    names = rows["as it is"]
    print(f"On {cpu_model()}, beside results/family:")
    print(f"| setting | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(row.values())} |")


if __name__ == "__main__":
    train(*sys.argv[1:]) if sys.argv[1:] else main()
