"""nbval passes a cell with no outputs and no execution count: refuse it."""

import json
from pathlib import Path

import pytest


def require_run_top_to_bottom(path: Path) -> None:
    """Refuse a notebook whose execution counts are not 1, 2, ..., n."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [
        c
        for c in cells
        if c["cell_type"] == "code" and "".join(c["source"]).strip()
    ]
    counts = [c["execution_count"] for c in code]
    if counts != list(range(1, len(code) + 1)):
        raise pytest.UsageError(
            f"{path.name} was not run top to bottom (execution counts "
            f"{counts}): run `make run-notebooks` and commit its outputs"
        )


def pytest_collect_file(file_path: Path) -> None:
    """Check each notebook before nbval collects its cells."""
    if file_path.suffix == ".ipynb":
        require_run_top_to_bottom(file_path)
