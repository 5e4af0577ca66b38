"""Tests run side by side in processes, so that each computes on one thread."""

import pytest
import torch

torch.set_num_threads(1)


@pytest.fixture
def no_figures_left():
    """Draw without a screen, and leave nothing behind."""
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    yield
    plt.close("all")
