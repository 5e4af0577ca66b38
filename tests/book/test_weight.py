"""What a page weighs, uncompressed, with everything that it loads."""

import doctest
import sys
from urllib.parse import urlparse

import pytest
from pages import BOOK, chapters, count_equations, markdown, open_page, set_screen

MEGABYTE = 1_000_000
LIMITS = {True: 2.7, False: 1.2}  # MB with and without formulas; chapter 5 has 2.6
HIDDEN_ICONS = """
    const inside = i => i.closest('dialog, .dropdown-menu, .sd-d-none, [data-mode]');
    return [...document.querySelectorAll('[class*="fa-"]')].filter(i => {
        const style = getComputedStyle(i, '::before');
        const drawn = /Font Awesome/.test(style.fontFamily) && style.content.length === 3;
        return !drawn || (!inside(i) && i.checkVisibility() && i.offsetWidth === 0);
    }).map(i => i.outerHTML);
"""


@pytest.fixture(scope="module", params=chapters(), ids=lambda path: path.stem)
def page(request, browser, served):
    """Pages in turn, with what each of them requested."""
    set_screen(browser, 1280)
    address = f"{served}/{request.param.stem}.html"
    open_page(browser, "about:blank")
    browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
    return request.param, open_page(browser, address)


def test_page_is_light(page, html, served):
    source, visit = page
    files = {html / urlparse(r).path[1:] for r in visit.requests if r.startswith(served)}
    weight = sum(file.stat().st_size for file in files) / MEGABYTE
    formulas = any(count_equations(text) for text in markdown(source))
    assert weight < LIMITS[formulas], {f.name: f.stat().st_size for f in files}


def test_icons_are_drawn(browser, page):
    browser.execute_async_script("document.fonts.ready.then(arguments[0])")
    assert browser.execute_script(HIDDEN_ICONS) == []
    assert browser.execute_script("return document.fonts.check('900 1em \"Font Awesome 6 Free\"')")


def test_the_script_of_icons_is_not_in_the_book(html):
    assert not (html / "_static/scripts/fontawesome.js").exists()


def test_examples_run():
    sys.path.insert(0, str(BOOK / "_ext"))
    import weight

    sys.path.remove(str(BOOK / "_ext"))
    assert doctest.testmod(weight) == (0, 1)
