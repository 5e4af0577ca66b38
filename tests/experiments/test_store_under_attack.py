"""Two writers and readers at once, a crash at every call, and a model of what is stored."""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from wbn.experiments import Protocol
from wbn.experiments.origin import Unit, origin
from wbn.experiments.store import DamagedPart, Store

SOAK = bool(os.environ.get("WBN_SOAK"))
UNITS = [
    Unit(Protocol.paper("i", method, hidden=3, epochs=1).resolved(), (0, 1))
    for method in ("lf_sbn", "wlf_wbn")
]
CALLS = ("replace", "unlink", "fsync", "chmod", "write", "open", "close")
TRIED = Counter()


def version(unit, number):
    """Rows of a unit that tell one version from another."""
    return pd.DataFrame(
        {"protocol": unit.protocol.hash, "seed": unit.seeds, "train_loss": float(number)}
    )


def stored(store, unit):
    """The version that a store holds, None without any."""
    table = store.read(unit)
    return None if table is None else int(table.train_loss.iloc[0])


WRITER = """
import sys
sys.path.insert(0, sys.argv[3])
from test_store_under_attack import UNITS, origin, version
from wbn.experiments.store import Store
for turn in range(int(sys.argv[2])):
    number = 2 * (turn % 2) + int(sys.argv[4])
    Store(sys.argv[1]).write(UNITS[0], version(UNITS[0], number), origin(turn))
"""


def test_readers_beside_two_refreshing_writers_always_see_a_whole_unit(tmp_path):
    store, turns = Store(tmp_path), 3000 if SOAK else 150
    store.write(UNITS[0], version(UNITS[0], 0), origin(0))
    here = str(Path(__file__).parent)
    arguments = [sys.executable, "-c", WRITER, str(tmp_path), str(turns), here]
    writers = [subprocess.Popen([*arguments, str(k)]) for k in (0, 1)]
    seen, reads = set(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", DamagedPart)
        while any(writer.poll() is None for writer in writers):
            seen.add(stored(store, UNITS[0]))
            assert [unit for unit, _ in store.units()] == [UNITS[0]]
            reads += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert seen <= {0, 1, 2, 3}
    assert len(seen) > 1
    TRIED["reads beside two refreshing writers"] = reads
    TRIED["writes beside another writer and a reader"] = 2 * turns


class Killed(BaseException):
    """The process ends here."""


def crashing(at):
    """Patches under which the `at`-th call to the system ends the process: none after it works."""
    made = []

    def patch(name):
        real = getattr(os, name)

        def call(*args, **kwargs):
            made.append(name)
            if len(made) < at:
                return real(*args, **kwargs)
            if name == "close":  # as the system does when a process ends, and frees its locks
                real(*args, **kwargs)
            raise Killed

        return mock.patch.object(os, name, call)

    return [patch(name) for name in CALLS]


def write_until(store, unit, number, at):
    """Write, ended at a call; whether it got through."""
    patches, done = crashing(at), True
    with ExitStack() as stack:
        for patch in patches:
            stack.enter_context(patch)
        try:
            store.write(unit, version(unit, number), origin(1))
        except Killed:
            done = False
    return done


@pytest.mark.parametrize("before", [None, 1])
def test_a_crash_at_every_call_leaves_the_old_or_the_new_unit_or_none(tmp_path, before):
    at, done = 0, False
    while not done:
        at += 1
        store = Store(tmp_path / str(at))
        store.prepare()
        if before is not None:
            store.write(UNITS[0], version(UNITS[0], before), origin(1))
        done = write_until(store, UNITS[0], 2, at)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DamagedPart)
            assert stored(store, UNITS[0]) in {before, 2, None}
        store.write(UNITS[0], version(UNITS[0], 3), origin(1))
        assert stored(store, UNITS[0]) == 3
    assert at > 5
    TRIED["crashes, one at every call of a write"] += at - 1


def test_the_folder_is_synced_after_the_last_rename(tmp_path):
    store, order = Store(tmp_path), []
    replace, fsync = os.replace, os.fsync
    with (
        mock.patch.object(os, "replace", lambda *a: (order.append("rename"), replace(*a))),
        mock.patch.object(os, "fsync", lambda fd: (order.append(os.readlink(f"/proc/self/fd/{fd}")),
                                                  fsync(fd))),
    ):  # fmt: skip
        store.write(UNITS[0], version(UNITS[0], 1), origin(1))
    assert order[-1] == str(tmp_path)
    assert order.count("rename") == 2


