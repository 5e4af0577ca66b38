"""What once depended on the processor, under the kernels that showed it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("kernels", ["Haswell", "Nehalem"])
def test_designs_are_the_same_under_other_kernels(kernels):
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider",
         "tests/stats/test_design.py"],
        cwd=ROOT, env={**os.environ, "OPENBLAS_CORETYPE": kernels}, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == -signal.SIGILL:
        pytest.skip(f"this processor has no instructions of {kernels}")
    assert done.returncode == 0, done.stdout
