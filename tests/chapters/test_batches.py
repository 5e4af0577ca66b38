"""Batches lack classes as often as they do when drawn, and are worth what their weights say."""

import numpy as np
import pytest

from study.chapters.argument.batches import lacks_class, lacks_some_class, what_batches_have


def test_batches_lack_classes_as_often_as_drawn_ones_do():
    counts, n, trials = [60, 20, 8, 4], 10, 40_000
    labels, draw = np.repeat(np.arange(4), counts), np.random.default_rng(0)
    rows = draw.permuted(np.tile(labels, (trials, 1)), axis=1)[:, :n]
    absent = np.stack([(rows != k).all(axis=1) for k in range(4)])
    error = 4 * 0.5 / trials**0.5
    assert lacks_class(counts, n) == pytest.approx(absent.mean(axis=1), abs=error)
    assert lacks_some_class(counts, n) == pytest.approx(absent.any(axis=0).mean(), abs=error)


def test_of_two_classes_at_most_one_is_lacking():
    counts = [5923, 45]
    assert lacks_some_class(counts, 100) == pytest.approx(lacks_class(counts, 100).sum())


def test_a_batch_smaller_than_the_number_of_classes_lacks_one():
    assert lacks_some_class([5, 5, 5], 2) == 1


def test_a_row_says_what_the_formulas_say():
    sizes, n = [500, 300, 80, 20], 50
    row = what_batches_have({"other": [50, 50], "mine": sizes}, n).loc["mine"]
    lacks = lacks_class(sizes, n)
    assert row["no smallest"] == lacks[-1] == lacks.max()
    assert row["incomplete"] == lacks_some_class(sizes, n)
    assert row["absent"] == pytest.approx(lacks.sum())
    share = np.array(sizes) / sum(sizes)
    assert row["worth, 1"] == pytest.approx(n * 4**2 / (1 / share).sum())
    w = 0.001 / (1 - 0.999 ** np.array(sizes))
    assert row["worth, 0.999"] == pytest.approx(n * (share @ w) ** 2 / (share @ w**2))
