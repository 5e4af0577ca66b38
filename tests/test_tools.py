"""Notebooks run side by side: what finishes is stored, what fails is shown whole."""

import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

TOOLS = Path(__file__).parents[1] / "tools"


def notebook(path, *sources):
    nbformat.write(new_notebook(cells=[new_code_cell(source) for source in sources]), path)
    return str(path)


def test_one_failing_notebook_keeps_its_message_and_leaves_the_others_alone(tmp_path):
    good = notebook(
        tmp_path / "good one.ipynb", "import os", "print(os.environ['OMP_NUM_THREADS'])"
    )
    bad = notebook(tmp_path / "bad.ipynb", "x = 41", "raise LookupError(f'no {x + 1} here')")
    done = subprocess.run(
        [sys.executable, TOOLS / "run_notebooks.py", good, bad], capture_output=True, text=True
    )
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines[0].startswith("Running 2 notebooks, ")
    assert sum("good one: " in line and "FAILED" not in line for line in lines) == 1
    assert sum("bad: FAILED after " in line for line in lines) == 1
    assert lines[-1] == "1 of 2 notebooks failed: bad."
    assert "Traceback" in done.stderr
    assert "no 42 here" in done.stderr
    printed = nbformat.read(good, as_version=4).cells[1]
    assert (printed.execution_count, printed.outputs[0].text) == (2, "1\n")
    assert nbformat.read(bad, as_version=4).cells[0].execution_count is None
