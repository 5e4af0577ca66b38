"""What tests of interactive figures do to a page."""

from collections.abc import Iterator
from contextlib import contextmanager

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webdriver import WebDriver


def readout(browser: WebDriver, figure: str) -> str:
    """What a figure says below its picture."""
    return browser.find_element(By.CSS_SELECTOR, f"{figure} output").text


def findings_with_open_table(browser: WebDriver, figure: str, axe: str) -> list:
    """What axe finds in a figure whose table is unfolded."""
    browser.find_element(By.CSS_SELECTOR, f"{figure} summary").send_keys(Keys.ENTER)
    assert browser.find_element(By.CSS_SELECTOR, f"{figure} table").is_displayed()
    browser.execute_script(axe)
    found = browser.execute_async_script("axe.run(arguments[0]).then(arguments[1])", figure)
    return [(v["id"], v["nodes"]) for v in found["violations"]]


@contextmanager
def without_scripts(browser: WebDriver) -> Iterator[None]:
    """Pages that are opened inside run no script; the last of them is left at the end."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        yield
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        browser.get("about:blank")
