"""A folder of results: a plain CSV part and a JSON sidecar for each finished unit of work."""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pandas as pd

from wbn.experiments.origin import Unit
from wbn.experiments.protocol import Protocol
from wbn.experiments.rows import TEXT

try:
    import fcntl
except ImportError:  # Windows: one writer at a time, please
    fcntl = None

T = TypeVar("T")
UNIT_NAME = re.compile(r"\w+_[0-9a-f]{12}_\d+(-\d+(-[0-9a-f]{6})?)?")
# What the sidecars of stores that were written before there were seals have.
UNSEALED = {
    "protocol", "hash", "seeds", "rows", "seconds", "date", "versions", "sources", "cpu", "threads",
    "checksum",
}  # fmt: skip
ABANDONED = 3600  # seconds after which a temporary file, which lives milliseconds, has no owner


class DamagedPart(UserWarning):
    """A unit whose part or sidecar is not what was written."""


class Store:
    """Finished units in a folder.

    A part and its sidecar, which holds the checksums of both, are written to temporary names,
    and renamed once both are complete, the sidecar last. So a unit is there as a whole or not
    at all, whenever the process is killed, the disk is full or the power fails. Processes may
    write the same unit at once: they take turns, and what is there already is not written again.
    A reader that meets a unit half-changed waits for its turn and looks again. What turns out to
    be damaged is set aside under another name. Other files in the folder are left alone.
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

    def units(self) -> list[tuple[Unit, float]]:
        """Each unit in the store with the seconds it took, in the order of their names."""
        files = (*self.folder.glob("*.json"), *self.folder.glob("*.csv"))
        names = sorted({path.stem for path in files if UNIT_NAME.fullmatch(path.stem)})
        records = (self._look(name, self._sidecar) for name in names)
        return [(unit, sidecar["seconds"]) for unit, sidecar in filter(None, records)]

    def provenance(self, unit: Unit) -> dict | None:
        """The sidecar of one unit, None if the unit is not there."""
        record = self._look(unit.name, self._sidecar)
        return record and record[1]

    def read(self, unit: Unit) -> pd.DataFrame | None:
        """The rows of a unit, None if it is not there; a damaged one is set aside."""
        whole = self.find(unit)
        return None if whole is None else whole[1]

    def find(self, unit: Unit) -> tuple[dict, pd.DataFrame] | None:
        """Sidecar and rows of a unit, None if it is not there; a damaged one is set aside."""
        return self._look(unit.name, self._whole)

    def write(self, unit: Unit, table: pd.DataFrame, origin: dict) -> pd.DataFrame:
        """Add a finished unit, with the `origin` that the process which ran it told.

        Returns the rows as they are read back.
        """
        content = table.to_csv(index=False).encode()
        checksum = hashlib.sha256(content).hexdigest()
        sidecar = {
            "protocol": unit.protocol.to_dict(),
            "hash": unit.protocol.hash,
            "seeds": list(unit.seeds),
            "rows": len(table),
            **origin,
            "checksum": checksum,
        }
        sidecar["seal"] = _seal(sidecar)
        rows = _rows(content, unit, sidecar)
        part, record = self._paths(unit.name)
        with self._locked():
            kept = self._kept(unit.name)
            same = kept is not None and kept["checksum"] == checksum
            if not same or kept["sources"] != sidecar["sources"]:
                with _staged(record, f"{json.dumps(sidecar, indent=1)}\n".encode()):
                    if not same:
                        with _staged(part, content):
                            record.unlink(missing_ok=True)
                _sync(self.folder)
        return rows

    def _paths(self, name: str) -> tuple[Path, Path]:
        return self.folder / f"{name}.csv", self.folder / f"{name}.json"

    def _sidecar(self, name: str) -> tuple[Unit, dict] | None:
        """Unit and sidecar of that name, None without one; ValueError where it can't be used."""
        content = _content(self._paths(name)[1])
        return None if content is None else _parsed(name, content)

    def _whole(self, name: str) -> tuple[dict, pd.DataFrame] | None:
        """Sidecar and rows, None without a sidecar; ValueError where they don't fit."""
        record = self._sidecar(name)
        if record is None:
            return None
        unit, sidecar = record
        content = _content(self._paths(name)[0])
        if content is None:
            raise ValueError("its part is missing")
        return sidecar, _rows(content, unit, sidecar)

    def _kept(self, name: str) -> dict | None:
        """The sidecar of a unit that is whole, else None."""
        with suppress(ValueError):
            whole = self._whole(name)
            return whole and whole[0]
        return None

    def _look(self, name: str, get: Callable[[str], T | None]) -> T | None:
        """What `get` gives, None where there is nothing or where it was set aside as damaged."""
        with suppress(ValueError):
            seen = get(name)
            if seen is not None or not self._paths(name)[0].exists():
                return seen
        with self._locked():  # a writer may have been at it
            try:
                return get(name)
            except ValueError as error:
                self._set_aside(name, str(error))
                return None

    def _set_aside(self, name: str, reason: str) -> None:
        done = "set aside as {}.damaged"
        for path in self._paths(name):
            try:
                path.replace(f"{path}.damaged")
            except FileNotFoundError:
                continue
            except OSError as error:
                done = f"left where it is ({error.strerror})"
        part = self._paths(name)[0]
        message = f"{part} is damaged ({reason}): {done.format(part.name)}"
        warnings.warn(message, DamagedPart, stacklevel=4)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes and threads from changing units meanwhile."""
        if fcntl is None:
            yield
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


def _content(path: Path) -> bytes | None:
    """Bytes of a file, None without one; a pipe or a device, which may hang, is refused."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise ValueError(f"{path.name} is not a regular file")
        return path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None


