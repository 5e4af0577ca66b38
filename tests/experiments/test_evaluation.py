"""Calibration against cases done by hand and against its definition."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wbn.experiments.evaluation import calibration_error, evaluate


def test_calibration_error_by_hand():
    """Top probabilities .95 (right), .95 (wrong), .5 (right), .9 (wrong): bins 15, 15, 8, 14."""
    p = torch.tensor([
        [0.95, 0.03, 0.02], [0.95, 0.03, 0.02], [0.25, 0.50, 0.25], [0.05, 0.05, 0.90]
    ]).double()[None]  # fmt: skip
    labels = torch.tensor([[0, 1, 1, 0]])
    expected = 2 / 4 * abs(1 / 2 - 0.95) + 1 / 4 * abs(1 - 0.5) + 1 / 4 * abs(0 - 0.9)
    assert calibration_error(p, labels).item() == pytest.approx(expected)


def test_certain_and_right_is_calibrated_and_certain_and_wrong_is_not():
    p = torch.tensor([[[1.0, 0.0, 0.0]] * 5] * 2)
    assert calibration_error(p, torch.tensor([[0] * 5, [2] * 5])).tolist() == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 2)), min_size=1, max_size=40))
def test_calibration_error_equals_its_definition(samples):
    p = torch.tensor([[k, 100 - k, 50] for k, _ in samples]).double()
    p, labels = p / p.sum(1, keepdim=True), torch.tensor([label for _, label in samples])
    top, right = p.max(1).values.numpy(), (p.argmax(1) == labels).numpy()
    expected = 0.0
    for b in range(15):
        inside = (b / 15 < top) & (top <= (b + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - top[inside].mean())
    both = calibration_error(torch.stack([p, p]), torch.stack([labels, labels]))
    assert both.tolist() == pytest.approx([expected] * 2)


def test_scores_of_three_classes():
    p = torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]]])
    labels = torch.tensor([[0, 0, 2, 1]])
    data = SimpleNamespace(eval_labels=labels, classes=3, minority=2)
    scores = evaluate(p.log() + 5, data)  # a constant does not change probabilities
    assert {name: value.item() for name, value in scores.items()} == pytest.approx({
        "accuracy_0": 0.5, "accuracy_1": 1.0, "accuracy_2": 1.0,
        "accuracy_overall": 0.75, "accuracy_balanced": 2.5 / 3,
        "calibration_error": (0.3 + 0.8 + 0.4 + 0.6) / 4,
        "nll": -np.log([0.7, 0.1, 0.6, 0.4]).mean(),
    }, abs=1e-6)  # fmt: skip
