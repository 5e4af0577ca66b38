"""What a store gives back, and what it says of files and folders that it cannot use."""

import errno
import fcntl
import hashlib
import json
import os
import re
import resource
import subprocess
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import wbn
from study.engine import Protocol
from study.stores.provenance import Unit, commit, package_hash
from study.stores.provenance import origin as made
from study.stores.store import ROOM, DamagedLine, Store, as_table

ROOT = Path(__file__).parents[2]
PROTOCOL = Protocol.paper("i", "lf_sbn", hidden=3, epochs=1).resolved()
UNIT, OTHER = (Unit(PROTOCOL, seeds) for seeds in ((0, 1), (7,)))


def rows(unit, number=0.5, **columns):
    """Rows of a unit, as they might come from a run."""
    keys = {"protocol": unit.protocol.hash, "seed": unit.seeds, "train_loss": float(number)}
    return pd.DataFrame(keys | columns)


@pytest.fixture
def store(tmp_path):
    """A store with two units, in a folder with a space."""
    store = Store(tmp_path / "a store")
    store.prepare()
    for unit in (UNIT, OTHER):
        store.write(unit, rows(unit), made(1.5))
    return store


def there(store):
    """The units in a store, all of whose rows must be those that were written."""
    found = store.find([UNIT, OTHER])
    assert all(as_table([record]).equals(rows(unit)) for unit, record in found.items())
    return set(found)


ODD = {
    "zeros": [0.0, -0.0],
    "minus_zero": [-0.0, -0.0],
    "not_a_number": [np.nan, 1.0],
    "nothing": [np.nan, np.nan],
    "infinite": [np.inf, -np.inf],
    "always_infinite": [-np.inf, -np.inf],
    "smallest": [5e-324, 0.1 + 0.2],
    "whole": [3, -(2**62)],
    "whole_float": [3.0, 4.0],
    "true": [True, False],
    "digits": ["007", "1e5"],
    "one_word": ["NaN", "NaN"],
    "words": ["null", "Infinity"],
    "quoted": ['a "b", "columns": {', "ü\n\\"],
    "some_text": ["a", None],
}


def test_values_come_back_as_they_were(store):
    table = rows(UNIT, **ODD)
    store.write(UNIT, table, made(1.0))
    back = store.read(UNIT)
    pd.testing.assert_frame_equal(back, table, check_exact=True)
    for name in ("zeros", "minus_zero"):
        assert np.signbit(back[name]).tolist() == np.signbit(table[name]).tolist()


def test_a_line_is_strict_json(store):
    store.write(UNIT, rows(UNIT, **ODD), made(1.0))

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    for line in store.file.read_text().splitlines():
        assert list(json.loads(line, parse_constant=refuse)) == ["sha256", "unit"]


def test_a_line_is_what_the_page_about_stores_says(store):
    line = store.file.read_bytes().splitlines()[0]
    whole = json.loads(line)
    assert hashlib.sha256(line.partition(b'"unit": ')[2][:-1]).hexdigest() == whole["sha256"]
    unit = whole["unit"]
    assert [*unit][:5] == ["name", "protocol", "hash", "seeds", "rows"]
    assert unit["columns"] == {"protocol": PROTOCOL.hash, "seed": [0, 1], "train_loss": 0.5}
    assert store.find([UNIT, Unit(PROTOCOL, (99,))]) == {UNIT: unit}


def test_the_lines_of_pandas_on_the_page_about_stores_read_one(store):
    page = (ROOT / "results" / "README.md").read_text()
    code = re.search(r"```python\n(.*?)```", page, re.DOTALL)[1]
    names = {}
    exec(code.replace("results/family/runs.jsonl", str(store.file)), names)
    expected = store.table()
    assert names["table"][[*expected]].to_csv(index=False) == expected.to_csv(index=False)


def test_units_come_with_their_seconds_in_the_order_of_names(store):
    assert store.units() == [(UNIT, 1.5), (OTHER, 1.5)]
    pd.testing.assert_frame_equal(store.table(), as_table(store.find([OTHER, UNIT]).values()))


def test_columns_of_some_units_are_nan_in_the_others(store):
    store.write(UNIT, rows(UNIT, gain=[1, 2], words="a"), made(1.0))
    expected = pd.concat([rows(UNIT, gain=[1, 2], words="a"), rows(OTHER)], ignore_index=True)
    pd.testing.assert_frame_equal(store.table(), expected)


@pytest.mark.parametrize(
    "wrong", [rows(OTHER), rows(UNIT).iloc[:0], rows(UNIT).assign(protocol="5f1c00000000")]
)
def test_rows_must_be_those_of_the_unit(store, wrong):
    with pytest.raises(ValueError, match=UNIT.name):
        store.write(UNIT, wrong, made(1.0))


