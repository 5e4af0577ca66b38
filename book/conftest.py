"""Refuse notebooks that nbval would pass without comparing their outputs.

It compares nothing in a cell without an execution count, and nothing where
a comment or a tag asks it not to.
"""

import json
from pathlib import Path

import pytest
from nbval.plugin import find_comment_markers, find_metadata_tags

OPT_OUTS = {("check", False), ("skip", True)}


def require_run_top_to_bottom(name: str, code: list[dict]) -> None:
    """Refuse a notebook whose execution counts are not 1, 2, ..., n."""
    counts = [c["execution_count"] for c in code]
    if counts != list(range(1, len(code) + 1)):
        raise pytest.UsageError(
            f"{name} was not run top to bottom (execution counts "
            f"{counts}): run `make run-notebooks` and commit its outputs"
        )


def require_every_cell_compared(name: str, code: list[dict]) -> None:
    """Refuse a notebook with cells that opt out of the comparison."""
    for number, cell in enumerate(code, start=1):
        markers = {
            *find_comment_markers("".join(cell["source"])),
            *find_metadata_tags(cell["metadata"]),
        }
        if markers & OPT_OUTS:
            raise pytest.UsageError(
                f"{name} keeps code cell {number} from being compared: "
                "remove the comment or tag, and print what is exact"
            )


def pytest_collect_file(file_path: Path) -> None:
    """Check each notebook before nbval collects its cells."""
    if file_path.suffix == ".ipynb":
        cells = json.loads(file_path.read_text(encoding="utf-8"))["cells"]
        code = [
            c
            for c in cells
            if c["cell_type"] == "code" and "".join(c["source"]).strip()
        ]
        require_run_top_to_bottom(file_path.name, code)
        require_every_cell_compared(file_path.name, code)
