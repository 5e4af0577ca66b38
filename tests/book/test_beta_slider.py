"""The sliders over beta and the minority class, moved by keys, show what the package computes."""

import math

import pytest
import torch
from moving import findings_with_open_table, readout, without_scripts
from pages import open_page, set_screen
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

import wbn

PAGE, FIGURE = "09_class_balanced", "#class-balanced"
BATCH = torch.tensor([0] * 99 + [1])
LEFT, RIGHT, HOME, END = Keys.ARROW_LEFT, Keys.ARROW_RIGHT, Keys.HOME, Keys.END
# Keys for the two sliders, then the power of ten of 1 - beta and the class size that they lead to.
MOVES = {
    "as loaded": ([], [], 3, 45),
    "beta up": ([RIGHT], [], 3.1, 45),
    "beta down": ([LEFT] * 10, [], 2, 45),
    "no weights": ([HOME], [], 0, 45),
    "beyond the end": ([END, RIGHT], [], 6, 45),
    "a larger minority": ([], [RIGHT, RIGHT], 3, 100),
    "one sample": ([], [HOME, LEFT], 3, 1),
    "both": ([END], [END], 6, 5923),
    "least weight": ([END], [HOME], 6, 1),
}
CENTERS = """return [...document.querySelectorAll(arguments[0] + " .mark")].map(mark => {
    const box = mark.firstElementChild.getBoundingClientRect();
    return box.x + box.width / 2;
})"""


@pytest.fixture
def sliders(browser, served):
    set_screen(browser, 1280)
    open_page(browser, f"{served}/{PAGE}.html")
    return browser.find_elements(By.CSS_SELECTOR, f"{FIGURE} input")


def computed(power, minority):
    """Weights, effective sizes, both totals and Kish's size, according to the package."""
    counts = [5923, minority]
    raw = wbn.class_balanced(counts, 1 - 10**-power)
    weight = wbn.rescale(raw, counts, "mean_one")
    sizes = wbn.effective_class_sizes(weight, counts)
    total, worth = weight[BATCH].sum(), wbn.effective_sample_size(weight[BATCH])
    return [v.item() for v in (*weight, *sizes, total, raw[BATCH].sum(), worth)]


def assert_readout(browser, power, minority):
    a, b, size_a, size_b, total, raw, worth = computed(power, minority)
    assert readout(browser, FIGURE) == (
        f"β = {1 - 10**-power:.6f} and {minority} minority samples: a majority sample weighs "
        f"{a:.2f} and a minority sample {b:.2f}; the effective class sizes are {size_a:.1f} and "
        f"{size_b:.1f}. A batch of 99 and 1 has the total weight {total:.2f}; its effective "
        f"sample size is {worth:.2f}. Its raw weights add up to {raw:.3f}, which the correction "
        f'"frequency" {"refuses" if raw < 2 else "accepts"}.'
    )


@pytest.mark.parametrize(("on_beta", "on_minority", "power", "minority"), MOVES.values(), ids=MOVES)
def test_keys_change_the_readout_to_what_the_package_computes(
    browser, sliders, on_beta, on_minority, power, minority
):
    for slider, keys in zip(sliders, (on_beta, on_minority), strict=True):
        slider.send_keys(*keys)
    assert_readout(browser, power, minority)
    spoken = [slider.get_attribute("aria-valuetext") for slider in sliders]
    assert spoken == [f"beta {1 - 10**-power:.6f}", f"{minority} minority samples"]


def test_every_place_of_the_beta_slider_shows_what_the_package_computes(browser, sliders):
    sliders[0].send_keys(HOME)
    for step in range(61):
        assert_readout(browser, step / 10, 45)
        sliders[0].send_keys(RIGHT)


def test_the_marks_follow(browser, sliders):
    before, old = browser.execute_script(CENTERS, FIGURE), computed(3, 45)
    sliders[0].send_keys(END)
    sliders[1].send_keys(HOME)
    after, new = browser.execute_script(CENTERS, FIGURE), computed(6, 1)
    width = browser.find_element(By.CSS_SELECTOR, f"{FIGURE} > svg").rect["width"]
    decades = [4.3, 4.3, 4.3, 4.3, 6.3, 6.3, 6.3]
    for x0, x1, v0, v1, d in zip(before, after, old, new, decades, strict=True):
        assert x1 - x0 == pytest.approx(math.log10(v1 / v0) / d * width, abs=0.5)


@pytest.mark.parametrize("width", [390, 1280])
def test_every_mark_and_every_text_stays_in_the_picture(browser, sliders, width):
    set_screen(browser, width)
    for slider in sliders:
        slider.send_keys(END)
    outside = browser.execute_script(
        "const picture = document.querySelector(arguments[0] + ' > svg');"
        "const frame = picture.getBoundingClientRect();"
        "return [...picture.querySelectorAll('.mark > *, text')].filter(e => {"
        "  const box = e.getBoundingClientRect();"
        "  return box.left < frame.left - 1 || box.right > frame.right + 1"
        "    || box.bottom > frame.bottom + 1;"
        "}).map(e => e.outerHTML)",
        FIGURE,
    )
    assert outside == []


def test_they_have_labels_and_are_large_enough_to_touch(sliders):
    names = [slider.accessible_name for slider in sliders]
    assert names[0].startswith("β, from 0 to 0.999999")
    assert names[1].startswith("Size of the minority class")
    assert all(slider.size["height"] >= 44 for slider in sliders)


def test_a_finger_moves_them(browser, sliders):
    box = sliders[0].rect
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", sliders[0])
    top = browser.execute_script("return arguments[0].getBoundingClientRect().top", sliders[0])
    finger = {"x": box["x"] + box["width"] - 2, "y": top + box["height"] / 2}
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    try:
        for kind, points in (("touchStart", [finger]), ("touchEnd", [])):
            event = {"type": kind, "touchPoints": points}
            browser.execute_cdp_cmd("Input.dispatchTouchEvent", event)
    finally:
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    assert_readout(browser, 6, 45)


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_moved_and_with_their_table_open_they_pass_axe(browser, sliders, axe, width, theme):
    set_screen(browser, width, theme)
    sliders[0].send_keys(END)
    assert findings_with_open_table(browser, FIGURE, axe) == []


def test_without_scripts_the_first_state_is_complete(browser, served):
    with without_scripts(browser):
        browser.get(f"{served}/{PAGE}.html")
        for slider in browser.find_elements(By.CSS_SELECTOR, f"{FIGURE} input"):
            assert not slider.is_displayed()
        assert_readout(browser, 3, 45)
