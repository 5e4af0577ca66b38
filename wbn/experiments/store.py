"""A folder of results: a plain CSV part and a JSON sidecar for each finished unit of work."""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import pandas as pd
import torch

import wbn
from wbn.experiments.protocol import Protocol
from wbn.experiments.rows import TEXT
from wbn.experiments.training import THREADS

# The files whose content decides the numbers of a run.
SOURCES = (
    "checks", "context", "core", "functional", "layers", "loss", "weights",
    "experiments/block", "experiments/convolution", "experiments/data", "experiments/draw",
    "experiments/evaluation", "experiments/network", "experiments/probe", "experiments/protocol",
    "experiments/rows", "experiments/training", "experiments/values",
)  # fmt: skip
UNIT_NAME = re.compile(r"\w+_[0-9a-f]{12}_\d+(-\d+(-[0-9a-f]{6})?)?")
ABANDONED = 3600  # seconds after which a temporary file, which lives milliseconds, has no owner


class DamagedPart(UserWarning):
    """A unit whose part or sidecar is not what was written."""


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


class Store:
    """Finished units in a folder.

    A part and its sidecar, which holds the part's checksum, are written to temporary names,
    and renamed once both are complete, the sidecar last. So a unit is there as a whole or not
    at all, whenever the process is killed or the disk is full, and two processes may write the
    same unit. Other files in the folder are left alone.
    """

    def __init__(self, folder: Store | Path | str) -> None:
        self.folder = folder.folder if isinstance(folder, Store) else Path(folder)

    def prepare(self) -> None:
        """Create the folder, and fail now rather than after hours if it cannot be written."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder):
                pass
        except OSError as error:
            raise OSError(f"cannot write to the store {self.folder}: {error.strerror}") from error
        for path in self.folder.glob(".*.tmp"):
            with suppress(FileNotFoundError):
                if time.time() - path.stat().st_mtime > ABANDONED:
                    path.unlink()

    def _part(self, name: str) -> Path:
        return self.folder / f"{name}.csv"

    def _sidecar(self, name: str) -> Path:
        return self.folder / f"{name}.json"

    def units(self) -> list[tuple[Unit, float]]:
        """Each unit in the store with the seconds it took, in the order of their names."""
        names = sorted(path.stem for path in self.folder.glob("*.json"))
        records = map(self._record, filter(UNIT_NAME.fullmatch, names))
        return [(unit, sidecar["seconds"]) for unit, sidecar in filter(None, records)]

    def provenance(self, unit: Unit) -> dict | None:
        """The sidecar of one unit, None if the unit is not there."""
        record = self._record(unit.name)
        return record and record[1]

    def read(self, unit: Unit) -> pd.DataFrame | None:
        """The rows of a unit, None if it is not there; a damaged one is set aside."""
        sidecar, part = self.provenance(unit), self._part(unit.name)
        if sidecar is None:
            return None
        content = part.read_bytes() if part.exists() else b""
        if hashlib.sha256(content).hexdigest() != sidecar["checksum"]:
            self._set_aside(unit.name, "its bytes are not those that were written")
            return None
        text = dict.fromkeys(TEXT, str)  # a hash may look like a number
        return pd.read_csv(io.BytesIO(content), dtype=text)

    def write(self, unit: Unit, table: pd.DataFrame, origin: dict) -> None:
        """Add a finished unit, with the `origin` that the process which ran it told."""
        content = table.to_csv(index=False).encode()
        sidecar = {
            "protocol": unit.protocol.to_dict(),
            "hash": unit.protocol.hash,
            "seeds": list(unit.seeds),
            "rows": len(table),
            **origin,
            "checksum": hashlib.sha256(content).hexdigest(),
        }
        part, record = self._part(unit.name), self._sidecar(unit.name)
        with _staged(record, f"{json.dumps(sidecar, indent=1)}\n".encode()), _staged(part, content):
            record.unlink(missing_ok=True)  # and then, from the inside out, the part and the record

    def _record(self, name: str) -> tuple[Unit, dict] | None:
        """The unit of that name and its sidecar, None if it is not there or damaged."""
        try:
            sidecar = json.loads(self._sidecar(name).read_bytes())
            unit = Unit(Protocol.from_dict(sidecar["protocol"]), tuple(sidecar["seeds"]))
            if unit.name != name or "checksum" not in sidecar:
                raise ValueError(f"its sidecar is that of {unit.name}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, KeyError, TypeError) as error:
            self._set_aside(name, f"its sidecar cannot be used: {error!r}")
            return None
        return unit, sidecar

    def _set_aside(self, name: str, reason: str) -> None:
        part = self._part(name)
        for path in (self._sidecar(name), part):
            with suppress(FileNotFoundError):
                path.replace(f"{path}.damaged")
        message = f"{part} is damaged ({reason}): set aside as {part.name}.damaged"
        warnings.warn(message, DamagedPart, stacklevel=3)


@contextmanager
def _staged(path: Path, content: bytes) -> Iterator[None]:
    """Write to a temporary name, and rename it when the body is done without an error."""
    handle, temporary = tempfile.mkstemp(prefix=".", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        yield
        os.replace(temporary, path)
    except BaseException:
        with suppress(FileNotFoundError):  # an interrupt may come right after the rename
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
