"""Figures are drawn in the house style."""

import pytest


@pytest.fixture(autouse=True)
def drawn_as_the_house_says(house_style):
    """Of every test here."""
