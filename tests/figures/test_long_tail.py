"""What the figures of the long-tailed comparison show is what they are given."""

import pandas as pd
import pytest

from wbn.analysis.long_tail import ARMS
from wbn.figures.long_tail import (
    ARM_LOOKS,
    SETTING_LOOKS,
    by_class_size,
    gains_by_ratio,
    gaps_by_ratio,
)


def test_every_arm_has_a_look_and_no_two_look_alike():
    assert list(ARM_LOOKS) == list(ARMS)
    for looks in (ARM_LOOKS.values(), SETTING_LOOKS):
        assert len(set(looks)) == len(looks)
        assert len({marker for _, marker, _ in looks}) == len(looks)


def test_gains_and_intervals_stand_at_their_ratio_in_points(points):
    rows = pd.DataFrame(
        {"experiment": e, "method": arm, "mean": m, "low": m - 0.02, "high": m + 0.01}
        for e, m in [("lt200", 0.5), ("lt10", 0.9)]
        for arm in ("CB + WBN", "plain")
    )
    figure = gains_by_ratio(rows, "CB + sBN")
    (axis,) = figure.axes
    first, second = points(axis)
    assert list(first.get_ydata()) == list(second.get_ydata()) == pytest.approx([90, 50])
    assert all(
        a < r < b for a, r, b in zip(first.get_xdata(), (10, 200), second.get_xdata(), strict=True)
    )
    bar = axis.lines[1]
    assert list(bar.get_ydata()) == pytest.approx([88, 91])
    assert axis.lines[-1].get_ydata() == [0, 0]
    assert axis.get_ylabel() == "ahead of CB + sBN (points)"
    assert [text.get_text() for text in figure.legends[0].texts] == ["plain", "CB + WBN"]


def test_arms_of_one_ratio_stand_side_by_side(points):
    rows = pd.DataFrame(
        {"experiment": e, "method": arm, "mean": 0.5, "low": 0.4, "high": 0.6}
        for arm in ARMS
        for e in ("lt50", "lt100")
    )
    places = [line.get_xdata()[0] for line in points(gains_by_ratio(rows, "plain").axes[0])]
    assert len(set(places)) == len(ARMS)
    assert all(40 < place < 60 for place in places)


def test_gaps_stand_in_the_panel_of_their_weights(points):
    rows = pd.DataFrame(
        {"experiment": e, "weights": w, "setting": s, "mean": m, "low": m - 0.02, "high": m + 0.01}
        for e in ("lt10", "lt200")
        for w, base in (("CB", 0.0), ("IF", 0.1))
        for s, m in (("b", base), ("a", base - 0.2), *((s, base) for s in "cdef"))
    )
    figure = gaps_by_ratio(rows)
    assert [axis.get_title("left") for axis in figure.axes] == ["CB", "IF"]
    assert [text.get_text() for text in figure.legends[0].texts] == [*"bacdef"]
    for axis, first in zip(figure.axes, (0, 10), strict=True):
        drawn = [list(line.get_ydata()) for line in points(axis)]
        assert drawn[:2] == [pytest.approx([first] * 2), pytest.approx([first - 20] * 2)]
    with pytest.raises(ValueError, match="7 settings"):
        gaps_by_ratio(pd.concat([rows, rows[rows.setting == "a"].assign(setting="g")]))


def test_classes_stand_in_order_with_their_sizes():
    def rows(arm, first):
        return pd.DataFrame(
            {"method": arm, **{f"accuracy_{k}": first - 0.1 * k + spread for k in (2, 0, 1)}}
            for spread in (-0.05, 0.05)
        )

    panels = {
        "one": pd.concat([rows("sampler", 0.8), rows("plain", 0.9)]),
        "two": rows("plain", 0.7),
    }
    figure = by_class_size(panels, [500, 50, 5])
    first, second = figure.axes
    drawn = [list(line.get_ydata()) for line in first.lines[:2]]
    assert drawn == [pytest.approx([90, 80, 70]), pytest.approx([80, 70, 60])]
    assert second.lines[0].get_ydata() == pytest.approx([70, 60, 50])
    assert [text.get_text() for text in figure.legends[0].texts] == ["plain", "sampler"]
    assert [tick.get_text() for tick in second.get_xticklabels()] == ["0\n500", "1\n50", "2\n5"]
