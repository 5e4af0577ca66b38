"""The slider over the minority weight, moved by keys, shows what the package computes."""

import math

import pytest
import torch
from moving import findings_with_open_table, readout, without_scripts
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from test_pages import open_page

from study.figures.text import MINUS
from wbn import effective_sample_size, weighted_moments

PAGE, FIGURE = "03_size_mismatch", "#minority-weight"
MOVES = {
    "as loaded": ([], 132),
    "right": ([Keys.ARROW_RIGHT], 133),
    "left twice": ([Keys.ARROW_LEFT, Keys.ARROW_LEFT], 130),
    "home": ([Keys.HOME], 1),
    "below the least": ([Keys.HOME, Keys.ARROW_LEFT], 1),
    "end": ([Keys.END], 200),
}
POINTS = """return [...document.querySelectorAll(arguments[0] + " .point")].map(p => {
    const box = p.getBoundingClientRect();
    return [Number(p.dataset.x), p.matches(".minority"), box.x + box.width / 2, box.width];
})"""
LINE = """const box = document.querySelector(arguments[0]).getBoundingClientRect();
return box.x + box.width / 2"""


@pytest.fixture
def slider(browser, served):
    open_page(browser, f"{served}/{PAGE}.html")
    return browser.find_element(By.CSS_SELECTOR, f"{FIGURE} input")


def drawn(browser):
    """The points: signals, which of them are of the minority, places and widths."""
    points = browser.execute_script(POINTS, FIGURE)
    return (torch.tensor(column, dtype=torch.float64) for column in zip(*points, strict=True))


def computed(x, minority, weight):
    """Mean and effective sample size according to the package."""
    w = 1 + (weight - 1) * minority
    return weighted_moments(x[:, None], w)[0].item(), effective_sample_size(w).item()


def assert_readout(browser, weight):
    x, minority, _, _ = drawn(browser)
    mean, size = computed(x, minority, weight)
    text = (
        f"With a weight of {weight}, BN's mean is {x.mean():.2f} and WBN's mean is {mean:.2f}; "
        f"the effective sample size is {size:.2f} of {len(x)}."
    )
    assert readout(browser, FIGURE) == text.replace("-", MINUS)


@pytest.mark.parametrize(("keys", "weight"), MOVES.values(), ids=MOVES)
def test_keys_change_the_readout_to_what_the_package_computes(browser, slider, keys, weight):
    slider.send_keys(*keys)
    assert_readout(browser, weight)
    assert slider.get_attribute("aria-valuetext") == f"{weight} times a majority sample"


@pytest.mark.parametrize(("key", "weight"), [(Keys.HOME, 1), (Keys.END, 200)], ids=["1", "200"])
def test_the_picture_follows(browser, slider, key, weight):
    slider.send_keys(key)
    x, minority, place, width = drawn(browser)
    mean, _ = computed(x, minority, weight)
    pixels = (place[x.argmax()] - place[x.argmin()]) / (x.max() - x.min())
    expected = (place[x.argmin()] + pixels * (mean - x.min())).item()
    assert browser.execute_script(LINE, f"{FIGURE} line.wbn") == pytest.approx(expected, abs=0.5)
    disc, diamond = math.pi / 4 * width[minority == 0] ** 2, width[minority == 1] ** 2 / 2
    assert diamond.mean() / disc.mean() == pytest.approx(weight, rel=0.01)


def test_it_has_a_label_and_is_large_enough_to_touch(slider):
    assert slider.accessible_name.startswith("Weight of a minority sample")
    assert slider.size["height"] >= 44


def test_moved_and_with_its_table_open_it_passes_axe(browser, slider, axe):
    slider.send_keys(Keys.END)
    assert findings_with_open_table(browser, FIGURE, axe) == []


def test_without_scripts_the_first_state_is_complete(browser, served):
    with without_scripts(browser):
        browser.get(f"{served}/{PAGE}.html")
        assert not browser.find_element(By.CSS_SELECTOR, f"{FIGURE} input").is_displayed()
        assert_readout(browser, 132)
