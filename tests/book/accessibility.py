"""What axe finds on a page, without what is known of the theme."""

from selenium.webdriver.remote.webdriver import WebDriver

# By rule and selector: buttons whose label is not their text, a logo outside of every landmark,
# and the empty corner of the tables of pandas.
KNOWN = {
    "label-content-name-mismatch": (
        ".search-button-field, .theme-switch-button, .cell > details.hide > summary"
    ),
    "region": ".navbar-brand > .logo__image",
    "empty-table-header": ".cell_output thead th",
}
RUN = """
    const [known, done] = arguments;
    const expected = (rule, node) =>
        known[rule] && document.querySelector(node.target[0]).matches(known[rule]);
    axe.run({resultTypes: ['violations']}).then(found => done(found.violations.flatMap(
        ({id, nodes}) => nodes.filter(n => !expected(id, n)).map(n => `${id}: ${n.html}`))));
"""


def new_findings(browser: WebDriver, axe: str) -> list[str]:
    """Rule and element of each finding on the open page that `KNOWN` does not cover."""
    browser.execute_script(axe)
    return browser.execute_async_script(RUN, KNOWN)
