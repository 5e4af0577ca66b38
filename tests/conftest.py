"""Tests run side by side in processes, so that each computes on one thread."""

import os
from collections import Counter
from pathlib import Path

import pytest
import torch

torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", 1)))


def pytest_terminal_summary(terminalreporter):
    """Tell the file that `make test` ends with how many tests did not run, for want of what."""
    told = os.environ.get("WBN_NOT_RUN")
    if told:
        skipped = terminalreporter.stats.get("skipped", [])
        reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
        lines = [
            f"{n} checks did not run: {why}.\n" for why, n in reasons.items() if "is missing" in why
        ]
        Path(told).parent.mkdir(parents=True, exist_ok=True)
        Path(told).write_text("".join(lines), encoding="utf-8")


@pytest.fixture
def no_figures_left():
    """Draw without a screen, and leave nothing behind."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")
