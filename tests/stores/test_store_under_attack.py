"""Writers that are killed, readers beside them, cut and changed files; more with WBN_SOAK=1."""

import multiprocessing
import os
import signal
import tempfile
import warnings
from collections import Counter
from contextlib import ExitStack, suppress
from pathlib import Path
from unittest import mock

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from study.engine import Protocol
from study.stores.provenance import Unit, origin
from study.stores.store import DamagedLine, Store, as_table

SOAK = bool(os.environ.get("WBN_SOAK"))
PROTOCOL = Protocol.paper("i", "lf_sbn", hidden=3, epochs=1).resolved()
UNITS = [Unit(PROTOCOL, seeds) for seeds in ((0, 1), (2, 3), (4, 5))]
CALLS = ("ftruncate", "write", "fsync", "open", "close")
TRIED = Counter()

pytestmark = pytest.mark.filterwarnings("error::study.stores.store.DamagedLine")


def version(unit, number):
    """Rows of a unit that tell one version from another."""
    return pd.DataFrame(
        {"protocol": unit.protocol.hash, "seed": unit.seeds, "train_loss": float(number)}
    )


def stored(store, unit):
    """The version that a store holds, None without any."""
    table = store.read(unit)
    return None if table is None else int(table.train_loss.iloc[0])


def written(folder, units):
    """A store with version 0 of these units."""
    store = Store(folder)
    store.prepare()
    for unit in units:
        store.write(unit, version(unit, 0), origin(0))
    return store


def write_and_tell(folder, first, told):
    """Write one unit after another, and a unit that others write too; tell of each once it is."""
    store, made = Store(folder), origin(1)
    for seed in range(first, first + 10_000):
        unit = Unit(PROTOCOL, (seed,))
        store.write(unit, version(unit, seed), made)
        store.write(UNITS[0], version(UNITS[0], seed), made)
        told.send(seed)


def test_killed_writers_lose_nothing_that_they_told_of_and_readers_see_all_of_it(tmp_path):
    fork = multiprocessing.get_context("fork")
    for turn in range(150 if SOAK else 2):
        store, told, writers = written(tmp_path / str(turn), UNITS[:1]), [], []
        for number in range(4):
            ours, theirs = fork.Pipe(duplex=False)
            arguments = (store.folder, 10_000 * (number + 1), theirs)
            writer = fork.Process(target=write_and_tell, args=arguments)
            writer.start()
            theirs.close()
            writers.append((writer, ours))
        for number, (writer, ours) in enumerate(writers):
            told += [ours.recv() for _ in range(1 + (turn + number) % 3)]
            assert len(store.find(Unit(PROTOCOL, (seed,)) for seed in told)) == len(told)
            assert stored(store, UNITS[0]) is not None
            os.kill(writer.pid, signal.SIGKILL)
            writer.join()
            with suppress(EOFError):
                while True:
                    told.append(ours.recv())
        found = store.find(Unit(PROTOCOL, (seed,)) for seed in told)
        assert {unit: int(r["columns"]["train_loss"]) for unit, r in found.items()} == {
            Unit(PROTOCOL, (seed,)): seed for seed in told
        }
        TRIED["kills of four writers of one file"] += 4
        TRIED["units that they had told of"] += len(told)


class Killed(BaseException):
    """The process ends here."""


def crashing(at):
    """Patches under which the `at`-th call to the system ends the process, in its midst."""
    made = []

    def patch(name):
        real = getattr(os, name)

        def call(*args, **kwargs):
            made.append(name)
            if len(made) < at:
                return real(*args, **kwargs)
            if name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            if name == "close":  # as the system does when a process ends, and frees its locks
                real(*args, **kwargs)
            raise Killed

        return mock.patch.object(os, name, call)

    return [patch(name) for name in CALLS]


def write_until(store, unit, number, at):
    """Write, ended at a call; whether it got through."""
    with ExitStack() as stack:
        for patch in crashing(at):
            stack.enter_context(patch)
        try:
            store.write(unit, version(unit, number), origin(1))
        except Killed:
            return False
    return True


@pytest.mark.parametrize("before", [None, 1])
def test_a_crash_at_every_call_leaves_the_old_or_the_new_version(tmp_path, before):
    at, done = 0, False
    while not done:
        at += 1
        store = written(tmp_path / str(at), UNITS[1:])
        if before is not None:
            store.write(UNITS[0], version(UNITS[0], before), origin(1))
        done = write_until(store, UNITS[0], 2, at)
        assert stored(store, UNITS[0]) in {before, 2}
        store.write(UNITS[0], version(UNITS[0], 3), origin(1))
        assert [stored(store, unit) for unit in UNITS] == [3, 0, 0]
    assert at > 5
    TRIED["crashes, one at every call of a write"] += at - 1


