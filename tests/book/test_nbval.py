"""The command of `make notebooks` passes an honest notebook and no dishonest one."""

import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import nbformat
import pytest
from conftest import ROOT
from nbformat.v4 import new_code_cell, new_notebook, new_output
from pages import BOOK


def printing(count: int | None, source: str, *printed: str) -> nbformat.NotebookNode:
    """Code cell with an execution count and what it printed."""
    outputs = [new_output("stream", name="stdout", text=text) for text in printed]
    return new_code_cell(source, execution_count=count, outputs=outputs)


def tagged(cell: nbformat.NotebookNode, tag: str) -> nbformat.NotebookNode:
    cell.metadata.tags = [tag]
    return cell


DRAW = """import matplotlib.pyplot as plt

from study.figures.style import use_house_style

use_house_style()
plt.plot([1, 2])
plt.show()
print(2 + 2)"""
OTHER_DRAWING = '<?xml version="1.0" encoding="utf-8"?>\n<svg>\n<path d="M 0 0"/>\n</svg>\n'


def drawing(printed: str, **pictures: str) -> nbformat.NotebookNode:
    """Code cell that draws and prints, with other pictures than it draws."""
    cell = printing(1, DRAW, printed)
    data = {"text/plain": "<Figure size 640x480 with 1 Axes>"} | pictures
    cell.outputs.insert(0, new_output("display_data", data=data))
    return cell


FIRST = printing(1, "x = 2 + 2\nprint(x)", "4\n")
COMPARED = {
    "honest": [FIRST, printing(2, "print(x + 1)", "5\n")],
    "falsified": [FIRST, printing(2, "print(x + 1)", "6\n")],
    "emptied": [FIRST, printing(2, "print(x + 1)")],
    "redrawn": [drawing("4\n", **{"image/svg+xml": OTHER_DRAWING})],
    "misprinted": [drawing("5\n", **{"image/svg+xml": OTHER_DRAWING})],
    "undrawn": [drawing("4\n")],
}
REFUSED = {
    "stripped": [printing(None, "x = 4"), printing(None, "print(x + 1)")],
    "shuffled": [printing(2, "x = 4"), printing(1, "print(5)", "5\n")],
    "ignored": [FIRST, printing(2, "# NBVAL_IGNORE_OUTPUT\nprint(x + 1)", "6\n")],
    "skipped": [FIRST, tagged(printing(2, "print(x + 1)", "6\n"), "nbval-skip")],
}


def command(folder, notebooks, report):
    """What `make notebooks` runs, for notebooks in `folder` and with another report."""
    dry = ["make", "--dry-run", "notebooks", f"NOTEBOOKS={shlex.join(map(str, notebooks))}"]
    recipe = subprocess.run(dry, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = recipe.replace("\\\n", " ").splitlines()
    _, *words = next(shlex.split(line) for line in lines if "--nbval " in line)
    words[words.index("--junitxml") + 1] = str(report)
    settings = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(folder)]
    return [sys.executable, *words, *settings]


def rerun(folder, cases):
    """Rerun notebooks, each beside the book's conftest.py; return what failed or not, by case."""
    paths = [folder / name / f"{name}.ipynb" for name in cases]
    for path, cells in zip(paths, cases.values(), strict=True):
        path.parent.mkdir()
        shutil.copy(BOOK / "conftest.py", path.parent)
        nbformat.write(new_notebook(cells=cells), path)
    report = folder / "report.xml"
    done = subprocess.run(command(folder, paths, report), cwd=ROOT, capture_output=True)
    found = {name: [] for name in cases}
    for case in ElementTree.parse(report).iter("testcase"):
        name = next(n for n in cases if n in f"{case.get('classname')} {case.get('name')}")
        found[name].append("".join(case.itertext()) if len(case) else "passed")
    return done.returncode, found


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    return rerun(tmp_path_factory.mktemp("compared"), COMPARED)


@pytest.fixture(scope="module")
def refused(tmp_path_factory):
    return rerun(tmp_path_factory.mktemp("refused"), REFUSED)


def test_failures_reach_the_exit_code(compared, refused):
    assert compared[0] == 1
    assert refused[0] == 1


def test_honest_notebook_passes(compared):
    assert compared[1]["honest"] == ["passed", "passed"]


def test_falsified_number_fails(compared):
    first, second = compared[1]["falsified"]
    assert first == "passed"
    assert "Cell outputs differ" in second
    assert "mismatch 'stdout'" in second


def test_emptied_output_fails(compared):
    first, second = compared[1]["emptied"]
    assert first == "passed"
    assert "Unexpected output fields from running code: {'stdout'}" in second


def test_drawing_may_differ(compared):
    assert compared[1]["redrawn"] == ["passed"]


def test_number_beside_a_drawing_may_not(compared):
    (report,) = compared[1]["misprinted"]
    assert "mismatch 'stdout'" in report
    assert "image/svg+xml" not in report


def test_missing_drawing_fails(compared):
    (report,) = compared[1]["undrawn"]
    assert "Unexpected output fields from running code: {'image/svg+xml'}" in report


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("stripped", "was not run top to bottom (execution counts [None, None])"),
        ("shuffled", "was not run top to bottom (execution counts [2, 1])"),
        ("ignored", "keeps code cell 2 from being compared"),
        ("skipped", "keeps code cell 2 from being compared"),
    ],
)
def test_notebook_that_would_not_be_compared_is_refused(name, reason, refused):
    (report,) = refused[1][name]
    assert reason in report
