"""Every page of the book in a real browser, opened once over HTTP."""

import re
from typing import NamedTuple

import pytest
from accessibility import new_findings
from pages import (
    Visit,
    chapters,
    count_equations,
    count_search_boxes,
    markdown,
    open_page,
    set_screen,
)

SOURCES = {path.stem: path for path in chapters()}
WIDTHS = {"phone": 390, "tablet": 768, "laptop": 1280}

TOO_WIDE = """
    const scrolls = e => e.id !== 'main-content' &&
        (/auto|scroll/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    return [...document.querySelectorAll('article :not(mjx-assistive-mml, mjx-assistive-mml *)')]
        .filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !scrolls(e.parentElement))
        .map(e => e.outerHTML.slice(0, 100));
"""


class Page(NamedTuple):
    """A page that the browser shows."""

    name: str
    root: str
    visit: Visit


@pytest.fixture(scope="module", params=SOURCES)
def page(request, browser, served):
    """Pages in turn; a test may resize and restyle the one it is given, not leave it."""
    set_screen(browser, WIDTHS["laptop"])
    return Page(request.param, served, open_page(browser, f"{served}/{request.param}.html"))


def test_loads_without_errors_or_foreign_requests(page):
    assert page.visit.foreign(page.root) == []
    assert page.visit.errors == []


def test_every_equation_is_rendered(browser, page):
    elements, containers, broken = browser.execute_script(
        "return ['.math', 'mjx-container', 'mjx-merror']"
        ".map(s => document.querySelectorAll(`article ${s}`).length)"
    )
    assert elements == sum(map(count_equations, markdown(SOURCES[page.name])))
    assert containers == elements
    assert broken == 0


def test_no_tex_is_left(browser, page):
    prose = browser.execute_script(
        "const copy = document.querySelector('article').cloneNode(true);"
        "copy.querySelectorAll('pre, code, mjx-container, script').forEach(e => e.remove());"
        "return copy.textContent"
    )
    assert re.findall(r"\\[(\[]|\$.+?\$|\\[A-Za-z]+", prose) == []


def test_images_are_loaded_and_described(browser, page):
    images = browser.execute_async_script(
        "const done = arguments[0];"
        "Promise.all([...document.images].map(async image => {"
        "  image.loading = 'eager';"
        "  await image.decode().catch(() => {});"
        "  return [image.alt, image.naturalWidth];"
        "})).then(done)"
    )
    for alt, width in images:
        assert width > 0, alt
        assert len(alt) > 20
        assert not re.search(r"\.(png|svg|jpe?g)$", alt)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_nothing_overflows_sideways(browser, page, width):
    set_screen(browser, width)
    excess = browser.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert browser.execute_script(TOO_WIDE) == []
    assert excess <= 0


def test_no_equation_is_cut_on_a_phone(browser, page):
    if page.name == "api":
        pytest.skip("equations of docstrings scroll")
    set_screen(browser, WIDTHS["phone"])
    cut = browser.execute_script(
        "return [...document.querySelectorAll('article div.math, article div.math mjx-container')]"
        ".filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.closest('div.math').id)"
    )
    assert cut == []


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
def test_there_is_one_search_box(browser, page, width):
    set_screen(browser, width)
    assert count_search_boxes(browser) == 1


@pytest.mark.parametrize(
    ("theme", "width"), [("light", WIDTHS["laptop"]), ("dark", WIDTHS["phone"])]
)
def test_axe_finds_nothing_new(browser, page, axe, theme, width):
    set_screen(browser, width, theme)
    assert new_findings(browser, axe) == []
