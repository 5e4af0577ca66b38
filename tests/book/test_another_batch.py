"""The button of chapter 3 draws mini-batches whose means are what the package computes."""

import pytest
import torch
from moving import findings_with_open_table, readout, without_scripts
from pages import open_page, set_screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import wbn
from study.engine import load_split

PAGE, FIGURE = "03_size_mismatch", "#another-batch"
SPLIT = load_split("i", seed=0)
RARE = SPLIT.train_labels == SPLIT.minority
RATIO = (SPLIT.counts.max() / SPLIT.counts.min()).item()
BATCHES = torch.randperm(len(RARE), generator=torch.Generator().manual_seed(0)).split(100)


@pytest.fixture
def button(browser, served):
    set_screen(browser, 1280)
    open_page(browser, f"{served}/{PAGE}.html")
    return browser.find_element(By.CSS_SELECTOR, f"{FIGURE} button")


def drawn(browser):
    """BN's and WBN's mean of the points on the page, and how many of them are of the minority."""
    points = browser.execute_script(
        "return [...document.querySelectorAll(arguments[0] + ' .point')]"
        ".map(p => [Number(p.dataset.x), p.matches('.minority')])",
        FIGURE,
    )
    x, rare = (torch.tensor(column, dtype=torch.float64) for column in zip(*points, strict=True))
    weights = (None, 1 + (RATIO - 1) * rare)
    means = [wbn.weighted_moments(x[:, None], w)[0].item() for w in weights]
    return means, int(rare.sum()), len(x)


def test_each_batch_is_one_of_the_chapter_with_its_means(browser, button):
    seen = []
    for number, batch in enumerate(BATCHES[:12], 1):
        means, held, size = drawn(browser)
        seen.append(means)
        assert (held, size) == (int(RARE[batch].sum()), len(batch))
        ends = [f(column) for column in zip(*seen, strict=True) for f in (min, max)]
        bn, wbn_, *ends = (f"{mean:.2f}".replace("-", "\u2212") for mean in (*means, *ends))
        assert readout(browser, FIGURE) == (
            f"Mini-batch {number} of 60 has {size} samples, {held} of the minority. BN's mean is "
            f"{bn} and WBN's mean is {wbn_}. So far BN's went from {ends[0]} to {ends[1]}, and "
            f"WBN's from {ends[2]} to {ends[3]}."
        )
        button.send_keys(Keys.ENTER)
    jumps = [max(column) - min(column) for column in zip(*seen, strict=True)]
    assert jumps[1] > 3 * jumps[0]


def test_after_the_last_batch_comes_the_first(browser, button):
    first = readout(browser, FIGURE)
    for _ in BATCHES:
        button.click()
    assert readout(browser, FIGURE) == first
    ticks = browser.find_elements(By.CSS_SELECTOR, f"{FIGURE} .trace line")
    assert len(ticks) == 2


def test_ticks_stay_for_every_batch(browser, button):
    for _ in range(4):
        button.click()
    assert len(browser.find_elements(By.CSS_SELECTOR, f"{FIGURE} .trace.wbn line")) == 5


def test_it_is_large_enough_to_touch_and_passes_axe(browser, button, axe):
    assert button.size["height"] >= 44
    assert findings_with_open_table(browser, FIGURE, axe) == []


def test_without_scripts_the_first_state_is_complete(browser, served):
    with without_scripts(browser):
        browser.get(f"{served}/{PAGE}.html")
        assert not browser.find_element(By.CSS_SELECTOR, f"{FIGURE} button").is_displayed()
        assert readout(browser, FIGURE).startswith("Mini-batch 1 of 60 has 100 samples")
