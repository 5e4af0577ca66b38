"""Units, which are run and stored as one, and where their results come from."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import torch

import wbn
from study.engine.fetch import REPOSITORY
from study.engine.protocol import Protocol
from study.engine.training import THREADS


@dataclass(frozen=True)
class Unit:
    """A protocol and a block of seeds, which are run and stored as one."""

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
def commit() -> str:
    """The commit of the running clone, or "unknown". It is stored, but nothing depends on it.

    "+changes" at its end means that the code has uncommitted changes.
    """
    git = ["git", "-C", str(REPOSITORY)]
    if not (REPOSITORY / ".git").exists():  # git would find a repository around ours
        return "unknown"
    try:
        head, changes = (
            subprocess.run([*git, *command], capture_output=True, text=True, check=True).stdout
            for command in (["rev-parse", "HEAD"], ["status", "--porcelain", "--", "wbn", "study"])
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head.strip() + ("+changes" if changes else "")


@cache
def package_hash() -> str:
    """Hash of the source files of both packages, to find workers that have other sources."""
    method, study = Path(wbn.__file__).parent, Path(__file__).parents[1]
    files = sorted([*method.rglob("*.py"), *(method / "native").iterdir(), *study.rglob("*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def origin(seconds: float) -> dict:
    """Time, versions, commit and machine of a unit; called by the process that ran it."""
    return {
        "seconds": round(seconds, 2),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "wbn": wbn.__version__,
        },
        "sources": commit(),
        "cpu": cpu_model(),
        "threads": THREADS,
    }


@cache
def cpu_model() -> str:
    """Name of the processor, if the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
