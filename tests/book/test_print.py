"""Every page on paper: nothing scrolls or is cut, no box is empty, no button is left."""

import pytest
from pages import chapters, open_page, set_screen

PAPER = 718  # CSS pixels between margins of 1 cm on A4
FINDINGS = """
    const room = document.querySelector('.bd-article').getBoundingClientRect();
    const shown = [...document.querySelectorAll('.bd-article *')].filter(e => e.checkVisibility());
    const found = (what, elements) =>
        elements.map(e => `${what}: ${e.outerHTML.slice(0, 90)}`);
    const style = e => getComputedStyle(e);
    return [
        ...found('scrolls', shown.filter(e => /auto|scroll/.test(style(e).overflowX) &&
            (e.scrollWidth > e.clientWidth + 1 || e.scrollHeight > e.clientHeight + 1))),
        ...found('cut', shown.filter(e => !e.closest('mjx-assistive-mml, svg') &&
            e.getBoundingClientRect().right > room.right + 1)),
        ...found('empty', shown.filter(e => e.matches('details, .cell_input, .cell_output') &&
            !e.innerText.trim() && !e.querySelector('img, svg, input'))),
        ...found('folded', shown.filter(e => e.matches('details:not([open]) > *') &&
            e.getBoundingClientRect().height === 0)),
        ...found('button', shown.filter(e => e.matches('.copybtn, .cell > details.hide'))),
    ];
"""


@pytest.mark.parametrize("page", [path.stem for path in chapters()])
def test_prints_whole(browser, served, page):
    open_page(browser, f"{served}/{page}.html")
    set_screen(browser, PAPER)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    findings = browser.execute_script(FINDINGS)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert findings == []