def test_the_same_rows_are_not_written_again_and_others_count_from_then_on(store):
    before = store.file.read_bytes()
    Store(store.folder).write(UNIT, rows(UNIT), made(2.0))
    assert store.file.read_bytes() == before
    for number in (0.0, -0.0, 0.5):
        store.write(UNIT, rows(UNIT, number), made(2.0))
    assert store.file.read_bytes().startswith(before)
    assert len(store.file.read_bytes().splitlines()) == 5
    assert there(store) == {UNIT, OTHER}
    assert store.units()[0] == (UNIT, 2.0)


EDITED = {
    "CRLF": lambda content: content.replace(b"\n", b"\r\n"),
    "CR": lambda content: content.replace(b"\n", b"\r"),
    "byte order mark": lambda content: b"\xef\xbb\xbf" + content,
    "no newline at the end": lambda content: content[:-1],
    "blanks and empty lines": lambda content: b"\n" + content.replace(b"\n", b" \t\n\n"),
}


@pytest.mark.parametrize("edit", EDITED)
@pytest.mark.filterwarnings("error")
def test_what_a_careless_editor_adds_costs_nothing(store, edit):
    store.file.write_bytes(EDITED[edit](store.file.read_bytes()))
    assert there(store) == {UNIT, OTHER}
    third = Unit(PROTOCOL, (8,))
    store.write(third, rows(third), made(1.0))
    assert there(store) == {UNIT, OTHER}
    assert store.read(third).equals(rows(third))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"train_loss", b"Train_loss"),
        (b": 1.5", b": 1.50"),
        (b'"rows": 2', b'"rows":  2'),
        (b'"seeds": [0, 1]', b'"seeds": [0, 2]'),
        (b'{"sha256"', b'{ "sha256"'),
        (b"}}}\n", b"}}},\n"),
    ],
)
def test_a_changed_line_is_named_and_not_used(store, old, new):
    changed = store.file.read_bytes().replace(old, new, 1)
    store.file.write_bytes(changed)
    message = rf"(?s){store.file}.*line 1, {UNIT.name} .*not what was written.*run the plan again"
    with pytest.warns(DamagedLine, match=message):
        assert there(store) == {OTHER}
    with pytest.warns(DamagedLine, match=UNIT.name):
        assert store.units() == [(OTHER, 1.5)]
    store.write(UNIT, rows(UNIT), made(1.0))
    assert store.file.read_bytes().startswith(changed)
    with pytest.warns(DamagedLine):
        assert there(store) == {UNIT, OTHER}


def test_many_damaged_lines_are_told_in_one_warning(store):
    store.file.write_bytes(b"<<<<<<< HEAD\n" + store.file.read_bytes() + b"nonsense\n" * 100)
    with pytest.warns(DamagedLine, match=r"line 1, no unit's name .*and 98 more") as told:
        assert there(store) == {UNIT, OTHER}
    assert len(told) == 1


def test_a_unit_that_this_version_would_name_otherwise_is_told(store):
    told = rf"{UNIT.name} \(this version of wbn would name it i_lf_sbn_{'0' * 12}_0-1\)"
    with (
        mock.patch("study.engine.protocol._hash", return_value="0" * 12),
        pytest.warns(DamagedLine, match=told),
    ):
        assert store.units() == []


def a_loop(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, a_loop])
def test_a_file_that_cannot_be_read_is_told(store, make):
    store.file.unlink()
    make(store.file)
    message = rf"cannot read {store.file}: .*Fix this"
    with pytest.raises(OSError, match=message):
        store.units()
    with pytest.raises(OSError, match=message):
        store.write(UNIT, rows(UNIT), made(1.0))


def test_a_folder_that_is_not_there_is_an_empty_store(tmp_path):
    (tmp_path / "file").touch()
    for folder in (tmp_path / "nowhere", tmp_path / "file"):
        assert Store(folder).units() == []
        assert Store(folder).find([UNIT]) == {}
        assert Store(folder).table().empty


