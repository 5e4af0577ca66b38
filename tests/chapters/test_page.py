"""Pages import little: their chapter's folder, and what every page needs."""

import ast
import importlib
import json
import pkgutil
from collections import Counter
from pathlib import Path

import pytest

from study.chapters import page

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
FOLDERS = sorted(path.parent for path in (ROOT / "study/chapters").glob("*/__init__.py"))
MOST = 10  # names of the study that a page imports


def sources(path, kind="code"):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == kind]


def nodes(path):
    return [node for source in sources(path) for node in ast.walk(ast.parse(source))]


def imported(path):
    """Names of the study that a page imports, each as (module, name)."""
    froms = [node for node in nodes(path) if isinstance(node, ast.ImportFrom)]
    return [
        (node.module, alias.name)
        for node in froms
        if node.module.split(".")[0] == "study"
        for alias in node.names
    ]


def taken(folder):
    """What pages take from a chapter's folder, by attribute, and what their text mentions."""
    found, text = set(), ""
    for path in NOTEBOOKS:
        if ("study.chapters", folder) in imported(path):
            attributes = [node for node in nodes(path) if isinstance(node, ast.Attribute)]
            found |= {
                node.attr
                for node in attributes
                if isinstance(node.value, ast.Name) and node.value.id == folder
            }
            text += "\n".join(sources(path, "markdown"))
    return found, text


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_page_imports_few_names(path):
    assert len(imported(path)) <= MOST


def test_what_every_page_needs_is_what_several_use():
    users = Counter(
        name
        for path in NOTEBOOKS
        for module, name in imported(path)
        if module == "study.chapters.page"
    )
    assert {name for name in page.__all__ if users[name] < 2} == set()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda path: path.name)
def test_a_folder_offers_what_its_pages_use(folder):
    chapter = importlib.import_module(f"study.chapters.{folder.name}")
    used, text = taken(folder.name)
    offered = set(chapter.__all__)
    assert used <= offered
    assert {name for name in offered - used if name not in text} == set()
    # A module that is imported later would take the place of what has its name.
    assert offered.isdisjoint(module.name for module in pkgutil.iter_modules(chapter.__path__))


@pytest.mark.parametrize("name", ["why.positions", "three_experiments.margins", "report.hero"])
def test_a_module_that_is_run_is_not_imported_before(name):
    """Or Python warns that it may be run twice."""
    source = (ROOT / "study/chapters" / f"{name.replace('.', '/')}.py").read_text()
    assert 'if __name__ == "__main__":' in source
    folder, module = name.split(".")
    for path in (ROOT / "study").rglob("*.py"):
        text = path.read_text()
        assert f"from study.chapters.{name} import" not in text
        assert f"from study.chapters.{folder} import {module}" not in text
