"""A folder of results: one file, `runs.jsonl`, with a line of JSON for each finished unit."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import re
import stat
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import numpy as np
import pandas as pd

from study.engine.protocol import Protocol
from study.stores.provenance import Unit

try:
    import fcntl
except ImportError:  # Windows: one writer at a time, please
    fcntl = None

T = TypeVar("T")
FILE = "runs.jsonl"
NAME = re.compile(rb'"unit": \{"name": "([\w-]+)"')  # the first entry, so damaged lines have it too
COLUMNS = b', "columns": '  # the last entry, which need not be parsed to list units
CLOSING = b"}}}"  # closes columns, unit and line; a line without it is unfinished
AROUND = b"\xef\xbb\xbf \t"  # a mark or blanks that an editor may add to lines
ROOM = 2**20  # bytes that must be free before a run; more than a unit needs


class DamagedLine(UserWarning):
    """A store has lines that are not what was written."""


class Store:
    """Finished units in the file `runs.jsonl` of a folder.

    A line holds one unit: its protocol and seeds, its origin, its rows as columns, and a checksum
    of all this. Lines are appended and synced, and never changed. If a unit is written again, its
    last whole line counts. A lock lets one writer at a time write. A killed writer leaves at most
    an unfinished last line: readers ignore it, and the next writer cuts it off. Readers also
    ignore any other line that is not what was written, and name it in a `DamagedLine` warning.
    """

    def __init__(self, folder: Store | Path | str) -> None:
        self.folder = folder.folder if isinstance(folder, Store) else Path(folder)
        self.file = self.folder / FILE

    def prepare(self) -> None:
        """Create the folder and write to it, to fail now rather than after hours of training."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.folder) as file:
                file.write(bytes(ROOM))
                file.flush()
                os.fsync(file.fileno())
            if self.file.exists():
                os.close(self._open())
        except OSError as error:
            raise OSError(f"cannot write to the store {self.folder}: {error.strerror}") from error

    def units(self) -> list[tuple[Unit, float]]:
        """Each stored unit and the seconds that it took, sorted by name."""
        heads = self._last_lines(lambda _, text: _parsed(text.partition(COLUMNS)[0] + b"}"))
        return [(unit, record["seconds"]) for _, (unit, record) in sorted(heads.items())]

    def find(self, units: Iterable[Unit]) -> dict[Unit, dict]:
        """The records of those units that are stored.

        A record is everything in the unit's line; `as_table` turns records into rows. The file is
        read once, so ask for many units in one call.
        """
        wanted = {unit.name: unit for unit in units}
        lines = self._last_lines(lambda name, text: _parsed(text)[1] if name in wanted else None)
        return {wanted[name]: record for name, record in lines.items() if record is not None}

    def read(self, unit: Unit) -> pd.DataFrame | None:
        """The rows of one unit, or None if it is not stored."""
        found = self.find([unit])
        return as_table(found.values()) if found else None

    def table(self) -> pd.DataFrame:
        """The rows of all units, sorted by the name of the unit."""
        records = self._last_lines(lambda _, text: _parsed(text)[1])
        return as_table(record for _, record in sorted(records.items()))

    def write(self, unit: Unit, table: pd.DataFrame, origin: dict) -> dict:
        """Add a finished unit, with its `origin`, and return its record as `find` does.

        A unit that is already stored with the same rows is not written again.
        """
        if set(table.seed) != set(unit.seeds) or set(table.protocol) != {unit.protocol.hash}:
            raise ValueError(f"the rows for {unit.name} are of other seeds or another protocol")
        head = {
            "name": unit.name,
            "protocol": unit.protocol.to_dict(),
            "hash": unit.protocol.hash,
            "seeds": list(unit.seeds),
            "rows": len(table),
            **origin,
        }
        text = _text(head, table)
        try:
            with self._locked() as folder:
                there, _ = self._scan(lambda name, old: old if name == unit.name else b"")
                old = there.get(unit.name, b"")
                if old.partition(COLUMNS)[2] != text.partition(COLUMNS)[2]:
                    self._append(_line(text) + b"\n", folder)
        except OSError as error:
            raise OSError(
                f"cannot write {unit.name} to {self.file}: {error.strerror or error}. Earlier "
                "units are kept: fix this, and the same call continues"
            ) from error
        return json.loads(text)

    def _last_lines(self, take: Callable[[str, bytes], T]) -> dict[str, T]:
        """What `take` returns for the name and text of each unit, from its last whole line."""
        taken, damaged = self._scan(take)
        if damaged:  # perhaps only because a writer was cutting off a line: look again
            with self._locked():
                taken, damaged = self._scan(take)
        if damaged:
            more = f"; and {len(damaged) - 3} more" if damaged[3:] else ""
            warnings.warn(
                f"{self.file} has lines that are not used: {'; '.join(damaged[:3])}{more}. "
                "Restore the file from a copy, or delete these lines and run the plan again",
                DamagedLine,
                stacklevel=3,
            )
        return taken

    def _scan(self, take: Callable[[str, bytes], T]) -> tuple[dict[str, T], list[str]]:
        """The same as `_last_lines`, and what is wrong with each damaged line."""
        taken, damaged = {}, []
        for number, line in enumerate(self._lines(), start=1):
            names = [name.decode() for name in NAME.findall(line)] or ["no unit's name"]
            try:
                if line:
                    taken[names[0]] = take(names[0], _checked(line))
            except ValueError as error:
                damaged.append(f"line {number}, {' and '.join(names)} ({error})")
        return taken, damaged

    def _lines(self) -> Iterator[bytes]:
        """The lines of the file, without an unfinished last one."""
        try:
            if not stat.S_ISREG(self.file.stat().st_mode):  # reading a pipe would block
                raise OSError(0, "Not a regular file")
            with self.file.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n") or CLOSING in line:
                        yield from (part.strip(AROUND) for part in line.splitlines())
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise OSError(
                f"cannot read {self.file}: {error.strerror}. Fix this, or choose another folder"
            ) from error

    def _open(self) -> int:
        """A handle of the file, to append to it."""
        binary = getattr(os, "O_BINARY", 0)  # keeps Windows from changing newlines
        return os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | binary, 0o644)

    def _append(self, line: bytes, folder: int | None) -> None:
        """Append a line and sync it; if that fails, remove it again."""
        handle = self._open()
        try:
            end, ended = _end(handle)
            rest = memoryview(line if ended else b"\n" + line)
            try:
                os.ftruncate(handle, end)
                while rest:
                    rest = rest[os.write(handle, rest) :]
                os.fsync(handle)
            except OSError:  # after an interrupt the line stays: a reader may have seen it
                os.ftruncate(handle, end)
                raise
        finally:
            os.close(handle)
        if end == 0 and folder is not None:
            os.fsync(folder)  # so that the name of a new file survives a power cut as well

    @contextmanager
    def _locked(self) -> Iterator[int | None]:
        """Keep other processes and threads from writing; yields a handle of the folder."""
        if fcntl is None:
            yield None
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # closing is not enough: a fork may hold it open
            os.close(handle)


