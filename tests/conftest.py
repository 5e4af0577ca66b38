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


@pytest.fixture
def house_style(no_figures_left):
    """Every figure that a test draws is as wide as the house says and has no ground."""
    import matplotlib.pyplot as plt

    from study.figures.style import WIDTH, use_house_style

    with plt.rc_context():
        use_house_style()
        yield
    for figure in map(plt.figure, plt.get_fignums()):
        assert figure.get_size_inches()[0] == WIDTH
        assert figure.get_facecolor()[3] == 0
        assert all(axis.get_facecolor()[3] == 0 for axis in figure.axes)


@pytest.fixture
def points():
    """The lines of a panel that connect or hold points, without the legend's."""
    return lambda axis: [
        line for line in axis.lines if line.get_marker() != "None" and len(line.get_xdata())
    ]
