"""The introduction: the answer on the first screen, no code before it, honest reading times."""

import json
import re

import pytest
from pages import BOOK, open_page
from selenium.webdriver.common.by import By

WORDS_A_MINUTE = 200
SCREENS = {"laptop": (1280, 800), "phone": (390, 844)}
INTRO = json.loads((BOOK / "intro.ipynb").read_text(encoding="utf-8"))["cells"]


def set_size(browser, width, height, theme="light"):
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    preference = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preference})


@pytest.mark.parametrize(("width", "height"), SCREENS.values(), ids=SCREENS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_answer_and_picture_are_on_the_first_screen(browser, served, width, height, theme):
    set_size(browser, width, height, theme)
    open_page(browser, f"{served}/intro.html")
    lines = browser.find_elements(By.CSS_SELECTOR, ".answer > p")
    starts = [line.text.partition(".")[0] for line in lines if line.text]
    assert starts == ["The claim", "What we found", "Why", "What to use"]
    pictures = browser.find_elements(By.CSS_SELECTOR, ".answer img")
    (picture,) = [p for p in pictures if p.is_displayed()]
    assert f"hero-{theme}" in picture.get_attribute("src")
    for element in (picture, *lines):
        box = element.rect
        assert box["y"] >= 0
        assert box["y"] + box["height"] <= height


def test_no_code_stands_before_the_answer():
    first = INTRO[0]
    assert first["cell_type"] == "markdown"
    assert "{div} answer" in "".join(first["source"])


def minutes(page):
    cells = json.loads((BOOK / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return len(re.findall(r"[A-Za-z]{2,}", text)) / WORDS_A_MINUTE


def test_reading_times_are_those_of_the_pages():
    text = "\n".join("".join(c["source"]) for c in INTRO if c["cell_type"] == "markdown")
    stated = re.findall(r"\[[^]]*\]\((\w+)\)[^[(]*\((\d+) min\)", text)
    assert len(stated) >= 10
    for page, stated_minutes in stated:
        assert int(stated_minutes) == pytest.approx(minutes(page), abs=2, rel=0.3), page
