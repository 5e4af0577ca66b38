"""Splits against Table 1, and the independence of the random streams."""

import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from study.engine.data import (
    ALL_EXPERIMENTS,
    MNIST,
    DataSet,
    Experiment,
    imbalanced,
    load_mnist,
    load_split,
    long_tail_counts,
    stream,
)
from study.engine.fetch import data_folder
from study.engine.protocol import METHODS, Protocol
from study.engine.training import run

TABLE_1 = {
    "i": {0: (5923, 980), 1: (45, 1135)},
    "ii": {1: (45, 1135), 8: (5851, 974)},
    "iii": {4: (39, 982), 7: (6265, 1028)},
}


@pytest.mark.parametrize("experiment", TABLE_1)
@pytest.mark.parametrize("seed", [0, 7])
def test_sizes_equal_table_1(experiment, seed):
    split = load_split(experiment, seed)
    assert split.digits == tuple(TABLE_1[experiment])
    for label, (train, test) in enumerate(TABLE_1[experiment].values()):
        assert (split.train_labels == label).sum() == train
        assert (split.test_labels == label).sum() == test


@pytest.mark.parametrize("experiment", TABLE_1)
def test_images_keep_their_digits(experiment):
    split = load_split(experiment, 3)
    images, digits = load_mnist(train=True)
    assert torch.equal(split.train_images, images[split.train_index])
    assert torch.equal(torch.tensor(split.digits)[split.train_labels], digits[split.train_index])
    assert len(split.train_index.unique()) == len(split.train_index)


def test_mnist_is_what_its_entry_says():
    for train, number in ((True, 60_000), (False, 10_000)):
        images, digits = MNIST.load(train)
        assert images.shape == (number, *MNIST.shape)
        assert set(digits.tolist()) == set(range(MNIST.classes))
        scaled = MNIST.scaled(images[:2000], torch.float64)
        assert (scaled.min(), scaled.max(), scaled.shape[1]) == (0, 1, 784)


def test_images_of_a_split_are_made_when_asked_for(monkeypatch):
    labels = {train: load_mnist(train)[1] for train in (True, False)}
    spy = replace(MNIST, load=lambda train: (Untouchable(), labels[train]))
    monkeypatch.setitem(ALL_EXPERIMENTS, "i", replace(ALL_EXPERIMENTS["i"], data_set=spy))
    split = load_split("i", 0)
    assert split.counts.tolist() == [5923, 45]
    assert split.counts is split.counts
    assert len(split.test_labels) == 2115
    with pytest.raises(AssertionError, match="images"):
        _ = split.train_images


class Untouchable:
    def __getitem__(self, rows):
        raise AssertionError("images")


def rows_of_numbers(classes):
    """A data set of two numbers a row, not images, with class means apart."""

    def load(train):
        labels = torch.arange(classes).repeat(80 if train else 30)
        noise = torch.rand(len(labels), 2, generator=stream(0, f"toy/{train}"))
        return 3 * labels[:, None] + noise, labels

    return DataSet("toy", "made here", (2,), classes, 3.0 * classes, load)


@pytest.mark.parametrize("sizes", [{0: None, 2: 20}, {2: 60, 0: 30, 1: 20}])
@pytest.mark.parametrize("method", METHODS)
def test_another_data_set_is_an_entry(sizes, method, monkeypatch):
    toy = rows_of_numbers(classes=3)
    monkeypatch.setitem(ALL_EXPERIMENTS, "toy", Experiment(toy, sizes))
    split = load_split("toy", seed=1)
    assert split.counts.tolist() == [size or 80 for size in sizes.values()]
    assert torch.equal(
        split.train_images[:, 0] // 3, torch.tensor(split.digits)[split.train_labels]
    )
    assert len(split.test_labels) == 30 * len(sizes)
    changes = {"hidden": 8, "batch_size": 10, "epochs": 8, "learning_rate": 0.1}
    protocol = Protocol.paper("toy", method, eval_epochs=[8], **changes)
    table = run(protocol, [0, 1], progress=False)
    assert table.experiment.tolist() == ["toy"] * 2
    assert table.accuracy_overall.min() > 0.9


def test_a_network_of_convolutions_refuses_rows(monkeypatch):
    toy = Experiment(rows_of_numbers(classes=2), {0: None, 1: 20})
    monkeypatch.setitem(ALL_EXPERIMENTS, "toy", toy)
    with pytest.raises(ValueError, match=r"shape \(2,\): it takes images .* choose 'mlp'"):
        run(Protocol.paper("toy", "lf_sbn", network="conv"), [0], progress=False)


