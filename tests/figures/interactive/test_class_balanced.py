"""The sliders over beta and a class size before any script runs."""

import json
import math
import re

import pytest
import torch

import wbn
from study.figures.interactive import class_balanced_sliders
from study.figures.interactive.class_balanced import ENDS, QUANTITIES

BATCH = torch.tensor([0] * 99 + [1])


def page(minority=45, power=3.0, name="class-balanced"):
    return class_balanced_sliders(5923, minority, power, batch_size=100, name=name).data


def computed(minority, beta):
    """Weights, effective sizes, both totals and Kish's size, according to the package."""
    counts = [5923, minority]
    raw = wbn.class_balanced(counts, beta)
    weight = wbn.rescale(raw, counts, "mean_one")
    sizes = wbn.effective_class_sizes(weight, counts)
    total, worth = weight[BATCH].sum(), wbn.effective_sample_size(weight[BATCH])
    return [v.item() for v in (*weight, *sizes, total, raw[BATCH].sum(), worth)]


def readout(text):
    return re.sub(r"<[^>]+>", "", re.search(r"<output.*?</output>", text, re.S).group())


@pytest.mark.parametrize(
    ("minority", "power", "beta", "verdict"),
    [
        (45, 3, "0.999000", "refuses"),
        (45, 0, "0.000000", "accepts"),
        (1, 6, "0.999999", "refuses"),
        (5923, 1.7, "0.980047", "refuses"),
        (5923, 1.6, "0.974881", "accepts"),
    ],
)
def test_the_first_readout_is_what_the_package_computes(minority, power, beta, verdict):
    a, b, size_a, size_b, total, raw, worth = computed(minority, 1 - 10**-power)
    assert readout(page(minority, power)) == (
        f"β = {beta} and {minority} minority samples: a majority sample weighs {a:.2f} and a "
        f"minority sample {b:.2f}; the effective class sizes are {size_a:.1f} and {size_b:.1f}. "
        f"A batch of 99 and 1 has the total weight {total:.2f}; its effective sample size is "
        f"{worth:.2f}. Its raw weights add up to {raw:.3f}, which the correction "
        f'"frequency" {verdict}.'
    )


@pytest.mark.parametrize(("power", "refused"), [(1.6, False), (1.7, True), (3, True)])
def test_what_it_says_of_the_raw_weights_is_what_the_layer_does(power, refused):
    raw = wbn.class_balanced([5923, 5923], 1 - 10**-power)[BATCH]
    assert ("refuses" in readout(page(5923, power))) == refused
    try:
        wbn.weighted_moments(torch.randn(100, 1).double(), raw, "frequency")
    except ValueError:
        assert refused
    else:
        assert not refused


def test_the_table_is_what_the_package_computes():
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', page())
    betas = ["0", "0.9", "0.99", "0.999", "0.9999", "0.99999", "0.999999"]
    assert [beta for beta, _ in rows] == betas
    digits = [2, 2, 1, 1, 2, 3, 2]
    for beta, cells in rows:
        numbers = zip(computed(45, float(beta)), digits, strict=True)
        assert re.findall(r"<td>(.*?)</td>", cells) == [f"{x:.{d}f}" for x, d in numbers]


def test_marks_stand_between_the_powers_of_ten():
    text = page()
    places = re.findall(r'<svg class="mark (.*?)" x="(.*?)%" y="(\d+)"', text)
    assert [name for name, _, _ in places] == list(QUANTITIES)
    for (_, x, y), value in zip(places, computed(45, 0.999), strict=True):
        ticks = re.findall(rf'<text x="([\d.]+)%" y="{int(y) + 30}">(10*|0\.0*1)</text>', text)
        (x0, t0), *_, (x1, t1) = [(float(at), math.log10(float(tick))) for at, tick in ticks]
        place = x0 + (math.log10(value) - t0) * (x1 - x0) / (t1 - t0)
        assert float(x) == pytest.approx(place, abs=0.02)


@pytest.mark.parametrize("minority", [1, 5923])
@pytest.mark.parametrize("power", [0, 6])
def test_no_mark_leaves_its_axis(minority, power):
    numbers = zip(QUANTITIES.values(), computed(minority, 1 - 10**-power), strict=True)
    for quantity, value in numbers:
        low, high = ENDS[quantity.row]
        assert low < math.log10(value) < high


def test_the_slider_has_the_class_size_it_starts_at():
    place = int(re.search(r'id="class-balanced-minority".*? value="(\d+)"', page(39))[1])
    settings = re.search(r'getElementById\("class-balanced"\), (.*)\);', page(39))[1]
    counts = json.loads(settings)["counts"]
    assert counts[place] == 39
    assert counts[-1] == 5923


def test_the_same_input_gives_the_same_bytes():
    assert page() == page()


def test_figures_with_different_names_share_no_id():
    ids = [re.findall(r'\bid="(.*?)"', page(name=name)) for name in ("first", "second")]
    assert len(set(ids[0] + ids[1])) == len(ids[0] + ids[1]) == 6


def test_it_is_small_and_asks_for_nothing():
    assert len(page()) < 12_000
    assert not re.search(r"https?:|src=|import", page())
