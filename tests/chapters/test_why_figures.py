"""What the figures of the cause show is what they are given."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgba

from study.chapters.why.figures import (
    drift_curves,
    either_weight,
    one_curve,
    position_histograms,
    remaining_gaps,
)
from study.engine import EXPERIMENTS
from study.figures.style import METHOD_COLORS
from study.stats.intervals import mean_interval

pytestmark = pytest.mark.usefixtures("house_style")


def test_the_curve_falls_through_the_settings():
    table = pd.DataFrame({
        "relative_threshold": [0.9, 0.1, 0.5], "accuracy_minority": [0.2, 0.9, 0.6],
        "method": ["wlf_wbn", "wlf_sbn", "wlf_wbn"],
    })  # fmt: skip
    one, two = one_curve({"ii": table, "iii": table.iloc[:2]}).axes
    assert [axis.get_title("left") for axis in (one, two)] == ["(ii)", "(iii)"]
    assert list(one.lines[-1].get_ydata()) == pytest.approx([90, 60, 20])
    dots = one.collections[0]
    assert sorted(dots.get_offsets()[:, 1].tolist()) == pytest.approx([20, 60, 90])
    looks = {tuple(color[:3]) for color in dots.get_facecolors()}
    assert looks == {to_rgba(METHOD_COLORS[m])[:3] for m in ("wlf_sbn", "wlf_wbn")}


def test_each_network_has_its_own_threshold():
    images = pd.DataFrame({"position": [0.0, 0.4, 1.0], "minority": [False, True, True]})
    networks = {title: images.assign(relative_threshold=t) for title, t in (("a", 0.1), ("b", 0.7))}
    axes = position_histograms(networks).axes
    assert [axis.get_title("left") for axis in axes] == ["a", "b"]
    assert [axis.lines[-1].get_xdata()[0] for axis in axes] == [0.1, 0.7]


def test_lines_are_the_model_and_dots_the_networks():
    keys = {"method": "wlf_wbn", "loss_normalizer": "batch"}
    model = pd.DataFrame({"seed": [1, 2] * 2, "epoch": [1, 1, 2, 2], "shift": [-1, -3, -2, -6.0]})
    measured = model[model.epoch == 2].assign(shift=[-1.0, -2.0])
    tables = [
        pd.concat(table.assign(experiment=e, **keys) for e in EXPERIMENTS)
        for table in (measured, model)
    ]
    axis = drift_curves(*tables).axes[0]
    assert axis.lines[0].get_ydata().tolist() == [-2, -4]
    np.testing.assert_allclose(axis.collections[-1].get_offsets(), [[2, -1.5]])


def test_gaps_stand_in_points_with_their_intervals():
    rows = pd.DataFrame(
        {"experiment": "iii", "inference": kind, "mean": m, "low": m - 0.1, "high": m + 0.2}
        for kind, m in (("batch_average", -0.5), ("pooled", -0.2))
    )
    (axis,) = remaining_gaps({"as it is": rows}, "points").axes
    drawn = [line.get_xdata() for line in axis.lines]
    assert any(np.allclose(x, -50) for x in drawn if len(x) == 1)
    assert any(np.allclose(x, [-60, -30]) for x in drawn if len(x) == 2)


def test_both_weights_are_drawn_as_shares_taken_for_the_minority(points):
    rows = pd.DataFrame({
        "inference": ["minority_weight"] * 2 + ["majority_weight"] * 2 + ["batch_average"],
        "accuracy_minority": [0.9, 1.0, 0.1, 0.3, 0.6],
        "accuracy_majority": [0.6, 0.8, 1.0, 0.9, 0.6],
    })  # fmt: skip
    left, right = either_weight({"reference": rows, "larger": rows}).axes
    for axis, expected in ((left, [95, 20]), (right, [30, 5])):
        for line, share in zip(points(axis), expected, strict=True):
            assert line.get_xdata() == pytest.approx([share, share])
            assert list(line.get_ydata()) == [0, 1]
        (between,) = axis.collections
        ends = [segment[:, 0].tolist() for segment in between.get_segments()]
        assert ends == [pytest.approx(sorted(expected))] * 2
    _, low, high, *_ = mean_interval([0.9, 1.0])
    assert left.lines[1].get_xdata() == pytest.approx([100 * low, 100 * high])
    assert [t.get_text() for t in left.get_yticklabels()] == ["reference", "larger"]
