"""What the figures of the long-tailed comparison show is what they are given."""

import pandas as pd
import pytest

from study.chapters.long_tail.comparisons import VARIANTS
from study.chapters.long_tail.figures import (
    KIND_LOOKS,
    LOOKS,
    by_class_size,
    gains_by_ratio,
    gaps_by_ratio,
)
from study.figures.style import MAJORITY, MINORITY

pytestmark = pytest.mark.usefixtures("house_style")


def test_every_variant_has_a_look_and_no_two_look_alike():
    assert list(LOOKS) == list(VARIANTS)
    for looks in (LOOKS.values(), KIND_LOOKS.values()):
        assert len(set(looks)) == len(looks)
        assert len({marker for _, marker, _ in looks}) == len(looks)


def test_gains_and_intervals_stand_at_their_ratio_in_points(points):
    rows = pd.DataFrame(
        {"experiment": e, "method": variant, "mean": m, "low": m - 0.02, "high": m + 0.01}
        for e, m in [("lt200", 0.5), ("lt10", 0.9)]
        for variant in ("CB-weighted + WBN", "Plain + BN")
    )
    figure = gains_by_ratio(rows, "CB-weighted + BN")
    (axis,) = figure.axes
    first, second = points(axis)
    assert list(first.get_ydata()) == list(second.get_ydata()) == pytest.approx([90, 50])
    assert all(
        a < r < b for a, r, b in zip(first.get_xdata(), (10, 200), second.get_xdata(), strict=True)
    )
    bar = axis.lines[1]
    assert list(bar.get_ydata()) == pytest.approx([88, 91])
    assert axis.lines[-1].get_ydata() == [0, 0]
    assert axis.get_ylabel() == "ahead of CB-weighted + BN (points)"
    assert [text.get_text() for text in figure.legends[0].texts] == [
        "Plain + BN",
        "CB-weighted + WBN",
    ]


def test_variants_of_one_ratio_stand_side_by_side(points):
    rows = pd.DataFrame(
        {"experiment": e, "method": variant, "mean": 0.5, "low": 0.4, "high": 0.6}
        for variant in VARIANTS
        for e in ("lt50", "lt100")
    )
    places = [line.get_xdata()[0] for line in points(gains_by_ratio(rows, "Plain + BN").axes[0])]
    assert len(set(places)) == len(VARIANTS)
    assert all(40 < place < 60 for place in places)


def test_colors_of_the_classes_are_for_the_classes():
    colors = {look[0] for looks in (LOOKS, KIND_LOOKS) for look in looks.values()}
    assert not colors & {MAJORITY, MINORITY}


def test_gaps_stand_in_the_panel_of_their_weights_and_output(points):
    rows = pd.DataFrame(
        {"experiment": e, "weights": w, "output": o, "inference": i}
        | {"mean": m, "low": m - 0.02, "high": m + 0.01}
        for e in ("lt10", "lt200")
        for w, base in (("CB-weighted", 0.0), ("IF-weighted", 0.1))
        for o, more in (("with output BN", base), ("without output BN", base + 0.4))
        for i, m in (("pooled", more - 0.2), ("batch_average", more))
    )
    figure = gaps_by_ratio(rows)
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles == ["with output BN", "without output BN", "", ""]
    first_line = [axis.get_ylabel().splitlines()[:1] for axis in figure.axes]
    assert first_line == [["CB-weighted:"], [], ["IF-weighted:"], []]
    legend = [text.get_text() for text in figure.legends[0].texts]
    assert legend == ["averages over mini-batches", "pooled statistics"]
    for axis, first in zip(figure.axes, (0, 40, 10, 50), strict=True):
        averages, pooled = (list(line.get_ydata()) for line in points(axis))
        assert (averages, pooled) == (pytest.approx([first] * 2), pytest.approx([first - 20] * 2))


def test_classes_stand_in_order_with_their_sizes():
    def rows(variant, first):
        return pd.DataFrame(
            {"method": variant, **{f"accuracy_{k}": first - 0.1 * k + spread for k in (2, 0, 1)}}
            for spread in (-0.05, 0.05)
        )

    panels = {
        "one": pd.concat([rows("Sampler + BN", 0.8), rows("Plain + BN", 0.9)]),
        "two": rows("Plain + BN", 0.7),
    }
    figure = by_class_size(panels, [500, 50, 5])
    first, second = figure.axes
    drawn = [list(line.get_ydata()) for line in first.lines[:2]]
    assert drawn == [pytest.approx([90, 80, 70]), pytest.approx([80, 70, 60])]
    assert second.lines[0].get_ydata() == pytest.approx([70, 60, 50])
    assert [text.get_text() for text in figure.legends[0].texts] == ["Plain + BN", "Sampler + BN"]
    assert [tick.get_text() for tick in second.get_xticklabels()] == ["0\n500", "1\n50", "2\n5"]
