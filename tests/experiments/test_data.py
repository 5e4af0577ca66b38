"""Splits against Table 1, and the independence of the random streams."""

import itertools
from dataclasses import replace

import pytest
import torch

from wbn.experiments import data
from wbn.experiments.data import (
    ALL_EXPERIMENTS,
    MNIST,
    DataSet,
    Experiment,
    load_mnist,
    load_split,
)
from wbn.experiments.draw import imbalanced, long_tail_counts, stream
from wbn.experiments.protocol import METHODS, Protocol
from wbn.experiments.training import run

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
    assert data.data_folder() == tmp_path
