"""Figures are drawn in the house style, without a screen, and looked at before they are closed."""

import matplotlib.pyplot as plt
import pytest

from wbn.figures.style import WIDTH, use_house_style


@pytest.fixture(autouse=True)
def house_style(no_figures_left):
    """Every figure that a test draws is as wide as the house says and has no ground."""
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
