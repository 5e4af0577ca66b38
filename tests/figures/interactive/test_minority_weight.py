"""The slider over the minority weight, before any script runs, shows what wbn computes."""

import re

import pytest
import torch

from study.figures.interactive import minority_weight_slider
from study.figures.interactive.batch import RADIUS
from wbn import effective_sample_size, weighted_moments


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(0)
    minority = torch.arange(100) % 40 == 7
    return torch.randn(100, generator=generator) + 3 * minority, minority


def computed(x, minority, weight):
    """BN's mean, WBN's mean and the effective sample size."""
    x, w = x.double().round(decimals=3), torch.where(minority, float(weight), 1.0).double()
    wbn = weighted_moments(x[:, None], w)[0].item()
    return x.mean().item(), wbn, effective_sample_size(w).item()


def printed(value):
    return f"{value:.2f}".replace("-", "\u2212")


def test_the_same_input_gives_the_same_bytes(batch):
    first, second = (minority_weight_slider(*batch, weight=20).data for _ in range(2))
    assert first == second


def test_last_bits_of_the_input_do_not_show(batch):
    x, minority = batch
    x = x.double().round(decimals=3)
    moved = minority_weight_slider(x + 1e-12, minority, weight=20).data
    assert moved == minority_weight_slider(x, minority, weight=20).data


@pytest.mark.parametrize("weight", [1, 20, 200])
def test_the_first_readout_is_what_the_package_computes(batch, weight):
    page = minority_weight_slider(*batch, weight).data
    readout = re.sub(r"<[^>]+>", "", re.search(r"<output.*?</output>", page, re.S).group())
    bn, wbn, size = map(printed, computed(*batch, weight))
    assert readout == (
        f"With a weight of {weight}, BN's mean is {bn} and WBN's mean is {wbn}; "
        f"the effective sample size is {size} of 100."
    )


def test_negative_numbers_have_minus_signs(batch):
    x, minority = batch
    page = minority_weight_slider(x - 4, minority, weight=20).data
    shown = re.sub(r"<(style|script)>.*?</\1>|<[^>]+>", " ", page, flags=re.S)
    assert re.search(r"\u2212\d", shown)
    assert not re.search(r"-\d", shown)


def test_numbers_of_the_axis_are_drawn_above_the_lines(batch):
    page = minority_weight_slider(*batch, weight=20).data
    assert page.index('<text class="tick"') > page.index('<line class="wbn"')


def test_the_table_is_what_the_package_computes(batch):
    page = minority_weight_slider(*batch, weight=20).data
    rows = re.findall(r'<tr><th scope="row">(\d+)</th>(.*?)</tr>', page)
    assert [int(weight) for weight, _ in rows] == [1, 10, 20, 50, 100, 200]
    for weight, cells in rows:
        expected = [printed(value) for value in computed(*batch, int(weight))]
        assert re.findall(r"<td>(.*?)</td>", cells) == expected


def test_lines_stand_at_the_means(batch):
    page = minority_weight_slider(*batch, weight=20).data
    points = re.findall(r'class="point majority" data-x="(.*?)" cx="(.*?)%"', page)
    (x0, at0), *_, (x1, at1) = sorted((float(x), float(at)) for x, at in points)
    lines = dict(re.findall(r'<line class="(w?bn)" x1="(.*?)%"', page))
    for name, mean in zip(("bn", "wbn"), computed(*batch, 20), strict=False):
        place = at0 + (mean - x0) * (at1 - at0) / (x1 - x0)
        assert float(lines[name]) == pytest.approx(place, abs=0.02)


def test_area_is_weight(batch):
    page = minority_weight_slider(*batch, weight=20).data
    assert len(re.findall('class="point majority"', page)) == (~batch[1]).sum()
    scales = re.findall(r'class="point minority".*?scale\((.*?)\)', page)
    assert len(scales) == batch[1].sum()
    corner = float(re.search(r'class="point minority".*?d="M0-(.*?)L', page)[1])
    diamond, circle = 2 * (corner * float(scales[0])) ** 2, torch.pi * RADIUS**2
    assert diamond / circle == pytest.approx(20, rel=1e-3)


def test_figures_with_different_names_share_no_id(batch):
    ids = [
        re.findall(r'\bid="(.*?)"', minority_weight_slider(*batch, weight=20, name=name).data)
        for name in ("first", "second")
    ]
    assert len(set(ids[0] + ids[1])) == len(ids[0] + ids[1]) == 4


def test_it_is_small_and_asks_for_nothing(batch):
    page = minority_weight_slider(*batch, weight=20).data
    assert len(page) < 20_000
    assert not re.search(r"https?:|src=|import", page)
