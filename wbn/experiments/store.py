"""A folder of results: a plain CSV part and a JSON sidecar for each finished unit of work."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pandas as pd
import torch

import wbn
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import THREADS

# The files whose content decides the numbers of a run.
SOURCES = (
    "checks", "context", "core", "functional", "loss", "weights",
    "experiments/block", "experiments/data", "experiments/evaluation", "experiments/network",
    "experiments/protocol", "experiments/training",
)  # fmt: skip


class DamagedPart(UserWarning):
    """A part whose bytes are not those that were written."""


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
    """Hash of the source files that produce numbers."""
    folder = Path(wbn.__file__).parent
    content = b"".join((folder / f"{name}.py").read_bytes() for name in SOURCES)
    return hashlib.sha256(content).hexdigest()[:12]


class Store:
    """Finished units in a folder.

    The part is written first and its sidecar, which holds the part's checksum, last, each to a
    temporary name that is renamed once complete. So a unit is there as a whole or not at all,
    whenever the process is killed, and two processes may write the same unit.
    """

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)

    def prepare(self) -> None:
        """Create the folder, and fail now rather than after hours if it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise OSError(f"cannot write to the store {self.folder}: {error.strerror}") from error

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def _sidecar(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def sidecars(self) -> Iterator[dict]:
        """The sidecar of each unit in the store, in the order of their names."""
        for path in sorted(self.folder.glob("*.json")):
            yield {"name": path.stem, **json.loads(path.read_text())}

    def provenance(self, unit: Unit) -> dict | None:
        """The sidecar of one unit, None if the unit is not there."""
        path = self._sidecar(unit.name)
        return json.loads(path.read_text()) if path.exists() else None

    def read(self, unit: Unit) -> pd.DataFrame | None:
        """The rows of a unit, None if it is not there; a damaged one is set aside."""
        sidecar, part = self.provenance(unit), self._part(unit.name)
        if sidecar is None:
            return None
        content = part.read_bytes() if part.exists() else b""
        if hashlib.sha256(content).hexdigest() != sidecar["checksum"]:
            aside = part.with_suffix(".csv.damaged")
            if part.exists():
                part.replace(aside)
            self._sidecar(unit.name).unlink()
            message = f"{part} is damaged: set aside as {aside.name}, to be computed again"
            warnings.warn(message, DamagedPart, stacklevel=2)
            return None
        return pd.read_csv(io.BytesIO(content))

    def write(self, unit: Unit, table: pd.DataFrame, seconds: float) -> None:
        """Add a finished unit."""
        content = table.to_csv(index=False).encode()
        sidecar = {
            "protocol": unit.protocol.to_dict(),
            "hash": unit.protocol.hash,
            "seeds": list(unit.seeds),
            "rows": len(table),
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
            "checksum": hashlib.sha256(content).hexdigest(),
        }
        _write_whole(self._part(unit.name), content)
        _write_whole(self._sidecar(unit.name), (json.dumps(sidecar, indent=1) + "\n").encode())


def _write_whole(path: Path, content: bytes) -> None:
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@cache
def cpu_model() -> str:
    """Name of the processor, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())
