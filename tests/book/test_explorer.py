"""The explorer of chapter 5 and of the report, moved, shows what the package computes."""

import pytest
from moving import findings_with_open_table, readout, without_scripts
from pages import open_page, set_screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from study.chapters.claims import CLAIMS, table_2_by_reading
from study.engine.protocol import METHODS
from study.figures.text import written
from study.stats.intervals import intervals
from study.stores.plan import load_or_run

PAGES = ("05_three_experiments", "replication_report")
FIGURE = "#explorer"
# Places in the menus, steps back on the slider, then the setting that they lead to.
MOVES = {
    "as loaded": ({}, 0, ("batch_average", 1, 20, "accuracy_balanced")),
    "the data set": ({"loss_normalizer": 1}, 0, ("batch_average", 5, 20, "accuracy_balanced")),
    "earlier": ({"batch_order": 1, "metric": 2}, 10, ("batch_average", 3, 10, "accuracy_minority")),
    "rate": ({"learning_rate": 1, "metric": 1}, 19, ("batch_average", 2, 1, "accuracy_overall")),
    "test set": ({"inference": 2, "metric": 1}, 0, ("evaluation_set", 1, 20, "accuracy_overall")),
    "pooled": ({"inference": 1}, 15, ("pooled", 1, 5, "accuracy_balanced")),
}


@pytest.fixture(params=PAGES)
def figure(request, browser, served):
    set_screen(browser, 1280)
    open_page(browser, f"{served}/{request.param}.html")
    return browser.find_element(By.CSS_SELECTOR, FIGURE)


def move(figure, menus, steps):
    for menu, place in menus.items():
        select = figure.find_element(By.CSS_SELECTOR, f"select[id$={menu}]")
        Select(select).select_by_index(place)
    figure.find_element(By.TAG_NAME, "input").send_keys(*[Keys.ARROW_LEFT] * steps)


def computed(inference, reading, epoch, metric):
    """Texts of the nine cells and the verdict, according to the package."""
    if inference == "batch_average":
        rows = table_2_by_reading(load_or_run("family"), epoch)[reading]
    else:
        rows = load_or_run("evaluation", inference=inference, epoch=epoch)
    cells = intervals(rows, ["experiment", "method"], metric)
    texts = dict(zip(zip(cells.experiment, cells.method, strict=True), written(cells), strict=True))
    return [texts[e, m] for e in ("i", "ii", "iii") for m in METHODS], CLAIMS[0].judge(rows).outcome


def shown(figure):
    return [value.text for value in figure.find_elements(By.CSS_SELECTOR, ".value")]


@pytest.mark.parametrize(("menus", "steps", "setting"), MOVES.values(), ids=MOVES)
def test_choices_change_the_numbers_to_what_the_package_computes(
    browser, figure, menus, steps, setting
):
    move(figure, menus, steps)
    cells, outcome = computed(*setting)
    assert shown(figure) == cells
    assert readout(browser, FIGURE).endswith(f": {outcome}.")
    slider = figure.find_element(By.TAG_NAME, "input")
    assert slider.get_attribute("aria-valuetext") == str(setting[2])
    assert figure.find_element(By.CSS_SELECTOR, ".epoch").text == str(setting[2])


def test_marks_stand_where_their_numbers_are(browser, figure):
    move(figure, {"metric": 2}, 0)
    ticks, marks = browser.execute_script(
        "return ['.tick', '.mark'].map(s => [...arguments[0].querySelectorAll(s)].map(e => {"
        "  const box = e.getBoundingClientRect(); return box.x + box.width / 2 }))",
        figure,
    )
    for at, text in zip(marks, shown(figure), strict=True):
        place = ticks[0] + float(text.split()[0]) / 100 * (ticks[-1] - ticks[0])
        assert at == pytest.approx(place, abs=1.5)


def test_what_was_not_run_is_gray_and_says_so(browser, figure):
    move(figure, {"inference": 2, "loss_normalizer": 1}, 0)
    assert set(shown(figure)) == {"not run"}
    assert "not judged" in readout(browser, FIGURE)
    cell = figure.find_element(By.CSS_SELECTOR, ".cell")
    assert "grayscale" in cell.value_of_css_property("filter")
    move(figure, {"loss_normalizer": 0}, 0)
    assert "not run" not in shown(figure)


def test_controls_have_names_and_are_large_enough_to_touch(figure):
    controls = figure.find_elements(By.CSS_SELECTOR, "select, input")
    assert len({control.accessible_name for control in controls}) == len(controls) == 6
    assert min(control.size["height"] for control in controls) >= 44


def test_its_data_are_small(figure):
    assert len(figure.get_attribute("outerHTML")) < 300_000


def test_with_its_table_open_it_passes_axe(browser, figure, axe):
    assert findings_with_open_table(browser, FIGURE, axe) == []


def test_without_scripts_the_first_state_is_complete(browser, served):
    with without_scripts(browser):
        browser.get(f"{served}/{PAGES[0]}.html")
        figure = browser.find_element(By.CSS_SELECTOR, FIGURE)
        assert not figure.find_element(By.TAG_NAME, "select").is_displayed()
        assert shown(figure) == computed(*MOVES["as loaded"][2])[0]
