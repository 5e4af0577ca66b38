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
NAME = re.compile(rb'"unit": \{"name": "([\w-]+)"')  # the first entry: damaged lines show it too
COLUMNS = b', "columns": '  # the last entry: units are listed without parsing it
CLOSING = b"}}}"  # of columns, unit and line: a line without it was never finished
AROUND = b"\xef\xbb\xbf \t"  # what an editor may put around lines
ROOM = 2**20  # bytes that must be free before anything is run: more than a unit takes


class DamagedLine(UserWarning):
    """Lines of a store that are not what was written."""


class Store:
    """Finished units in the file `runs.jsonl` of a folder.

    A line holds one unit: what was run, what ran it, the rows as columns, and a checksum of all
    that. Lines are appended and synced, and never changed. A unit may be written again; its last
    whole line counts. Writers take turns. One that is killed leaves at most a last line without
    an end: readers pass over it, and the next writer cuts it off. Any other line that is not what
    was written is named in a `DamagedLine` warning and not used.
    """

    def __init__(self, folder: Store | Path | str) -> None:
        self.folder = folder.folder if isinstance(folder, Store) else Path(folder)
        self.file = self.folder / FILE

    def prepare(self) -> None:
        """Create the folder, and fail now rather than after hours if it cannot be written."""
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
        """Each unit in the store with the seconds it took, in the order of their names."""
        heads = self._last_lines(lambda _, text: _parsed(text.partition(COLUMNS)[0] + b"}"))
        return [(unit, record["seconds"]) for _, (unit, record) in sorted(heads.items())]

    def find(self, units: Iterable[Unit]) -> dict[Unit, dict]:
        """Those of the units that are there, each with all that its line tells.

        The file is read once, however many units are asked for. `as_table` makes rows of them.
        """
        wanted = {unit.name: unit for unit in units}
        lines = self._last_lines(lambda name, text: _parsed(text)[1] if name in wanted else None)
        return {wanted[name]: record for name, record in lines.items() if record is not None}

    def read(self, unit: Unit) -> pd.DataFrame | None:
        """The rows of one unit, None if it is not there."""
        found = self.find([unit])
        return as_table(found.values()) if found else None

    def table(self) -> pd.DataFrame:
        """The rows of all units, in the order of their names."""
        records = self._last_lines(lambda _, text: _parsed(text)[1])
        return as_table(record for _, record in sorted(records.items()))

    def write(self, unit: Unit, table: pd.DataFrame, origin: dict) -> dict:
        """Add a finished unit, with the `origin` that the process which ran it told.

        A unit that is there with the same rows is not written again. Returns what `find` gives.
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
                "units are kept: mend this, and the same call continues"
            ) from error
        return json.loads(text)

    def _last_lines(self, take: Callable[[str, bytes], T]) -> dict[str, T]:
        """What `take` makes of name and text of each unit, from its last whole line."""
        taken, damaged = self._scan(take)
        if damaged:  # or a writer was cutting off a line
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
        """As `_last_lines`, and what is wrong with each of the other lines."""
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
        """The lines of the file, without a last one that has no end."""
        try:
            if not stat.S_ISREG(self.file.stat().st_mode):  # a pipe would keep us waiting
                raise OSError(0, "Not a regular file")
            with self.file.open("rb") as file:
                for line in file:
                    if line.endswith(b"\n") or CLOSING in line:
                        yield from (part.strip(AROUND) for part in line.splitlines())
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise OSError(
                f"cannot read {self.file}: {error.strerror}. Mend this, or name another folder"
            ) from error

    def _open(self) -> int:
        """The file, to append to it."""
        binary = getattr(os, "O_BINARY", 0)  # of Windows, which else changes newlines
        return os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_APPEND | binary, 0o644)

    def _append(self, line: bytes, folder: int | None) -> None:
        """Add a line and sync it; if that fails, it is taken away again."""
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
            os.fsync(folder)  # so that the name of a new file, too, survives a loss of power

    @contextmanager
    def _locked(self) -> Iterator[int | None]:
        """Keep other processes and threads from writing meanwhile; gives a handle of the folder."""
        if fcntl is None:
            yield None
            return
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a process forked meanwhile has the handle too
            os.close(handle)


def as_table(records: Iterable[dict]) -> pd.DataFrame:
    """The rows of units, one after the other, as `Store.find` gives them.

    A column that only some of the units have is NaN in the others.
    """
    records = list(records)
    names = dict.fromkeys(name for record in records for name in record["columns"])
    columns = {
        name: [_cells(record["columns"].get(name), record["rows"]) for record in records]
        for name in names
    }
    return pd.DataFrame({name: np.concatenate(cells) for name, cells in columns.items()})


def _cells(values: object, rows: int) -> np.ndarray:
    """A column of a unit, which is a list or, where it is constant, one value."""
    cells = values if isinstance(values, list) else [values] * rows
    kinds = set(map(type, cells))
    return np.array(cells, object if str in kinds else float if type(None) in kinds else None)


def _text(head: dict, table: pd.DataFrame) -> bytes:
    """A unit as JSON: what is told of it, then its rows as columns."""
    columns = ", ".join(f"{json.dumps(name)}: {_column(table[name])}" for name in table)
    return f"{json.dumps(head)[:-1]}{COLUMNS.decode()}{{{columns}}}}}".encode()


def _column(values: pd.Series) -> str:
    """A list of values, or one value where the column is constant."""
    cells = [_cell(value) for value in values.tolist()]
    constant = len(set(cells)) == 1  # as text: 0.0 is not -0.0
    return cells[0] if constant else f"[{', '.join(cells)}]"


def _cell(value: float | str | None) -> str:
    """A value as strict JSON, which has no NaN and no infinity: null, and a number too large."""
    if not isinstance(value, float) or math.isfinite(value):
        return json.dumps(value)
    return "null" if math.isnan(value) else "1e999" if value > 0 else "-1e999"


def _line(text: bytes) -> bytes:
    """The line of a unit: a checksum of its text, and the text."""
    return b'{"sha256": "%s", "unit": %s}' % (hashlib.sha256(text).hexdigest().encode(), text)


def _checked(line: bytes) -> bytes:
    """The text of the unit in a line; ValueError if the line is not what was written."""
    text = line[len(_line(b"")) - 1 : -1]
    if line != _line(text):
        raise ValueError("not what was written")
    return text


def _parsed(text: bytes) -> tuple[Unit, dict]:
    """A unit and what its line tells; ValueError if this version would name it otherwise."""
    record = json.loads(text)
    unit = Unit(Protocol.from_dict(record["protocol"]), tuple(record["seeds"]))
    if unit.name != record["name"]:
        raise ValueError(f"this version of wbn would name it {unit.name}")
    return unit, record


def _end(handle: int) -> tuple[int, bool]:
    """Where the lines of a file end, and whether a newline ends them.

    A last line without an end, which a killed writer left, is not counted among them.
    """
    size = os.fstat(handle).st_size
    if size == 0:
        return 0, True
    with mmap.mmap(handle, 0, access=mmap.ACCESS_READ) as content:
        start = content.rfind(b"\n") + 1
        return (size, start == size) if CLOSING in content[start:] else (start, True)
