"""What the table of contents promises, and how to open a page."""

import json
import pydoc
import re
from pathlib import Path
from typing import NamedTuple

import nbformat
import yaml
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from selenium.webdriver.remote.webdriver import WebDriver
from selenium.webdriver.support.ui import WebDriverWait

BOOK = Path(__file__).resolve().parents[2] / "book"
EXTENSIONS = {"amsmath", "colon_fence", "deflist", "dollarmath"}
MATH = {"math_inline", "math_inline_double", "math_block", "math_block_label", "amsmath"}
VERBATIM = ("{code", "{raw", "{toctree")


def chapters() -> list[Path]:
    """Source files in reading order."""
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text())
    names = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    return [next(BOOK.glob(f"{name}.*")) for name in names]


def notebooks() -> list[Path]:
    """Those chapters that are notebooks."""
    return [path for path in chapters() if path.suffix == ".ipynb"]


def markdown(path: Path) -> list[str]:
    """Texts that a chapter is made of, captions of figures included."""
    if path.suffix == ".md":
        return [path.read_text(encoding="utf-8")]
    cells = nbformat.read(path, as_version=4).cells
    captions = (c.metadata.get("mystnb", {}).get("figure", {}).get("caption", "") for c in cells)
    return [*(c.source for c in cells if c.cell_type == "markdown"), *captions]


def documented(text: str) -> list[str]:
    """Names whose docstrings a text takes over."""
    return re.findall(r"^\.\. auto\w+:: (\S+)$", text, re.MULTILINE)


def myst_parser() -> MarkdownIt:
    """A parser of the Markdown that the pages are written in."""
    return create_md_parser(MdParserConfig(enable_extensions=EXTENSIONS), RendererHTML)


def count_equations(text: str, parser: MarkdownIt | None = None) -> int:
    """Number of equations in MyST Markdown, inside directives as well."""
    parser = parser or myst_parser()
    count = 0
    for token in parser.parse(text):
        directive = token.type in ("fence", "colon_fence") and token.info.strip()
        if directive and directive.startswith("{math}"):
            count += 1
        elif directive and directive.startswith("{eval-rst}"):
            docstrings = [pydoc.locate(name).__doc__ for name in documented(token.content)]
            count += sum(len(re.findall(r":math:`|\.\. math::", d)) for d in docstrings)
        elif directive and directive.startswith("{") and not directive.startswith(VERBATIM):
            title = directive.partition("}")[2]
            count += count_equations(f"{title}\n\n{token.content}", parser)
        count += sum(t.type in MATH for t in [token, *(token.children or [])])
    return count


class Visit(NamedTuple):
    """What happened when a page was opened."""

    requests: list[str]
    errors: list[str]

    def foreign(self, root: str) -> list[str]:
        """Requests to anything but the book at `root`."""
        own = (root, "data:", "blob:", "chrome:", "chrome-untrusted:")
        return [request for request in self.requests if not request.startswith(own)]


def open_page(browser: WebDriver, address: str) -> Visit:
    """Open a page and wait until it is loaded and MathJax is done."""
    browser.get_log("browser"), browser.get_log("performance")
    browser.get(address)
    WebDriverWait(browser, 30, poll_frequency=0.05).until(
        lambda b: b.execute_script(
            "return document.readyState === 'complete' && (!document.querySelector('.math') || "
            "(window.MathJax && MathJax.startup && MathJax.startup.promise !== undefined))"
        )
    )
    browser.execute_async_script(
        "const done = arguments[0];"
        "(window.MathJax?.startup?.promise ?? Promise.resolve()).then(() => done())"
    )
    events = [json.loads(e["message"])["message"] for e in browser.get_log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    logged = browser.get_log("browser")
    return Visit(
        [params["request"]["url"] for params in sent],
        [entry["message"] for entry in logged if entry["level"] == "SEVERE"],
    )


SCREEN_IS_SET = """
    const [width, theme] = arguments;
    const {theme: shown = theme} = document.documentElement.dataset;
    const boxes = 'pre, .cell_output > .output, .pst-scrollable-table-container';
    const scrolls = e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight;
    document.getAnimations().forEach(animation => animation.finish());
    return innerWidth === width && shown === theme &&
        [...document.querySelectorAll(boxes)].every(e => scrolls(e) === (e.tabIndex === 0));
"""


def set_screen(browser: WebDriver, width: int, theme: str = "light") -> None:
    """Give the page a window of `width` pixels and a system that prefers `theme`.

    Returns when the page has followed: the theme makes what scrolls reachable by keyboard a
    moment after a change of width.
    """
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    preference = [{"name": "prefers-color-scheme", "value": theme}]
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": preference})
    WebDriverWait(browser, 10, poll_frequency=0.05).until(
        lambda b: b.execute_script(SCREEN_IS_SET, width, theme)
    )


def count_search_boxes(browser: WebDriver) -> int:
    """Number of fields and buttons for searching that are on the screen."""
    return browser.execute_script(
        "return [...document.querySelectorAll('input[type=search], .search-button__button')]"
        ".filter(e => e.checkVisibility() && e.getBoundingClientRect().right > 0).length"
    )
