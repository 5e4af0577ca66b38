"""What is run and stored as one, and what made it."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import torch

import wbn
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import THREADS
from wbn.kernels import native

# The files whose content decides the numbers of a run.
SOURCES = (
    "arrays", "checks", "context", "core", "distributed", "divisors", "kernels", "layers",
    "loss", "normalization", "recall", "running", "weights",
    "experiments/block", "experiments/convolution", "experiments/data",
    "experiments/diagnosis", "experiments/draw", "experiments/evaluation", "experiments/fetch",
    "experiments/layer", "experiments/network", "experiments/probe", "experiments/protocol",
    "experiments/rows", "experiments/slips", "experiments/sources", "experiments/threshold",
    "experiments/training", "experiments/values", "experiments/variants",
)  # fmt: skip


@dataclass(frozen=True)
class Unit:
    """What is run and stored as one: a protocol and a block of seeds."""

    protocol: Protocol
    seeds: tuple[int, ...]

    @property
    def name(self) -> str:
        """Experiment, method, protocol hash and seeds, as a file name."""
        p, (first, last) = self.protocol, (self.seeds[0], self.seeds[-1])
        seeds = f"{first}" if first == last else f"{first}-{last}"
        if len(self.seeds) != last - first + 1:
            digest = hashlib.sha256(json.dumps(self.seeds).encode()).hexdigest()
            seeds += f"-{digest[:6]}"
        return f"{p.experiment}_{p.method}_{p.hash}_{seeds}"


@cache
def source_hash() -> str:
    """Hash of the source files that produce numbers; of the compiled ones where they are in use."""
    folder = Path(wbn.__file__).parent
    files = [folder / f"{name}.py" for name in SOURCES]
    if native is not None:
        files += sorted((folder / "native").iterdir())
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def origin(seconds: float) -> dict:
    """What made a unit, told by the process that ran it: time, versions, sources, machine."""
    return {
        "seconds": round(seconds, 2),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "wbn": wbn.__version__,
        },
        "sources": source_hash(),
        "cpu": cpu_model(),
        "threads": THREADS,
    }


@cache
def cpu_model() -> str:
    """Name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