@pytest.fixture
def small_files():
    """Files of more than 3000 bytes cannot be written, as on a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


@pytest.mark.usefixtures("small_files")
def test_a_full_disk_is_noticed_before_anything_is_run(tmp_path):
    with pytest.raises(OSError, match=f"cannot write to the store {tmp_path}: File too large"):
        Store(tmp_path).prepare()
    assert list(tmp_path.iterdir()) == []


def test_there_is_room_for_every_stored_unit():
    files = (ROOT / "results").glob("*/runs.jsonl")
    longest = max(len(line) for file in files for line in file.read_bytes().splitlines())
    assert longest < ROOM / 4


def test_a_write_that_fails_leaves_the_file_as_it_was(store, small_files):
    before = store.file.read_bytes()
    long = rows(UNIT, words=["a" * 4000, "b"])
    with pytest.raises(OSError, match=rf"cannot write {UNIT.name} to {store.file}: File too large"):
        store.write(UNIT, long, made(1.0))
    assert store.file.read_bytes() == before


def test_a_sync_that_fails_leaves_the_file_as_it_was(store):
    before = store.file.read_bytes()
    failing = OSError(errno.EIO, "Input/output error")
    with mock.patch("os.fsync", side_effect=failing), pytest.raises(OSError, match="Input/output"):
        store.write(UNIT, rows(UNIT, 9), made(1.0))
    assert store.file.read_bytes() == before


def test_an_interrupt_during_the_sync_keeps_what_a_reader_may_have_seen(store):
    with mock.patch("os.fsync", side_effect=KeyboardInterrupt), pytest.raises(KeyboardInterrupt):
        store.write(UNIT, rows(UNIT, 9), made(1.0))
    assert store.read(UNIT).equals(rows(UNIT, 9))
    store.write(UNIT, rows(UNIT), made(1.0))  # the lock is free
    assert there(store) == {UNIT, OTHER}


def test_a_line_is_added_under_the_lock(store):
    calls = {name: getattr(os, name) for name in ("ftruncate", "write", "fsync")}
    seen = []

    def refused(name):
        def call(*args):
            folder = os.open(store.folder, os.O_RDONLY)
            with pytest.raises(BlockingIOError):
                fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.close(folder)
            seen.append(name)
            return calls[name](*args)

        return mock.patch(f"os.{name}", call)

    with refused("ftruncate"), refused("write"), refused("fsync"):
        store.write(UNIT, rows(UNIT, 9), made(1.0))
    assert seen == ["ftruncate", "write", "fsync"]


def test_a_process_that_was_forked_meanwhile_does_not_keep_the_lock(store):
    fsync, forked = os.fsync, []

    def fork_and_sync(handle):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(writer)
            os.read(reader, 1)  # until the parent lets it go
            os._exit(0)
        os.close(reader)
        forked.append((child, writer))
        fsync(handle)

    with mock.patch("os.fsync", fork_and_sync):
        store.write(UNIT, rows(UNIT, 9), made(1.0))
    folder = os.open(store.folder, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)  # BlockingIOError if it is taken
    os.close(folder)
    for child, writer in forked:
        os.close(writer)
        os.waitpid(child, 0)


def test_the_file_and_the_name_of_a_new_one_are_synced(tmp_path):
    synced, fsync = [], os.fsync

    def note(handle):
        synced.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    with mock.patch("os.fsync", note):
        Store(tmp_path).write(UNIT, rows(UNIT), made(1.0))
        Store(tmp_path).write(OTHER, rows(OTHER), made(1.0))
    assert synced == [str(tmp_path / "runs.jsonl"), str(tmp_path), str(tmp_path / "runs.jsonl")]


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_units_of_two_branches_stand_side_by_side_after_a_merge(tmp_path):
    store, third = Store(tmp_path / "results" / "a store"), Unit(PROTOCOL, (8,))
    (tmp_path / ".gitattributes").write_bytes((ROOT / ".gitattributes").read_bytes())
    git(tmp_path, "init", "-q", "-b", "ours")
    git(tmp_path, "config", "core.autocrlf", "true")
    store.prepare()

    def commit_with(unit):
        store.write(unit, rows(unit), made(1.0))
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "-q", "-m", unit.name)

    commit_with(OTHER)
    git(tmp_path, "switch", "-q", "-c", "theirs")
    commit_with(UNIT)
    git(tmp_path, "switch", "-q", "ours")
    commit_with(third)
    git(tmp_path, "merge", "-q", "-m", "merge", "theirs")
    assert there(store) == {UNIT, OTHER}
    assert store.read(third).equals(rows(third))
    assert [unit for unit, _ in store.units()] == [UNIT, OTHER, third]


def test_the_commit_is_noted_where_there_is_one(tmp_path, monkeypatch):
    monkeypatch.setattr("study.stores.provenance.REPOSITORY", tmp_path)
    assert commit.__wrapped__() == "unknown"
    git(tmp_path, "init", "-q")
    assert commit.__wrapped__() == "unknown"
    (tmp_path / "wbn").mkdir()
    (tmp_path / "wbn" / "core.py").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    head = git(tmp_path, "rev-parse", "HEAD").strip()
    (tmp_path / "results").touch()
    assert commit.__wrapped__() == head
    (tmp_path / "wbn" / "core.py").write_text("changed")
    assert commit.__wrapped__() == f"{head}+changes"
    monkeypatch.setenv("PATH", "")
    assert commit.__wrapped__() == "unknown"


@pytest.mark.parametrize("name", ["__init__.py", "experiments/training.py", "native/batch.h"])
def test_the_hash_of_the_package_sees_every_source(tmp_path, monkeypatch, name):
    for file in ("__init__.py", "experiments/training.py", "native/batch.h"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    monkeypatch.setattr(wbn, "__file__", str(tmp_path / "__init__.py"))
    before = package_hash.__wrapped__()
    (tmp_path / name).write_text("changed")
    assert package_hash.__wrapped__() != before
