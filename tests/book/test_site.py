"""The book as a site: from disk, searched, on a phone, and at an address that does not exist."""

import pytest
from accessibility import new_findings
from pages import chapters, count_search_boxes, open_page, set_screen
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

PAGES = [path.stem for path in chapters()]
TERMS = {"checksums": "04_data", "Kish": "03_size_mismatch"}


@pytest.fixture(params=["http", "file"])
def root(request, html, served):
    """The book over HTTP and opened from disk."""
    return served if request.param == "http" else html.as_uri()


@pytest.mark.parametrize("page", PAGES)
def test_page_opens_from_disk(browser, html, page):
    visit = open_page(browser, f"{html.as_uri()}/{page}.html")
    assert visit.foreign(html.as_uri()) == []
    assert visit.errors == []
    math, rendered = browser.execute_script(
        "return ['.math', 'mjx-container'].map(s => document.querySelectorAll(s).length)"
    )
    assert rendered == math


def search(browser, root, term):
    """Addresses of the pages that the book's own search finds."""
    visit = open_page(browser, f"{root}/search.html?q={term}")
    WebDriverWait(browser, 20).until(
        lambda b: b.execute_script("return document.querySelector('.search-summary')?.innerText")
    )
    assert visit.foreign(root) == []
    links = browser.find_elements(By.CSS_SELECTOR, "#search-results ul.search a")
    return {link.get_attribute("href").partition("?")[0].partition("#")[0] for link in links}


@pytest.mark.parametrize(("term", "page"), [t for t in TERMS.items() if t[1] in PAGES])
def test_search_finds_the_page(browser, root, term, page):
    assert f"{root}/{page}.html" in search(browser, root, term)


def test_search_finds_nothing_where_nothing_is(browser, root):
    assert search(browser, root, "xyzzyplugh") == set()


def test_search_finds_sections(browser, served):
    search(browser, served, "hypergeometric")
    section = "01_weighted_loss.html#how-often-a-batch-holds-no-minority-sample"
    WebDriverWait(browser, 20).until(
        lambda b: b.find_elements(By.CSS_SELECTOR, f"ul.sections a[href='{section}']")
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_missing_address_explains_itself_at_any_depth(browser, served, axe, theme):
    address = f"{served}/no/such/page.html"
    visit = open_page(browser, address)
    set_screen(browser, 390, theme)
    assert visit.foreign(address) == []
    assert browser.find_element(By.TAG_NAME, "h1").text == "Page not found"
    assert new_findings(browser, axe) == []


def test_missing_page_leads_back(browser, served):
    open_page(browser, f"{served}/renamed.html")
    browser.find_element(By.CSS_SELECTOR, "main a").click()
    assert browser.current_url == f"{served}/intro.html"


def test_search_page_has_one_search_box(browser, served):
    open_page(browser, f"{served}/search.html")
    for width in (390, 1280):
        set_screen(browser, width)
        assert count_search_boxes(browser) == 1


@pytest.mark.parametrize(("theme", "width"), [("light", 390), ("dark", 1280)])
def test_axe_finds_nothing_new_in_what_all_pages_share(browser, served, axe, theme, width):
    open_page(browser, f"{served}/search.html?q=normalization")
    set_screen(browser, width, theme)
    assert new_findings(browser, axe) == []


def test_contents_open_and_close_on_a_phone(browser, served):
    set_screen(browser, 390)
    open_page(browser, f"{served}/notation.html")
    chapter = browser.find_element(By.CSS_SELECTOR, f"nav.bd-links a[href='{PAGES[-1]}.html']")
    assert not chapter.is_displayed()
    browser.find_element(By.CSS_SELECTOR, ".primary-toggle").click()
    WebDriverWait(browser, 10).until(lambda b: chapter.is_displayed())
    assert browser.execute_script("return document.querySelector('dialog[open]') !== null")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    WebDriverWait(browser, 10).until(lambda b: not chapter.is_displayed())


def test_first_stop_of_the_keyboard_leads_to_the_content(browser, served):
    open_page(browser, f"{served}/notation.html")
    ActionChains(browser).send_keys(Keys.TAB).perform()
    assert browser.switch_to.active_element.get_attribute("href").endswith("#main-content")
