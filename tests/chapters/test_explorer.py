"""The explorer, before any script runs: the reference reading, and data for every setting."""

import json
import re

import pytest

from study.chapters.report import explorer
from study.chapters.report import settings as explore
from study.chapters.report.settings import explored, printed
from study.engine.protocol import METHODS
from study.figures.text import with_interval


@pytest.fixture(scope="module")
def found():
    return explored(range(19, 21))


@pytest.fixture(scope="module")
def page(found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "explored", lambda: found)
        return explorer.results_explorer().data


@pytest.fixture(scope="module")
def settings(page):
    return json.loads(re.search(r"getElementById.*?, (\{.*\})\);", page, re.S)[1])


def test_it_starts_with_the_reference_reading(found, page):
    accuracies, verdicts = found
    first = accuracies[
        (accuracies.inference == "batch_average") & (accuracies.reading == 1)
        & (accuracies.epoch == 20) & (accuracies.metric == "accuracy_balanced")
    ].set_index(["experiment", "method"])  # fmt: skip
    expected = [
        with_interval(*first.loc[(e, m), ["mean", "low", "high"]])
        for e in ("i", "ii", "iii")
        for m in METHODS
    ]
    assert re.findall(r'<span class="value">(.*?)</span>', page) == expected
    assert f'<b class="verdict">{verdicts["batch_average", 1, 20]}</b>' in page


def test_the_script_gets_what_is_printed_of_every_setting(found, settings):
    accuracies, verdicts = found
    assert len(settings["cells"]) == len(verdicts) * len(explore.METRICS)
    order = [(e, m) for e in ("i", "ii", "iii") for m in METHODS]
    keys = ["inference", "reading", "epoch", "metric"]
    for key, rows in accuracies.groupby(keys):
        rows = rows.set_index(["experiment", "method"])
        name = "|".join(map(str, key)).replace("accuracy_", "")
        for cell, tenths in zip(order, settings["cells"][name], strict=True):
            mean, low, high = (f"{t / 10:.1f}" for t in tenths)
            written = with_interval(*rows.loc[cell, ["mean", "low", "high"]])
            assert f"{mean} [{low}, {high}]" == written
    for key, outcome in verdicts.items():
        assert settings["verdicts"]["|".join(map(str, key))] == outcome


def test_crosses_are_the_paper_s(settings):
    for metric, numbers in settings["paper"].items():
        assert numbers == printed()[metric].tolist()


def test_the_table_has_a_row_for_every_setting_and_experiment(found, page):
    rows = re.findall(r'<tr><th scope="row">.*?, .*?</th>(.*?)</tr>', page)
    assert len(rows) == 3 * sum(epoch == 20 for _, _, epoch in found[1].index)


def test_it_asks_for_nothing(page):
    assert not re.search(r"https?:|src=|import", page)
