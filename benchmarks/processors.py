"""How far accuracies move where a processor's kernels or the number of threads differ.

Repeats stored runs of experiment (iii) with weighted BN under each setting, compares their
accuracies seed by seed with the stored ones, and prints a table in Markdown.
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
from study.engine.protocol import Protocol
from study.stores.plan import RESULTS
from study.stores.sweep import sweep
from study.stores.verify import EARLY_EPOCHS

KINDS = ("batch_average", "pooled", "pooled_hidden", "pooled_output", "averaged_output")
DIAGNOSED = {"inference": KINDS, "eval_epochs": (1, 5, 20), "diagnosis": "threshold"}
STORES = {  # a protocol and seeds of a store that are trained again
    "family": (Protocol.paper("iii", "wlf_wbn"), range(40)),
    "cause": (Protocol.paper("iii", "wlf_wbn", **DIAGNOSED), range(100, 120)),
}
SETTINGS = {  # what is trained again, and the environment
    "ATen without AVX": ("family", {"ATEN_CPU_CAPABILITY": "default"}),
    "MKL's oldest kernels": ("family", {"MKL_CBWR": "COMPATIBLE"}),
    "two threads": ("family", {"WBN_THREADS": "2"}),
    "stored by an Intel Xeon": ("cause", {}),
}


def train(store: str, path: str) -> None:
    """Train what is chosen of a store, by the settings of this process, and write the rows."""
    training.THREADS = int(os.environ.get("WBN_THREADS", training.THREADS))
    training.run(*STORES[store], progress=False).to_pickle(path)


def trained(setting: str) -> pd.DataFrame:
    """Rows under a setting, from a process of its own."""
    store, environment = SETTINGS[setting]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.pkl")
        subprocess.run(
            [sys.executable, "-m", "benchmarks.processors", store, str(path)],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment}, check=True,
        )  # fmt: skip
        return pd.read_pickle(path)


def moved(fresh: pd.DataFrame, kept: pd.DataFrame) -> dict[str, str]:
    """Largest changes over kinds of inference and accuracies, in points."""
    runs = ["inference", "seed"]
    columns = [name for name in metrics(kept) if name.startswith("accuracy_")]
    before, after = (100 * t.set_index([*runs, "epoch"])[columns] for t in (kept, fresh))
    change = after - before
    before, epoch = before.loc[change.index], change.index.get_level_values("epoch")
    early, last = change[epoch <= EARLY_EPOCHS], change[epoch == 20]
    same = (change == 0).groupby("seed").all().all(axis=1)
    means = last.groupby("inference").mean().abs()
    error = before[epoch == 20].groupby("inference").sem()
    return {
        "seeds alike": f"{same.sum()} of {len(same)}",
        f"a run, up to epoch {EARLY_EPOCHS}": f"{early.abs().max(axis=None):.2f}",
        "a run, epoch 20": f"{last.abs().max(axis=None):.2f}",
        "a mean, epoch 20": f"{means.max(axis=None):.2f}",
        "in standard errors": f"{(means / error).max(axis=None):.1f}",
    }


def main() -> None:
    kept = {
        name: sweep([protocol], seeds, RESULTS / name, progress=False)
        for name, (protocol, seeds) in STORES.items()
    }
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tables = dict(zip(SETTINGS, pool.map(trained, SETTINGS), strict=True))
    rows = {name: moved(fresh, kept[SETTINGS[name][0]]) for name, fresh in tables.items()}
    names = rows["two threads"]
    print(f"| setting | {' | '.join(names)} |\n|---|{'---:|' * len(names)}")
    for name, row in rows.items():
        print(f"| {name} | {' | '.join(row.values())} |")


if __name__ == "__main__":
    train(*sys.argv[1:]) if sys.argv[1:] else main()
