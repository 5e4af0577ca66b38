"""Each room of the house knows only those before it."""

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "wbn"
ROOMS = ("method", "experiments", "analysis", "figures", "command")
MODULES = sorted(PACKAGE.rglob("*.py"))


def room(module: str) -> str:
    """Of "wbn.analysis.claims" analysis, of "wbn.core" the method."""
    _, name, *_ = [*module.split("."), ""]
    return {"cli": "command", "__main__": "command"}.get(name, name if name in ROOMS else "method")


def imports(path: Path) -> set[str]:
    """Absolute names of what a file imports, also inside functions and for types."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    assert not any(isinstance(node, ast.ImportFrom) and node.level for node in nodes)
    plain = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    froms = [n for n in nodes if isinstance(n, ast.ImportFrom)]
    return (
        plain | {n.module for n in froms} | {f"{n.module}.{a.name}" for n in froms for a in n.names}
    )


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_arrow_points_back_and_nothing_is_borrowed(path):
    own = room(".".join(("wbn", *path.relative_to(PACKAGE).with_suffix("").parts)))
    ours = {name for name in imports(path) if name.split(".")[0] == "wbn"}
    assert {n for n in ours if ROOMS.index(room(n)) > ROOMS.index(own)} == set()
    if own == "method":
        others = {name.split(".")[0] for name in imports(path) - ours}
        assert others <= {"torch", "numpy", *sys.stdlib_module_names}
    assert not re.search(r"\bbook/|\d\d_\w+\.(ipynb|html)", path.read_text())


def drawn() -> dict[str, str]:
    """What the drawing in CONTRIBUTING.md says of each folder of the package."""
    drawing = re.search(r"```\n(wbn/ .*?)\ntests/ ", (ROOT / "CONTRIBUTING.md").read_text(), re.S)[
        1
    ]
    rooms = re.split(r"\n  (\w+)/ ", f"\n  wbn/ {drawing}")[1:]
    return dict(zip(rooms[::2], rooms[1::2], strict=True))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_house_is_drawn_with_every_module(path):
    if path.parent.name in drawn() and path.stem != "cli" and not path.stem.startswith("__"):
        words = re.findall(r"[\w*]+", drawn()[path.parent.name])
        assert any(re.fullmatch(word.replace("*", r"\w*"), path.stem) for word in words)
