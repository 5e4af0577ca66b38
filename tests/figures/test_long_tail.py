"""What the figures of the long-tailed comparison show is what they are given."""

import pandas as pd
import pytest

from wbn.analysis.long_tail import ARMS
from wbn.figures.long_tail import (
    arm_style,
    by_class_size,
    gains_by_ratio,
    gaps_by_ratio,
)

pytestmark = pytest.mark.usefixtures("no_figures_left")


def test_no_two_arms_look_alike():
    looks = [tuple(sorted(arm_style(arm).items())) for arm in ARMS]
    assert len(set(looks)) == len(ARMS)


def test_gains_and_intervals_stand_at_their_ratio_in_points_beside_the_baseline():
    rows = pd.DataFrame(
        {"experiment": e, "method": "CB + WBN", "mean": m, "low": m - 0.02, "high": m + 0.01}
        for e, m in [("lt200", 0.5), ("lt10", 0.9)]
    )
    axis = gains_by_ratio(rows, "CB + sBN").axes[0]
    assert axis.lines[0].get_ydata() == [0, 0]
    assert axis.lines[0].get_label() == "CB + sBN"
    (bars,) = axis.containers
    assert bars[0].get_xydata().tolist() == [[10, 90], [200, 50]]
    ends = [segment[:, 1].tolist() for segment in bars[2][0].get_segments()]
    assert ends == [pytest.approx([88, 91]), pytest.approx([48, 51])]


def test_arms_of_one_ratio_stand_side_by_side():
    rows = pd.DataFrame(
        {"experiment": "lt50", "method": arm, "mean": 0.5, "low": 0.4, "high": 0.6} for arm in ARMS
    )
    places = [bars[0].get_xdata()[0] for bars in gains_by_ratio(rows, "plain").axes[0].containers]
    assert len(set(places)) == len(ARMS)
    assert all(45 < place < 55 for place in places)


def test_gaps_stand_in_the_panel_of_their_weights_and_settings_look_different():
    rows = pd.DataFrame(
        {"experiment": e, "weights": w, "setting": s, "mean": m, "low": m - 0.02, "high": m + 0.01}
        for e in ("lt10", "lt200")
        for w, base in (("CB", 0.0), ("IF", 0.1))
        for s, m in (("b", base), ("a", base - 0.2), ("c", base), ("d", base), ("e", base))
    )
    figure = gaps_by_ratio(rows)
    left, right = figure.axes
    assert (left.get_title(), right.get_title()) == ("CB", "IF")
    for axis, first in ((left, 0), (right, 10)):
        drawn = {bars.get_label(): bars[0].get_ydata().tolist() for bars in axis.containers}
        assert list(drawn) == ["b", "a", "c", "d", "e"]
        assert drawn["b"] == pytest.approx([first, first])
        assert drawn["a"] == pytest.approx([first - 20, first - 20])
    looks = {
        (bars[0].get_color(), bars[0].get_marker(), bars[0].get_linestyle())
        for bars in left.containers
    }
    assert len(looks) == 5
    with pytest.raises(ValueError, match="6 settings"):
        gaps_by_ratio(pd.concat([rows, rows[rows.setting == "a"].assign(setting="f")]))


def test_classes_stand_in_order_with_their_sizes():
    def rows(arm, first):
        # Not in the order of the classes: the figure puts them in order.
        return pd.DataFrame(
            {"method": arm, "metric": f"accuracy_{k}", "mean": first - 0.1 * k} for k in (2, 0, 1)
        )

    panels = {
        "one": pd.concat([rows("plain", 0.9), rows("sampler", 0.8)]),
        "two": rows("plain", 0.7),
    }
    figure = by_class_size(panels, [500, 50, 5])
    first, second = figure.axes
    drawn = {line.get_label(): line.get_ydata().tolist() for line in first.lines}
    assert drawn == {
        "plain": pytest.approx([90, 80, 70]),
        "sampler": pytest.approx([80, 70, 60]),
    }
    assert second.lines[0].get_ydata() == pytest.approx([70, 60, 50])
    assert [tick.get_text() for tick in second.get_xticklabels()] == ["0\n500", "1\n50", "2\n5"]
