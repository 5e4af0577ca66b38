"""Experiments that train in no time."""

import pytest
from plain import EXPERIMENTS, TOY

from study.engine.data import ALL_EXPERIMENTS, Experiment


@pytest.fixture
def toys(monkeypatch):
    """Experiments that train in no time, as entries beside the others."""
    for name, sizes in EXPERIMENTS.items():
        monkeypatch.setitem(ALL_EXPERIMENTS, name, Experiment(TOY, sizes))
