"""Every notebook of the table of contents was rerun and compared, not only collected."""

import ast
import json
import xml.etree.ElementTree as ElementTree

import pytest
from conftest import ROOT, need
from pages import BOOK, chapters, notebooks

COMPARED = {"text/plain", "text/html"}
IMAGES = {"image/svg+xml", "image/png"}
MOST_LINES = 12  # of a cell, without its imports: what is longer is plumbing, and has a room


def code_cells(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [c for c in cells if c["cell_type"] == "code"]


@pytest.fixture(scope="module")
def passed():
    """Number of cells that nbval compared and passed, for each notebook."""
    report = ROOT / "_build" / "nbval.xml"
    need(report.exists(), "the report of nbval (make notebooks)")
    counts = {}
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.get("classname").removeprefix("book.")
        counts[name] = counts.get(name, 0) + (len(case) == 0)
    return counts


def test_every_notebook_is_in_the_table_of_contents():
    assert sorted(BOOK.glob("*.ipynb")) == sorted(notebooks())


def test_every_notebook_was_rerun(passed):
    assert sorted(passed) == sorted(path.name for path in notebooks())


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_every_cell_passed_and_one_had_something_to_compare(path, passed):
    cells = code_cells(path)
    assert passed[path.name] == len(cells)
    outputs = [o for cell in cells for o in cell["outputs"]]
    assert any(o["output_type"] == "stream" or COMPARED & o["data"].keys() for o in outputs)


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_every_chapter_has_a_page(path, html):
    assert (html / f"{path.stem}.html").exists()


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_every_figure_has_caption_and_alt_text(path):
    for cell in code_cells(path):
        if any(IMAGES & o.get("data", {}).keys() for o in cell["outputs"]):
            mystnb = cell["metadata"]["mystnb"]
            assert len(mystnb["figure"]["caption"]) > 40
            assert len(mystnb["image"]["alt"]) > 40


@pytest.mark.parametrize("path", notebooks(), ids=lambda path: path.stem)
def test_cells_are_short(path):
    for cell in code_cells(path):
        source = "".join(cell["source"])
        imports = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
        imported = {line for node in imports for line in range(node.lineno, node.end_lineno + 1)}
        lines = [line for line in source.splitlines() if line.strip()]
        assert len(lines) - len(imported) <= MOST_LINES, source