def _seal(sidecar: dict) -> str:
    """Checksum of all of a sidecar but its seal."""
    rest = {key: value for key, value in sidecar.items() if key != "seal"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _parsed(name: str, content: bytes) -> tuple[Unit, dict]:
    """The unit that a sidecar speaks of, and the sidecar; ValueError if it is not as written."""
    try:
        sidecar = json.loads(content)
        seeds, seconds = sidecar["seeds"], sidecar["seconds"]
        unit = Unit(Protocol.from_dict(sidecar["protocol"]), tuple(seeds))
        sealed = (
            sidecar["seal"] == _seal(sidecar) if "seal" in sidecar else set(sidecar) == UNSEALED
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"its sidecar cannot be read: {error!r:.200}") from error
    whole = seeds and all(type(seed) is int and seed >= 0 for seed in seeds)
    if not (whole and type(seconds) in (int, float) and math.isfinite(seconds)):
        raise ValueError("its sidecar has wrong entries")
    if not sealed:
        raise ValueError("its sidecar is not as it was written")
    if unit.name != name or sidecar["hash"] != unit.protocol.hash:
        raise ValueError(f"its sidecar is that of {unit.name}")
    return unit, sidecar


def _rows(content: bytes, unit: Unit, sidecar: dict) -> pd.DataFrame:
    """The rows of a part, if they are those that the sidecar tells of; else ValueError."""
    if hashlib.sha256(content).hexdigest() != sidecar["checksum"]:
        raise ValueError("its bytes are not those that were written")
    text = dict.fromkeys(TEXT, str)  # a hash may look like a number
    table = pd.read_csv(io.BytesIO(content), dtype=text)
    if (
        len(table) != sidecar["rows"]
        or set(table.seed) != set(unit.seeds)
        or set(table.protocol) != {unit.protocol.hash}
    ):
        raise ValueError("its rows, seeds or protocol are not those of its sidecar")
    return table


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


def _sync(folder: Path) -> None:
    """Let the names of files, too, survive a loss of power."""
    with suppress(OSError):  # Windows opens no folders
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
