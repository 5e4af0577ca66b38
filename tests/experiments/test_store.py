"""The store against full disks, damage, foreign files and names that look like numbers."""

import ast
import hashlib
import itertools
import json
import os
import resource
import time
from pathlib import Path

import pandas as pd
import pytest

import wbn
from wbn.experiments import Protocol, run
from wbn.experiments.origin import SOURCES, Unit, origin, source_hash
from wbn.experiments.store import ABANDONED, DamagedPart, Store

UNIT = Unit(Protocol.paper("i", "lf_sbn", hidden=3, epochs=1).resolved(), (0, 1))


@pytest.fixture(scope="module")
def table():
    return run(UNIT.protocol, UNIT.seeds, progress=False)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


def files(store):
    return sorted((path.name, path.read_bytes()) for path in store.folder.iterdir())


def looks_like_a_number(text):
    try:
        float(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("letter", ["", "e"])
def test_a_hash_that_looks_like_a_number_stays_text(store, table, letter):
    rates = (k * 1e-6 for k in itertools.count(1))
    protocols = (Protocol.paper("i", "lf_sbn", learning_rate=rate) for rate in rates)
    odd = next(p for p in protocols if letter in p.hash and looks_like_a_number(p.hash))
    unit = Unit(odd.resolved(), UNIT.seeds)
    store.write(unit, table.assign(protocol=odd.hash), origin(1.0))
    assert set(store.read(unit).protocol) == {odd.hash}


@pytest.mark.parametrize("present", [False, True])
@pytest.mark.parametrize(("copies", "room"), [(1, 600), (20, 4000)], ids=["sidecar", "part"])
def test_a_write_that_fails_at_either_file_leaves_the_store_as_it_was(
    store, table, present, copies, room
):
    store.write(UNIT, table, origin(1.0))
    sizes = [len(content) * (copies if ".csv" in name else 1) for name, content in files(store)]
    assert sorted(size > room for size in sizes) == [False, True]
    if not present:
        store = Store(store.folder / "fresh")
        store.prepare()
    before, limits = files(store), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            store.write(UNIT, pd.concat([table] * copies).assign(train_loss=1.25), origin(1.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(store) == before


def test_a_rewrite_that_ends_between_its_renames_leaves_no_unit(store, table, monkeypatch):
    store.write(UNIT, table.assign(train_loss=0.5), origin(1.0))
    replace = os.replace

    def end_at_the_sidecar(source, target):
        if target.suffix == ".json":
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", end_at_the_sidecar)
    with pytest.raises(KeyboardInterrupt):
        store.write(UNIT, table, origin(1.0))
    assert store.read(UNIT) is None


@pytest.mark.parametrize(
    "change",
    [
        lambda sidecar: "",
        lambda sidecar: "[]",
        lambda sidecar: "{}",
        lambda sidecar: json.dumps(sidecar)[:-30],
        lambda sidecar: json.dumps(sidecar | {"checksum": "0"}),
        lambda sidecar: json.dumps(sidecar | {"seeds": [0]}),
        lambda sidecar: json.dumps(sidecar | {"seeds": []}),
        lambda sidecar: json.dumps(sidecar | {"seconds": 7}),  # any entry is sealed
        lambda sidecar: json.dumps({k: v for k, v in sidecar.items() if k != "rows"}),
        lambda sidecar: json.dumps(sidecar | {"seconds": "long"}),
        lambda sidecar: "[" * 100_000,
        lambda sidecar: "9" * 10_000,
        lambda sidecar: json.dumps(
            sidecar | {"protocol": sidecar["protocol"] | {"learning_rate": 0.5}}
        ),
    ],
)
def test_a_damaged_sidecar_is_named_and_set_aside(store, table, change):
    store.write(UNIT, table, origin(1.0))
    path = store.folder / f"{UNIT.name}.json"
    path.write_text(change(json.loads(path.read_text())))
    with pytest.warns(DamagedPart, match=UNIT.name):
        assert store.read(UNIT) is None
    assert [name for name, _ in files(store)] == [
        f"{UNIT.name}.csv.damaged",
        f"{UNIT.name}.json.damaged",
    ]
    store.write(UNIT, table, origin(1.0))
    assert store.read(UNIT).equals(table)


@pytest.mark.parametrize("suffix", ["csv", "json"])
def test_a_pipe_in_the_place_of_a_file_does_not_hang(store, table, suffix):
    store.write(UNIT, table, origin(1.0))
    path = store.folder / f"{UNIT.name}.{suffix}"
    path.unlink()
    os.mkfifo(path)
    with pytest.warns(DamagedPart, match="not a regular file"):
        assert store.read(UNIT) is None


def test_a_sidecar_of_an_older_store_has_no_seal_and_is_read(store, table):
    store.write(UNIT, table, origin(1.0))
    path = store.folder / f"{UNIT.name}.json"
    sidecar = json.loads(path.read_text())
    del sidecar["seal"]
    path.write_text(json.dumps(sidecar))
    assert store.read(UNIT).equals(table)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.iloc[1:],
        lambda t: t.assign(seed=t.seed + 1),
        lambda t: t.assign(protocol="5f1c00000000"),
    ],
)
def test_a_part_must_be_what_its_sidecar_tells_of(store, table, change):
    store.write(UNIT, table, origin(1.0))
    part, path = (store.folder / f"{UNIT.name}.{suffix}" for suffix in ("csv", "json"))
    content = change(table).to_csv(index=False).encode()
    part.write_bytes(content)
    sidecar = json.loads(path.read_text())
    del sidecar["seal"]  # as in a store that was written before there were seals
    path.write_text(json.dumps(sidecar | {"checksum": hashlib.sha256(content).hexdigest()}))
    with pytest.warns(DamagedPart, match="not those of its sidecar"):
        assert store.read(UNIT) is None


def test_the_same_content_is_not_written_again(store, table):
    store.write(UNIT, table, origin(1.0))
    before = {path: path.stat().st_mtime_ns for path in store.folder.iterdir()}
    store.write(UNIT, table, origin(2.0))
    assert {path: path.stat().st_mtime_ns for path in store.folder.iterdir()} == before


def test_new_sources_with_the_same_content_replace_the_sidecar_only(store, table):
    store.write(UNIT, table, origin(1.0) | {"sources": "older"})
    part, path = (store.folder / f"{UNIT.name}.{suffix}" for suffix in ("csv", "json"))
    before = part.stat().st_mtime_ns
    store.write(UNIT, table, origin(1.0))
    assert json.loads(path.read_text())["sources"] == source_hash()
    assert part.stat().st_mtime_ns == before


def test_a_table_of_ten_classes_comes_back_to_the_bit(store):
    protocol = Protocol.paper("lt200", "wlf_wbn", hidden=3, epochs=1, logit_adjustment=1.0)
    unit = Unit(protocol.resolved(), (0, 1))
    table = run(unit.protocol, unit.seeds, progress=False)
    store.write(unit, table, origin(1.0))
    pd.testing.assert_frame_equal(store.read(unit), table, check_exact=True)
    assert [written for written, _ in store.units()] == [unit]


def test_units_come_with_their_seconds_and_each_sidecar_is_read_once(store, table, monkeypatch):
    units = [Unit(UNIT.protocol, seeds) for seeds in ((0, 1), (12,), (5, 7))]
    for seconds, unit in enumerate(units):
        store.write(unit, table.iloc[: len(unit.seeds)].assign(seed=unit.seeds), origin(seconds))
    read, from_dict = [], Protocol.from_dict
    monkeypatch.setattr(Protocol, "from_dict", lambda d: read.append(d) or from_dict(d))
    assert set(store.units()) == set(zip(units, (0, 1, 2), strict=True))
    assert len(read) == len(units)
    assert [unit.name for unit, _ in store.units()] == sorted(unit.name for unit in units)


def test_a_missing_part_is_damage(store, table):
    store.write(UNIT, table, origin(1.0))
    (store.folder / f"{UNIT.name}.csv").unlink()
    with pytest.warns(DamagedPart, match=UNIT.name):
        assert store.read(UNIT) is None
    assert store.units() == []


def test_other_files_in_the_folder_are_left_alone(store, table):
    (store.folder / "speed_of_the_engine.json").write_text('{"ms": 1}')
    store.write(UNIT, table, origin(1.0))
    assert [unit for unit, _ in store.units()] == [UNIT]
    assert (store.folder / "speed_of_the_engine.json").exists()


def test_temporary_files_of_dead_processes_are_removed(store):
    for name, age in ((".old.tmp", ABANDONED + 60), (".young.tmp", 0)):
        (store.folder / name).write_text("")
        os.utime(store.folder / name, (time.time() - age,) * 2)
    store.prepare()
    assert [name for name, _ in files(store)] == [".young.tmp"]


def test_sources_are_training_and_all_that_it_imports():
    package = Path(wbn.__file__).parent
    found, waiting = set(), ["experiments/training"]
    while waiting:
        name = waiting.pop()
        if name not in found and (package / f"{name}.py").exists():
            found.add(name)
            for node in ast.walk(ast.parse((package / f"{name}.py").read_text())):
                if isinstance(node, ast.ImportFrom) and node.module.startswith("wbn"):
                    modules = [node.module, *(f"{node.module}.{a.name}" for a in node.names)]
                    waiting += [module[4:].replace(".", "/") for module in modules]
    assert found == set(SOURCES)
