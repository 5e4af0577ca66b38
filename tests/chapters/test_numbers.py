"""Numbers in sentences, against arithmetic that shares no code with the functions."""

import json
import statistics
from itertools import product
from math import comb, log

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from study.chapters.argument import numbers as argument
from study.chapters.argument.batches import example_batch
from study.chapters.long_tail import numbers as long_tail
from study.chapters.three_experiments import numbers as three_experiments
from study.engine.data import EXPERIMENTS
from study.engine.protocol import FAMILY, Protocol
from study.figures.batches import mini_batch
from study.figures.text import COUNTS
from study.stores.plan import RESULTS


def test_the_base_rate_of_5923_and_45():
    loss = -(5923 * log(5923 / 5968) + 45 * log(45 / 5968)) / 5968
    assert argument.loss_gone() == pytest.approx(100 * (1 - loss / log(2)))


def test_majority_has_two_thirds_of_a_batch_on_average():
    zero, one = 5968 / 5923, 5968 / 45
    mean = 0.0
    for ones in range(46):
        chance = comb(45, ones) * comb(5923, 100 - ones) / comb(5968, 100)
        majority = (100 - ones) * zero
        mean += chance * majority / (majority + ones * one)
    assert mean == pytest.approx(2 / 3, abs=0.005)
    assert argument.majority_shares() == ("two thirds", "half")


def test_one_sample_outweighs_99():
    each = [5968 / 5923] * 99 + [5968 / 45]
    worth = sum(each) ** 2 / sum(w * w for w in each)
    assert argument.worth_with_one() == (100, pytest.approx(worth))


def test_means_are_those_that_the_picture_marks():
    drawn = example_batch("i", seed=0)
    figure = mini_batch(drawn.signals[:, drawn.unit], drawn.sample_weight, drawn.minority)
    marked = sorted(line.get_xdata()[0] for line in figure.axes[0].get_lines())
    plt.close(figure)
    assert marked == pytest.approx(sorted(argument.picture()[2:]))


@pytest.fixture(scope="module")
def family():
    """Each run of the family at epoch 20, by protocol, straight from the file."""
    found = {}
    for line in (RESULTS / "family" / "runs.jsonl").read_text().splitlines():
        unit = json.loads(line)["unit"]
        columns = {
            name: values if isinstance(values, list) else [values] * unit["rows"]
            for name, values in unit["columns"].items()
        }
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            if row["epoch"] == 20:
                found.setdefault(row["protocol"], {})[row["seed"]] = row
    return found


def test_runs_are_those_of_the_files(family):
    assert three_experiments.runs("family") == sum(map(len, family.values())) == 2400


def test_paired_differences_by_hand(family):
    below = ties = 0
    for experiment, reading, other in product(EXPERIMENTS, FAMILY, ("lf_sbn", "wlf_sbn")):
        weighted, baseline = (
            family[Protocol.paper(experiment, method, **reading).hash]
            for method in ("wlf_wbn", other)
        )
        gap = [weighted[s]["accuracy_overall"] - baseline[s]["accuracy_overall"] for s in weighted]
        arm = 2.0227 * statistics.stdev(gap) / 40**0.5  # Student's t with 39 degrees of freedom
        below += statistics.mean(gap) + arm < 0
        ties += abs(statistics.mean(gap)) <= arm
    assert three_experiments.differences() == (48, below, COUNTS[ties])


def test_minority_accuracies_beside_the_printed_ones(family):
    ours = [
        statistics.mean(float(row["accuracy_minority"]) for row in family[hash_].values())
        for hash_ in (Protocol.paper("iii", m).hash for m in ("lf_sbn", "wlf_sbn"))
    ]
    found = three_experiments.minority_with_standard_bn()
    assert found == (*map(pytest.approx, ours), "34.8", "28.1")


@pytest.mark.parametrize(
    ("highs", "ratio"),
    [
        ({"lt10": (1, 1), "lt50": (-1, 1), "lt100": (-1, -1), "lt200": (-1, -1)}, 100),
        ({"lt10": (-1, -1), "lt50": (-1, 1), "lt100": (-1, -1), "lt200": (-1, -1)}, 100),
        ({"lt10": (-1, -1), "lt50": (-1, -1), "lt100": (-1, -1), "lt200": (-1, -1)}, 10),
    ],
)
def test_behind_from_a_ratio_on(monkeypatch, highs, ratio):
    table = pd.DataFrame(highs).melt(var_name="experiment", value_name="high")
    table = table.assign(network="paper's", setting="output BN")
    monkeypatch.setattr(long_tail, "differences", lambda: table)
    assert long_tail.behind_from() == ratio


def test_extremes_are_those_of_the_settings_that_are_named(monkeypatch):
    settings = ["output BN", "output BN, pooled", "no output BN", "no output BN, pooled"]
    table = pd.DataFrame({"setting": settings, "mean": [-0.012, -0.03, 0.004, -0.001]})
    monkeypatch.setattr(long_tail, "differences", lambda: table)
    assert long_tail.behind_with_output_bn() == (0.012, 0.03)
    assert long_tail.without_output_bn() == (-0.004, 0.004, 0.001, -0.001, 0.001, 0.004, 0.004)
