"""What the method says when it refuses something or warns, read off its source."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pandas as pd

import wbn

GAP = "…"  # for what is filled in when it is said


def messages() -> pd.DataFrame:
    """Module, kind ("error" or "warning") and text of all that the method's modules say."""
    paths = sorted(Path(wbn.__file__).parent.glob("[a-z]*.py"))
    modules = {p.stem: ast.parse(p.read_text()) for p in paths if p.stem != "cli"}
    named = {name: node for tree in modules.values() for name, node in _named(tree)}
    rows = [(name, *said) for name, tree in modules.items() for said in _said(tree, named)]
    return pd.DataFrame(rows, columns=["module", "kind", "message"])


def said(source: str) -> list[tuple[str, str]]:
    """Kind and text of what a source raises with a text, and of what it warns of.

    Examples
    --------
    >>> said("if n < 2:\\n    raise ValueError(f'{n} is too few: use 2')")
    [('error', '… is too few: use 2')]
    """
    tree = ast.parse(source)
    return list(_said(tree, dict(_named(tree))))


def _said(tree: ast.Module, named: Mapping[str, ast.expr]) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        match node:
            case ast.Raise(exc=ast.Call(args=[text, *_])):
                kind, texts = "error", [text]
            case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=texts) if (
                name.startswith("warn")
            ):
                kind = "warning"
            case _:
                continue
        message = " ".join(_text(text, named) for text in texts)
        if any(map(str.isalpha, message)):  # or else it passes on what was said elsewhere
            yield kind, message


def _text(node: ast.expr, named: Mapping[str, ast.expr]) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(p.value if isinstance(p, ast.Constant) else GAP for p in parts)
        case ast.Name(id=name) | ast.Call(func=ast.Name(id=name)) if name in named:
            return _text(named[name], named)
    raise TypeError(f"can't read the message {ast.unparse(node)}: write it as a string there")


def _named(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Constants of a module, and what its functions return in their last line, by name."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield name, value
            case ast.FunctionDef(name=name, body=[*_, ast.Return(value=value)]):
                yield name, value
