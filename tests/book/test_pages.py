"""The rendered book in a real browser."""

import json
import re

import pytest
from pages import chapters
from selenium.webdriver.support.ui import WebDriverWait

PAGES = [path.stem for path in chapters()]
WIDTHS = {"phone": 390, "tablet": 768, "laptop": 1280}


def open_page(browser, address):
    """Open a page, wait until MathJax is done, and return the addresses it asked for."""
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(address)
    WebDriverWait(browser, 30).until(
        lambda b: b.execute_script(
            "return document.readyState === 'complete' && (!document.querySelector('.math') || "
            "(window.MathJax && MathJax.startup && MathJax.startup.promise !== undefined))"
        )
    )
    browser.execute_async_script(
        "const done = arguments[0];"
        "(window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => done())"
    )
    events = (json.loads(e["message"])["message"] for e in browser.get_log("performance"))
    return [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]


@pytest.fixture(params=["http", "file"])
def root(request, html, served):
    """The book over HTTP and opened from disk."""
    return served if request.param == "http" else html.as_uri()


@pytest.mark.parametrize("page", PAGES)
def test_page_loads_without_errors_or_foreign_requests(browser, root, page):
    requests = open_page(browser, f"{root}/{page}.html")
    assert [r for r in requests if not r.startswith((root, "data:", "blob:", "chrome:"))] == []
    assert [e["message"] for e in browser.get_log("browser") if e["level"] == "SEVERE"] == []


@pytest.mark.parametrize("page", PAGES)
def test_equations_are_rendered(browser, served, html, page):
    open_page(browser, f"{served}/{page}.html")
    containers = browser.execute_script("return document.querySelectorAll('mjx-container').length")
    assert containers == len(
        re.findall(r'class="math notranslate', (html / f"{page}.html").read_text())
    )
    left = browser.execute_script("return document.querySelector('main').innerText")
    assert "\\(" not in left
    assert "\\[" not in left


@pytest.mark.parametrize("page", PAGES)
def test_images_are_loaded_and_described(browser, served, page):
    open_page(browser, f"{served}/{page}.html")
    images = browser.execute_script(
        "return [...document.querySelectorAll('main img')]"
        ".map(i => [i.alt, i.complete && i.naturalWidth > 0, i.loading])"
    )
    for alt, loaded, loading in images:
        assert loaded or loading == "lazy"
        assert len(alt) > 20
        assert not re.search(r"\.(png|svg|jpe?g)$", alt)


@pytest.mark.parametrize("width", WIDTHS.values(), ids=WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_nothing_overflows_sideways(browser, served, page, width):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        open_page(browser, f"{served}/{page}.html")
        excess = browser.execute_script(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert excess <= 0
