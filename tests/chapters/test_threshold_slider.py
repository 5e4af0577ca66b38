"""The threshold that one can drag, before any script runs, shows what wbn computes."""

import json
import re

import numpy as np
import pandas as pd
import pytest
import torch

from study.chapters.three_experiments.slider import (
    BASE,
    BINS,
    TOP,
    best_threshold,
    threshold_slider,
)
from study.engine.threshold import best_balanced_accuracy


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    minority = pd.Series(np.arange(400) % 2 == 0)
    shift = {"first": -2.0, "second": 1.0}
    margins = pd.DataFrame(
        {
            name: (generator.normal(size=400) + 3 * minority + at).round(3)
            for name, at in shift.items()
        }
    )
    return margins, minority


@pytest.fixture(scope="module")
def page(data):
    return threshold_slider(*data).data


def shares(margin, minority, threshold):
    rare = sum(m > threshold for m in margin[minority]) / minority.sum()
    common = sum(m <= threshold for m in margin[~minority]) / (~minority).sum()
    return rare, common, (rare + common) / 2


def test_the_first_readout_is_at_the_network_s_own_threshold(data, page):
    margins, minority = data
    rare, common, own = (f"{100 * s:.1f}" for s in shares(margins["first"], minority, 0))
    best = best_balanced_accuracy(torch.tensor(margins["first"]), torch.tensor(minority))
    at = re.search(r'class="best-at">(.*?)<', page)[1]
    readout = re.sub(r"<[^>]+>", "", re.search(r"<output.*?</output>", page, re.S).group())
    assert readout == (
        f"With the threshold at 0.00, {rare} % of the minority and {common} % of the majority are "
        f"right: the balanced accuracy is {own} %. With the network's own threshold, 0, it is "
        f"{own} %, and with the best one, {at}, it is {100 * best:.1f} %."
    )


@pytest.mark.parametrize("network", ["first", "second"])
def test_the_best_threshold_has_the_best_accuracy(data, network):
    margins, minority = data
    at, best = best_threshold(margins[network], minority)
    assert shares(margins[network], minority, at)[2] == pytest.approx(best)
    assert best == pytest.approx(
        best_balanced_accuracy(torch.tensor(margins[network]), torch.tensor(minority))
    )


def test_the_script_gets_every_margin(data, page):
    margins, minority = data
    settings = json.loads(re.search(r"getElementById.*?, (\{.*\})\);", page, re.S)[1])
    for name, (common, rare, at, best) in zip(margins, settings["networks"], strict=True):
        assert rare == sorted(round(1000 * m) for m in margins[name][minority])
        assert common == sorted(round(1000 * m) for m in margins[name][~minority])
        assert (at, best) == best_threshold(margins[name], minority)


def test_histograms_have_every_image(data, page):
    _, minority = data
    tops = {}
    for name in ("majority", "minority"):
        path = re.search(rf'<path class="{name}" d="(.*?)"', page)[1]
        heights = [BASE - float(h) for h in re.findall(r"V([\d.]+)H", path)]
        assert len(heights) == BINS
        tops[name] = np.array(heights)
    tallest = max(top.max() for top in tops.values())
    assert tallest == pytest.approx(BASE - TOP)
    ratio = tops["minority"].sum() / tops["majority"].sum()
    assert ratio == pytest.approx(minority.sum() / (~minority).sum(), rel=1e-3)


def test_the_table_compares_both_thresholds(data, page):
    margins, minority = data
    rows = re.findall(r'<tr><th scope="row">(\w+)</th>(.*?)</tr>', page)
    for network, cells in rows:
        own, _, best = re.findall(r"<td>(.*?)</td>", cells)
        assert own == f"{100 * shares(margins[network], minority, 0)[2]:.1f}"
        assert best == f"{100 * best_threshold(margins[network], minority)[1]:.1f}"


def test_the_same_input_gives_the_same_bytes_and_asks_for_nothing(data, page):
    assert threshold_slider(*data).data == page
    assert not re.search(r"https?:|src=|import", page)
