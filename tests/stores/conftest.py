"""Modules that attack count in `TRIED` what they try; `make soak` prints it."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def figures(request):
    failed = request.session.testsfailed
    yield
    survived = "all survived" if request.session.testsfailed == failed else "not all survived"
    for what, number in getattr(request.module, "TRIED", {}).items():
        print(f"\n{what}: {number:,} tried, {survived}")