@pytest.mark.parametrize("ratio", [10, 50, 100, 200])
def test_long_tailed_classes_are_the_digits(ratio):
    split = load_split(f"lt{ratio}", 1)
    digits, test_digits = load_mnist(True)[1], load_mnist(False)[1]
    assert split.counts.tolist() == [round(5000 / ratio ** (k / 9)) for k in range(10)]
    assert torch.equal(split.train_labels, digits[split.train_index])
    assert torch.equal(split.test_labels, test_digits.sort().values)
    assert split.minority == 9


def test_a_longer_tail_is_part_of_a_shorter_one():
    rows = [set(load_split(f"lt{ratio}", 3).train_index.tolist()) for ratio in (10, 50, 200)]
    assert rows[2] < rows[1] < rows[0]
    assert rows[2] != set(load_split("lt200", 4).train_index.tolist())


def test_minority_is_the_small_class():
    assert [load_split(e, 0).minority for e in TABLE_1] == [1, 0, 0]


def test_seed_draws_the_minority_and_nothing_else():
    one, two, again = (load_split("i", seed) for seed in (0, 1, 0))
    assert torch.equal(one.train_index, again.train_index)
    same = one.train_index == two.train_index
    assert same[:5923].all()
    assert not same[5923:].all()
    assert torch.equal(one.test_images, two.test_images)


def test_draw_of_a_class_does_not_depend_on_the_other_class():
    first, second = (load_split(e, 5) for e in ("i", "ii"))
    assert torch.equal(first.train_index[5923:], second.train_index[:45])


def test_minority_draw_covers_the_class_uniformly():
    labels = torch.zeros(20, dtype=torch.long)
    hits = torch.zeros(20)
    for seed in range(2000):
        hits[imbalanced(labels, {0: 5}, seed)] += 1
    expected = 2000 * 5 / 20
    assert ((hits - expected).abs() < 5 * (expected * 0.75) ** 0.5).all()


@pytest.mark.parametrize("count", [0, -1, 4])
def test_impossible_draw_is_refused(count):
    with pytest.raises(ValueError, match="between 1 and 3"):
        imbalanced(torch.tensor([5, 5, 5]), {5: count}, seed=0)


def test_unknown_experiment_is_refused():
    with pytest.raises(ValueError, match="there are i, ii, iii, lt10"):
        load_split("iv", 0)


def test_long_tail_runs_from_n_max_to_n_max_over_ratio():
    counts = long_tail_counts(5000, 200, 10)
    assert counts[0] == 5000
    assert counts[-1] == 25
    steps = [a / b for a, b in itertools.pairwise(counts)]
    assert max(steps) / min(steps) < 1.05


@pytest.mark.parametrize("bad", [(5000, 0.5, 10), (5000, 100, 1), (50, 100, 10)])
def test_impossible_long_tail_is_refused(bad):
    with pytest.raises(ValueError, match="n_max"):
        long_tail_counts(*bad)


def test_streams_are_reproducible_and_distinct():
    draws = {
        (seed, purpose): torch.rand(4, generator=stream(seed, purpose))
        for seed in range(3)
        for purpose in ("split", "initialization", "order")
    }
    assert torch.equal(draws[0, "split"], torch.rand(4, generator=stream(0, "split")))
    assert len({tuple(d.tolist()) for d in draws.values()}) == len(draws)


