"""Modules that attack count in `TRIED` what they try; `make soak` prints it."""

import pytest
from plain import EXPERIMENTS, TOY

from wbn.experiments.data import ALL_EXPERIMENTS, Experiment


@pytest.fixture(scope="module", autouse=True)
def figures(request):
    failed = request.session.testsfailed
    yield
    survived = "all survived" if request.session.testsfailed == failed else "not all survived"
    for what, number in getattr(request.module, "TRIED", {}).items():
        print(f"\n{what}: {number:,} tried, {survived}")


@pytest.fixture
def toys(monkeypatch):
    """Experiments that train in no time, as entries beside the others."""
    for name, sizes in EXPERIMENTS.items():
        monkeypatch.setitem(ALL_EXPERIMENTS, name, Experiment(TOY, sizes))