def as_table(records: Iterable[dict]) -> pd.DataFrame:
    """The rows of some records from `Store.find`, one unit after the other.

    A column that only some units have is NaN in the others.
    """
    records = list(records)
    names = dict.fromkeys(name for record in records for name in record["columns"])
    columns = {
        name: [_cells(record["columns"].get(name), record["rows"]) for record in records]
        for name in names
    }
    return pd.DataFrame({name: np.concatenate(cells) for name, cells in columns.items()})


def _cells(values: object, rows: int) -> np.ndarray:
    """A column of a unit, given as a list, or as one value if it is constant."""
    cells = values if isinstance(values, list) else [values] * rows
    kinds = set(map(type, cells))
    return np.array(cells, object if str in kinds else float if type(None) in kinds else None)


def _text(head: dict, table: pd.DataFrame) -> bytes:
    """A unit as JSON: first `head`, then its rows as columns."""
    columns = ", ".join(f"{json.dumps(name)}: {_column(table[name])}" for name in table)
    return f"{json.dumps(head)[:-1]}{COLUMNS.decode()}{{{columns}}}}}".encode()


def _column(values: pd.Series) -> str:
    """A column as JSON: a list, or one value if it is constant."""
    cells = [_cell(value) for value in values.tolist()]
    constant = len(set(cells)) == 1  # compared as text, so that 0.0 is not -0.0
    return cells[0] if constant else f"[{', '.join(cells)}]"


def _cell(value: float | str | None) -> str:
    """A value as strict JSON: NaN becomes null, and infinity a number that is too large."""
    if not isinstance(value, float) or math.isfinite(value):
        return json.dumps(value)
    return "null" if math.isnan(value) else "1e999" if value > 0 else "-1e999"


def _line(text: bytes) -> bytes:
    """The line of a unit: the checksum of its text, and the text."""
    return b'{"sha256": "%s", "unit": %s}' % (hashlib.sha256(text).hexdigest().encode(), text)


def _checked(line: bytes) -> bytes:
    """The text of the unit in a line; raises ValueError if the line is not what was written."""
    text = line[len(_line(b"")) - 1 : -1]
    if line != _line(text):
        raise ValueError("not what was written")
    return text


def _parsed(text: bytes) -> tuple[Unit, dict]:
    """A unit and its record; raises ValueError if this version would give it another name."""
    record = json.loads(text)
    unit = Unit(Protocol.from_dict(record["protocol"]), tuple(record["seeds"]))
    if unit.name != record["name"]:
        raise ValueError(f"this version of wbn would name it {unit.name}")
    return unit, record


def _end(handle: int) -> tuple[int, bool]:
    """Where the finished lines of a file end, and whether a newline ends them.

    A killed writer may have left an unfinished line behind them.
    """
    size = os.fstat(handle).st_size
    if size == 0:
        return 0, True
    with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
        start = content.rfind(b"\n") + 1
        return (size, start == size) if CLOSING in content[start:] else (start, True)
