"""Each room of the house knows only those before it, and the method knows none of the study."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUDY = ROOT / "study"
ROOMS = ("engine", "stores", "stats", "figures", "chapters", "command")
METHOD = sorted((ROOT / "wbn").rglob("*.py"))
MODULES = sorted(STUDY.rglob("*.py"))


def name(path: Path) -> str:
    """Of study/stats/design.py study.stats.design, of study/stats/__init__.py study.stats."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def room(module: str) -> int:
    """Of study.chapters.claims the place of chapters among the rooms; of study itself -1."""
    _, first, *_ = [*module.split("."), ""]
    first = {"cli": "command", "__main__": "command"}.get(first, first)
    return ROOMS.index(first) if first in ROOMS else -1


def imports(path: Path) -> set[str]:
    """Absolute names of what a file imports, also inside functions and for types."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes)
    plain = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    froms = [n for n in nodes if isinstance(n, ast.ImportFrom)]
    return (
        plain | {n.module for n in froms} | {f"{n.module}.{a.name}" for n in froms for a in n.names}
    )


@pytest.mark.parametrize("path", METHOD, ids=name)
def test_the_method_needs_torch_and_numpy_only(path):
    packages = {imported.split(".")[0] for imported in imports(path)}
    assert packages <= {"wbn", "torch", "numpy", *sys.stdlib_module_names}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_no_arrow_points_back(path):
    ours = {imported for imported in imports(path) if imported.split(".")[0] == "study"}
    assert {imported for imported in ours if room(imported) > room(name(path))} == set()
    assert not re.search(r"\bbook/\d|\d\d_\w+\.(ipynb|html)", path.read_text())


@pytest.mark.parametrize("path", [path for path in MODULES if room(name(path)) >= 0], ids=name)
def test_the_house_is_drawn_with_every_module(path):
    drawing = re.search(r"```\n(wbn/ .*?)\ntests/ ", (ROOT / "CONTRIBUTING.md").read_text(), re.S)
    rooms = dict(re.findall(r"^  (\w+)/ +(.*?)(?=^  \w|\Z)", drawing[1], re.S | re.M))
    parts = path.relative_to(STUDY).with_suffix("").parts
    if parts[0] in ROOMS and parts[-1] != "__init__":
        assert parts[1] in re.findall(r"\w+", rooms[parts[0]])


def test_the_study_is_installed_with_every_folder():
    """Where the root is on the path, as with `python -m pytest`, all of it is found anyhow."""
    settings = tomllib.loads((STUDY / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {path.parent for path in MODULES}
    assert settings["packages"] == sorted(name(folder / "__init__.py") for folder in folders)
    data = [path for path in STUDY.rglob("*") if path.suffix in (".js", ".css", ".html")]
    assert {name(path.parent / "__init__.py") for path in data} == set(settings["package-data"])
    modules = ", ".join(name(path) for path in MODULES if path.stem != "__main__")
    done = subprocess.run(
        [sys.executable, "-c", f"import {modules}"],
        cwd=ROOT / "book", capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
