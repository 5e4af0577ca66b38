"""One mini-batch after another, before any script runs, shows what wbn computes."""

import json
import re

import pytest
import torch

from study.figures.interactive import another_batch
from wbn import weighted_moments


@pytest.fixture(scope="module")
def training_set():
    generator = torch.Generator().manual_seed(0)
    minority = torch.arange(250) % 60 == 7
    x = torch.randn(250, generator=generator) + 3 * minority
    return x, minority, torch.randperm(250, generator=generator).split(100)


@pytest.fixture(scope="module")
def page(training_set):
    x, minority, batches = training_set
    return another_batch(x, minority, 20, batches).data


def computed(x, minority, weight=20):
    x, w = x.double().round(decimals=3), torch.where(minority, float(weight), 1.0).double()
    means = [weighted_moments(x[:, None], by)[0].item() for by in (None, w)]
    return [f"{mean:.2f}".replace("-", "\u2212") for mean in means]


def test_the_first_readout_is_what_the_package_computes(training_set, page):
    x, minority, (batch, *_) = training_set
    readout = re.sub(r"<[^>]+>", "", re.search(r"<output.*?</output>", page, re.S).group())
    bn, wbn = computed(x[batch], minority[batch])
    assert readout == (
        f"Mini-batch 1 of 3 has 100 samples, {minority[batch].sum()} of the minority. BN's mean is "
        f"{bn} and WBN's mean is {wbn}. So far BN's went from {bn} to {bn}, and WBN's from {wbn} "
        f"to {wbn}."
    )


def test_the_table_has_the_first_batches(training_set, page):
    x, minority, batches = training_set
    rows = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', page)
    assert len(rows) == len(batches)
    for batch, (_, cells) in zip(batches, rows, strict=True):
        expected = [str(int(minority[batch].sum())), *computed(x[batch], minority[batch])]
        assert re.findall(r"<td>(.*?)</td>", cells) == expected


def test_the_script_gets_every_signal_of_every_batch(training_set, page):
    x, minority, batches = training_set
    settings = json.loads(re.search(r"getElementById.*?, (\{.*\})\);", page, re.S)[1])
    assert len(settings["batches"]) == len(batches)
    for batch, (common, rare) in zip(batches, settings["batches"], strict=True):
        for mask, thousandths in ((~minority[batch], common), (minority[batch], rare)):
            expected = x[batch][mask].double()
            assert torch.tensor(thousandths).double() / 1000 == pytest.approx(expected, abs=5.1e-4)


def test_the_same_input_gives_the_same_bytes_and_asks_for_nothing(training_set, page):
    x, minority, batches = training_set
    assert another_batch(x, minority, 20, batches).data == page
    assert not re.search(r"https?:|src=|import", page)
