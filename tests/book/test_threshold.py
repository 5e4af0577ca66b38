"""The threshold of chapter 5, moved by keys, buttons and pointer: what the package computes."""

import pytest
from moving import findings_with_open_table, readout, without_scripts
from pages import open_page, set_screen
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from study.chapters.three_experiments.slider import best_threshold
from study.chapters.three_experiments.thresholds import balanced_accuracy, stored_margins

PAGE, FIGURE = "05_three_experiments", "#threshold"
TABLE = stored_margins()
MINORITY = TABLE.pop("minority")


@pytest.fixture
def figure(browser, served):
    set_screen(browser, 1280)
    open_page(browser, f"{served}/{PAGE}.html")
    return browser.find_element(By.CSS_SELECTOR, FIGURE)


def number(value):
    return f"{value:.2f}".replace("-", "\u2212")


def expected(network, threshold):
    margin = TABLE[network]
    rare = (margin[MINORITY] > threshold).mean()
    common = (margin[~MINORITY] <= threshold).mean()
    at, best = best_threshold(margin, MINORITY)
    return (
        f"With the threshold at {number(threshold)}, {100 * rare:.1f} % of the minority and "
        f"{100 * common:.1f} % of the majority are right: the balanced accuracy is "
        f"{100 * (rare + common) / 2:.1f} %. With the network's own threshold, 0, it is "
        f"{100 * balanced_accuracy(margin, MINORITY):.1f} %, and with the best one, {number(at)}, "
        f"it is {100 * best:.1f} %."
    )


@pytest.mark.parametrize("network", TABLE)
def test_every_network_and_the_keys(browser, figure, network):
    Select(figure.find_element(By.TAG_NAME, "select")).select_by_visible_text(network)
    slider = figure.find_element(By.TAG_NAME, "input")
    assert readout(browser, FIGURE) == expected(network, 0.0)
    slider.send_keys(*[Keys.ARROW_LEFT] * 12)
    assert readout(browser, FIGURE) == expected(network, -0.6)
    assert slider.get_attribute("aria-valuetext") == number(-0.6)


@pytest.mark.parametrize("network", TABLE)
def test_the_buttons_lead_to_the_best_value_and_back(browser, figure, network):
    Select(figure.find_element(By.TAG_NAME, "select")).select_by_visible_text(network)
    to_best, to_own = figure.find_elements(By.TAG_NAME, "button")
    to_best.click()
    assert readout(browser, FIGURE) == expected(
        network, best_threshold(TABLE[network], MINORITY)[0]
    )
    to_own.click()
    assert readout(browser, FIGURE) == expected(network, 0.0)


def test_the_line_follows_the_pointer(browser, figure):
    picture = figure.find_element(By.CSS_SELECTOR, "svg")
    ActionChains(browser).move_to_element(picture).click_and_hold().move_by_offset(-90, 0).perform()
    slider = figure.find_element(By.TAG_NAME, "input")
    low, high, at = (float(slider.get_attribute(name)) for name in ("min", "max", "value"))
    box, line = browser.execute_script(
        "return ['svg', 'line.at'].map(s => {"
        "  const box = arguments[0].querySelector(s).getBoundingClientRect();"
        "  return [box.x, box.width] })",
        figure,
    )
    assert at == pytest.approx(low + (0.5 - 90 / box[1]) * (high - low), abs=0.1)
    assert line[0] == pytest.approx(box[0] + (at - low) / (high - low) * box[1], abs=2)
    ActionChains(browser).release().perform()


def test_controls_have_names_and_are_large_enough_to_touch(figure):
    controls = figure.find_elements(By.CSS_SELECTOR, "select, input, button")
    assert [c.accessible_name for c in controls][:2] == ["Network", "Threshold"]
    assert min(control.size["height"] for control in controls) >= 44


def test_with_its_table_open_it_passes_axe(browser, figure, axe):
    assert findings_with_open_table(browser, FIGURE, axe) == []


def test_without_scripts_the_first_state_is_complete(browser, served):
    with without_scripts(browser):
        browser.get(f"{served}/{PAGE}.html")
        assert not browser.find_element(By.CSS_SELECTOR, f"{FIGURE} input").is_displayed()
        assert readout(browser, FIGURE) == expected("Weighted + WBN", 0.0)