class TwoClients(RuleBasedStateMachine):
    """Two stores in one folder against a dictionary of the versions that may be there."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clients = [Store(self.folder.name) for _ in range(2)]
        self.allowed = {unit: {None} for unit in UNITS}

    units, clients, numbers = st.sampled_from(UNITS), st.integers(0, 1), st.integers(0, 3)

    @rule(client=clients, unit=units, number=numbers, sources=st.sampled_from(["new", "old"]))
    def write(self, client, unit, number, sources):
        table = self.clients[client].write(
            unit, version(unit, number), origin(1) | {"sources": sources}
        )
        assert table.train_loss.tolist() == [number] * 2
        self.allowed[unit] = {number}

    @rule(client=clients, unit=units, number=numbers, at=st.integers(1, 25))
    def kill_while_writing(self, client, unit, number, at):
        done = write_until(self.clients[client], unit, number, at)
        TRIED["kills of one of two clients"] += not done
        self.allowed[unit] = {number} if done else self.allowed[unit] | {number, None}

    @rule(client=clients, unit=units)
    def read(self, client, unit):
        number = stored(self.clients[client], unit)
        assert number in self.allowed[unit]
        self.allowed[unit] = {number}

    @rule(client=clients)
    def list_units(self, client):
        listed = {unit for unit, _ in self.clients[client].units()}
        for unit in UNITS:
            assert (unit in listed) == (stored(self.clients[client], unit) is not None)

    @rule(unit=units, suffix=st.sampled_from(["csv", "json"]), keep=st.integers(0, 40))
    def damage(self, unit, suffix, keep):
        path = Path(self.folder.name) / f"{unit.name}.{suffix}"
        if path.exists():
            path.write_bytes(path.read_bytes()[:keep])
            with warnings.catch_warnings(record=True):
                warnings.simplefilter("always")
                number = stored(self.clients[0], unit)
            assert number is None
            TRIED["damaged files between two clients"] += 1
            self.allowed[unit] = {None}

    @invariant()
    def nothing_foreign_is_left(self):
        names = [path.name for path in Path(self.folder.name).iterdir()]
        assert all(name.endswith((".csv", ".json", ".damaged", ".tmp")) for name in names)

    def teardown(self):
        self.folder.cleanup()


TestTwoClients = TwoClients.TestCase
TestTwoClients.settings = settings(
    max_examples=1000 if SOAK else 25, stateful_step_count=20, deadline=None
)


# What a sidecar without a seal, of an older store, is still checked by: name, part and protocol.
DECIDING = ("protocol", "hash", "seeds", "rows", "checksum")


@pytest.mark.parametrize("sealed", [True, False])
@settings(max_examples=3000 if SOAK else 150, deadline=None)
@given(data=st.data())
def test_a_mutated_sidecar_is_refused_or_tells_the_same(sealed, data):
    unit = UNITS[0]
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.write(unit, version(unit, 1), origin(1))
        path = Path(folder) / f"{unit.name}.json"
        original = json.loads(path.read_bytes())
        if not sealed:
            del original["seal"]
        content = bytearray(json.dumps(original).encode())
        kind = data.draw(st.sampled_from(["byte", "cut", "value"]))
        if kind == "byte":
            place = data.draw(st.integers(0, len(content) - 1))
            content[place] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            content = content[: data.draw(st.integers(0, len(content) - 1))]
        else:
            sidecar = json.loads(content)
            key = data.draw(st.sampled_from(sorted(sidecar)))
            sidecar[key] = data.draw(
                st.none() | st.integers() | st.text() | st.lists(st.integers())
            )
            content = json.dumps(sidecar).encode()
        path.write_bytes(bytes(content))
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            whole = store.find(unit)
        if whole is not None:
            sidecar, rows = whole
            assert rows.equals(version(unit, 1))
            assert all(sidecar[key] == original[key] for key in (original if sealed else DECIDING))
        TRIED["mutated sidecars"] += 1
