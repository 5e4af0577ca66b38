"""Every table of the book: captioned, as wide as the text on a laptop and in print, in words."""

import json

import pandas as pd
import pytest
from pages import chapters, notebooks, open_page, set_screen

PAGES = [path.stem for path in chapters()]
PAPER = 718  # CSS pixels between margins of 1 cm on A4
WIDER_THAN_THE_TEXT = """
    const room = document.querySelector('.bd-article').getBoundingClientRect();
    return [...document.querySelectorAll('article table')].filter(table => {
        const box = table.getBoundingClientRect(), frame = table.parentElement;
        return box.width > 0 && (box.right > room.right + 1 ||
            frame.scrollWidth > frame.clientWidth + 1);
    }).map(table => table.innerText.slice(0, 80));
"""
WITHOUT_SCOPE = """
    return [...document.querySelectorAll('article .cell_output th:not([scope])')]
        .map(th => th.outerHTML.slice(0, 80));
"""


@pytest.fixture(scope="module", params=PAGES)
def page(request, browser, served):
    """Pages in turn; a test sets the screen that it needs."""
    open_page(browser, f"{served}/{request.param}.html")
    return request.param


def test_every_table_has_a_caption_and_every_header_a_scope(browser, page):
    captions = browser.execute_script(
        "return [...document.querySelectorAll('article table')]"
        ".map(table => table.caption?.textContent ?? table.innerText.slice(0, 80) + ': none')"
    )
    assert [caption for caption in captions if len(caption) < 10 or caption.endswith("none")] == []
    assert browser.execute_script(WITHOUT_SCOPE) == []


def test_no_table_is_wider_than_the_text(browser, page):
    set_screen(browser, 1280)
    assert browser.execute_script(WIDER_THAN_THE_TEXT) == []


def test_no_table_is_cut_in_print(browser, page):
    set_screen(browser, PAPER)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    wider = browser.execute_script(WIDER_THAN_THE_TEXT)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert wider == []


def test_names_of_rows_stay_in_sight_on_a_phone(browser, page):
    set_screen(browser, 390)
    moved = browser.execute_script("""
        return [...document.querySelectorAll('article table')].flatMap(table => {
            const frame = table.parentElement;
            const name = table.querySelector('tbody tr > :first-child:not([colspan])');
            const before = name.getBoundingClientRect().left;
            frame.scrollLeft = frame.scrollWidth;
            const gone = before - name.getBoundingClientRect().left;
            frame.scrollLeft = 0;
            return gone > 9 ? [table.innerText.slice(0, 80)] : [];
        });
    """)
    assert moved == []


def test_only_code_has_a_button_to_copy_it(browser, page):
    copied = browser.execute_script(
        "return [...document.querySelectorAll('.copybtn')]"
        ".filter(button => button.closest('.cell_output, table')).length"
    )
    assert copied == 0


def outputs():
    for path in notebooks():
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        for cell in cells:
            for output in cell.get("outputs", []):
                yield f"{path.stem} {cell['id']}", output


def test_no_table_is_shown_as_pandas_prints_it():
    raw = [
        where
        for where, output in outputs()
        if "<table" in (html := "".join(output.get("data", {}).get("text/html", "")))
        and html.count("<table") != html.count("<caption>")
    ]
    assert raw == []


def looks_like_a_table(text):
    """Three lines or more, all of them in columns of two spaces or more."""
    lines = [line.split("  ") for line in text.splitlines() if line.strip()]
    columns = [len([part for part in line if part.strip()]) for line in lines]
    return len(lines) > 2 and sum(n > 1 for n in columns) > len(lines) / 2


def test_no_table_is_printed():
    printed = [
        where
        for where, output in outputs()
        if output["output_type"] == "stream" and looks_like_a_table("".join(output["text"]))
    ]
    assert printed == []


def test_a_printed_table_is_recognized():
    frame = pd.DataFrame({"numbers": [1, 0], "ranking": [5, 6]}, index=[0.0003, 0.001])
    assert looks_like_a_table(str(frame))
    assert looks_like_a_table(f"title\n{frame.rename_axis('rate')}\n")
    assert not looks_like_a_table("train: 99.2 %\ntest: 46.3 %\n\n1 0 2  1\n")
