"""``python -m benchmarks`` measures everything and writes the tables to results/benchmarks."""

import argparse
import json
import subprocess
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pandas as pd
import torch

from benchmarks import conformance, engine, layers, models, operators
from study.chapters.benchmarks.tables import TABLES
from study.stores.provenance import cpu_model

PACKAGES = ("torch", "torchvision", "numpy", "keras")
THREADS = (1, 2)


def main() -> None:
    """Run each part, tell how it goes, and write its table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="turns of each candidate")
    parser.add_argument("--out", type=Path, default=TABLES)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    rounds, start = options.rounds, time.monotonic()
    parts: dict[str, Callable[[], Iterable[dict]]] = {
        "conformance": conformance.rows,
        "operators": operators.counted,
        "memory": models.memory,  # before what is timed, with memory that is kept
        "engine_memory": engine.memory,
        "layers": lambda: layers.rows(THREADS, rounds),
        "models": lambda: models.rows(THREADS, rounds),
        "engine": lambda: engine.rows(THREADS, max(5, rounds // 4)),
    }
    for number, (name, rows) in enumerate(parts.items(), 1):
        table = []
        for row in rows():
            table.append(row)
            told = ", ".join(str(value) for value in list(row.values())[:4])
            print(f"[{number}/{len(parts)} {time.monotonic() - start:4.0f} s] {told}", flush=True)
        pd.DataFrame(table).to_csv(options.out / f"{name}.csv", index=False)
    write_provenance(options.out, rounds, time.monotonic() - start)


def write_provenance(folder: Path, rounds: int, seconds: float) -> None:
    """What was timed, when, with what and on what."""
    provenance = {
        "command": "make bench",
        "commit": commit(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds),
        "rounds": rounds,
        "versions": {name: installed_version(name) for name in PACKAGES},
        "cpu": cpu_model(),
        "threads": list(THREADS),
        "compiler": torch.__config__.show().splitlines()[1].strip(" -"),
    }
    (folder / "provenance.json").write_text(json.dumps(provenance, indent=1) + "\n")


def commit() -> str:
    """The commit that is timed, marked where files differ from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True
    )
    return described.stdout.strip() or "unknown"


def installed_version(package: str) -> str | None:
    """Its version, or None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    main()