def test_missing_data_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setenv("WBN_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match="wbn data"):
        load_mnist.__wrapped__(True)


@pytest.fixture
def raw(tmp_path, monkeypatch):
    """MNIST's files in a folder of the test's own, as links, which it may replace."""
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for path in (data_folder() / "MNIST" / "raw").resolve().iterdir():
        (folder / path.name).symlink_to(path)
    monkeypatch.setenv("WBN_DATA", str(tmp_path))
    return folder


@pytest.mark.parametrize(
    ("name", "header", "spoil"),
    [
        ("train-labels-idx1-ubyte", 8, lambda labels: bytes(9 - label for label in labels)),
        ("t10k-labels-idx1-ubyte", 8, lambda labels: labels[1:] + labels[:1]),
        ("t10k-images-idx3-ubyte", 16, lambda pixels: bytes(len(pixels))),
        ("t10k-images-idx3-ubyte", 16, lambda pixels: pixels[:-1] + b"1"),
    ],
    ids=["flipped labels", "shifted labels", "zeroed images", "one pixel"],
)
def test_files_that_torchvision_would_take_are_refused_when_they_are_wrong(
    raw, name, header, spoil
):
    content = (raw / name).read_bytes()
    (raw / name).unlink()
    (raw / name).write_bytes(content[:header] + spoil(content[header:]))
    with pytest.raises(ValueError, match=rf"{name} is corrupted \({len(content)} .*`wbn data`"):
        load_mnist.__wrapped__(name.startswith("train"))
    load_mnist.__wrapped__(not name.startswith("train"))


def test_what_is_loaded_is_what_torchvision_loads():
    from torchvision import datasets

    for train in (True, False):
        theirs = datasets.MNIST(data_folder(), train=train)
        images, digits = load_mnist(train)
        assert torch.equal(images, theirs.data)
        assert torch.equal(digits, theirs.targets)
        assert (images.dtype, digits.dtype) == (torch.uint8, torch.int64)


def test_only_verified_files_are_read(raw):
    """Old versions of torchvision left processed files, which it still reads instead."""
    processed = raw.parent / "processed"
    processed.mkdir()
    for name in ("training.pt", "test.pt"):
        torch.save((torch.zeros(2, 28, 28), torch.zeros(2)), processed / name)
    assert [len(tensor) for tensor in load_mnist.__wrapped__(False)] == [10_000, 10_000]


def test_a_process_verifies_each_file_once(monkeypatch):
    hashed, digest = [], hashlib.file_digest
    monkeypatch.setattr(
        hashlib, "file_digest", lambda file, kind: hashed.append(file.name) or digest(file, kind)
    )
    load_mnist.cache_clear()
    for train in (True, False, True, False):
        MNIST.load(train)
    assert sorted(path.name for path in map(Path, hashed)) == sorted(MNIST.files)


def test_an_ordinary_user_reads_from_a_folder_that_cannot_be_written():
    """With a name that is not ASCII, in a process that knows nothing else."""
    program = (
        "import encodings.hex_codec, os, torchvision.datasets.mnist\n"
        "from study.engine import load_mnist\n"
        "os.getuid() or os.setuid(65534)\n"
        "print(tuple(load_mnist(False)[0].shape), os.access(os.environ['WBN_DATA'], os.W_OK))"
    )
    with tempfile.TemporaryDirectory(prefix="für alle Ω ") as folder:
        raw = Path(folder) / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for path in (data_folder() / "MNIST" / "raw").glob("t10k-*"):
            shutil.copyfile(path, raw / path.name)
        for path in (Path(folder), raw.parent, raw):
            path.chmod(0o555)
        variables = {"WBN_DATA": folder, "LC_ALL": "C", "PYTHONUTF8": "0"}
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | variables,
            capture_output=True,
            text=True,
        )
    assert (done.stdout, done.stderr) == ("(10000, 28, 28) False\n", "")


def test_checksum_of_mnist_is_that_of_its_files_and_needs_none_of_them(tmp_path, monkeypatch):
    raw = data_folder() / "MNIST" / "raw"
    sums = subprocess.run(["sha256sum", *sorted(MNIST.files)], cwd=raw, capture_output=True)
    monkeypatch.setenv("WBN_DATA", str(tmp_path))
    assert replace(MNIST).checksum == hashlib.sha256(sums.stdout).hexdigest()


def in_memory(inputs, labels, test_labels):
    """A data set of given tensors."""
    parts = {True: (inputs, labels), False: (inputs, test_labels)}
    return DataSet("made", "here", tuple(inputs.shape[1:]), 3, 1.0, parts.__getitem__)


def test_checksum_of_data_in_memory_tells_any_change():
    inputs, labels, test = torch.rand(6, 4), torch.arange(6) % 3, torch.arange(6) // 2
    same = [
        in_memory(inputs, labels, test),
        in_memory(inputs.clone(), labels.clone(), test),
        in_memory(inputs.T.contiguous().T, labels, test),
    ]
    moved = inputs.clone()
    moved[5, 3] += 1e-6
    others = [
        in_memory(moved, labels, test),
        in_memory(inputs, 2 - labels, test),
        in_memory(inputs, test, labels),
        in_memory(inputs.view(6, 2, 2), labels, test),
        in_memory(inputs.view(torch.int32), labels, test),
    ]
    assert len({data_set.checksum for data_set in same}) == 1
    assert len({data_set.checksum for data_set in (same[0], *others)}) == 1 + len(others)


def test_checksum_is_computed_once():
    toy, calls = rows_of_numbers(classes=3), []
    counted = replace(toy, load=lambda train: calls.append(train) or toy.load(train))
    assert counted.checksum == counted.checksum == toy.checksum
    assert calls == [True, False]