def test_a_cut_at_every_byte_of_the_last_line_costs_that_line_at_most(tmp_path):
    store = written(tmp_path, UNITS)
    whole = store.file.read_bytes()
    *_, last = whole.splitlines(keepends=True)
    for length in range(len(last)):
        content = whole[: len(whole) - len(last) + length]
        store.file.write_bytes(content)
        there = len(store.find(UNITS))
        assert there == (3 if length == len(last) - 1 else 2)  # of the newline alone
        if SOAK or length % 100 == 0 or length > len(last) - 4:
            store.write(UNITS[0], version(UNITS[0], 1), origin(1))
            assert [stored(store, unit) for unit in UNITS] == [1, 0, 0 if there == 3 else None]
            assert len(store.file.read_bytes().splitlines()) == there + 1
        TRIED["cuts of the last line"] += 1


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """The bytes of a store with three units."""
    return written(tmp_path_factory.mktemp("content"), UNITS).file.read_bytes()


@settings(max_examples=3000 if SOAK else 150, deadline=None)
@given(data=st.data())
def test_a_changed_byte_costs_its_line_and_is_told(content, data):
    newlines = [place for place, byte in enumerate(content) if byte == ord("\n")]
    place = data.draw(st.integers(0, len(content) - 1) | st.sampled_from(newlines))
    changed = bytearray(content)
    changed[place] = data.draw(st.integers(0, 255))
    number = content[:place].count(b"\n") + 1
    with tempfile.TemporaryDirectory() as folder:
        store = Store(folder)
        store.file.write_bytes(changed)
        for _ in range(2):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                found = store.find(UNITS)
            assert all(as_table([r]).equals(version(u, 0)) for u, r in found.items())
            lost = [unit for unit in UNITS if unit not in found]
            assert lost in ([], UNITS[number - 1 : number + (place in newlines)])
            assert [warning.category for warning in told] == [DamagedLine] * bool(lost)
            assert all(f"line {number}, " in str(warning.message) for warning in told)
            extra = Unit(PROTOCOL, (9,))
            store.write(extra, version(extra, 0), origin(1))  # it cuts off nothing
        assert store.file.read_bytes().startswith(changed)
    TRIED["changed bytes"] += 1


class TwoClients(RuleBasedStateMachine):
    """Two stores in one folder against a dictionary of the versions that may be there."""

    def __init__(self):
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clients = [Store(self.folder.name) for _ in range(2)]
        self.allowed = {unit: {None} for unit in UNITS}

    units, clients, numbers = st.sampled_from(UNITS), st.integers(0, 1), st.integers(0, 3)

    @rule(client=clients, unit=units, number=numbers)
    def write(self, client, unit, number):
        record = self.clients[client].write(unit, version(unit, number), origin(1))
        assert as_table([record]).equals(version(unit, number))
        self.allowed[unit] = {number}

    @rule(client=clients, unit=units, number=numbers, at=st.integers(1, 12))
    def kill_while_writing(self, client, unit, number, at):
        done = write_until(self.clients[client], unit, number, at)
        TRIED["kills of one of two clients"] += not done
        self.allowed[unit] = {number} if done else self.allowed[unit] | {number}

    @rule(client=clients, unit=units)
    def read(self, client, unit):
        number = stored(self.clients[client], unit)
        assert number in self.allowed[unit]
        self.allowed[unit] = {number}

    @rule(client=clients)
    def list_units(self, client):
        listed = {unit for unit, _ in self.clients[client].units()}
        assert listed == set(self.clients[client].find(UNITS))

    @rule()
    def forget_the_last_newline(self):
        file = Path(self.folder.name, "runs.jsonl")
        if file.exists() and file.read_bytes().endswith(b"\n"):
            file.write_bytes(file.read_bytes()[:-1])

    def teardown(self):
        assert [path.name for path in Path(self.folder.name).iterdir()] in ([], ["runs.jsonl"])
        self.folder.cleanup()


TestTwoClients = TwoClients.TestCase
TestTwoClients.settings = settings(
    max_examples=1000 if SOAK else 25, stateful_step_count=20, deadline=None
)
