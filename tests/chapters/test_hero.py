"""The picture of the result: what it shows, and that the committed files show it."""

import re
from pathlib import Path

import pytest

from study.chapters.report.hero import FILES, PANELS, drawings, hero, hero_rows
from study.engine.protocol import METHODS
from study.figures.style import INK, METHOD_COLORS
from study.stats.table_2 import TABLE_2
from study.stores.plan import load_or_run

pytestmark = pytest.mark.usefixtures("house_style")

STATIC = Path(__file__).parents[2] / "book" / "_static"
EXPERIMENTS = ("i", "ii", "iii")


@pytest.fixture(scope="module")
def rows():
    return hero_rows()


@pytest.fixture(scope="module")
def drawn_now():
    return drawings()


def marks(axis, color):
    """Horizontal and vertical place of each mark of a color, and whether it is filled."""
    lines = [
        line for line in axis.lines if line.get_color() == color and len(line.get_xdata()) == 1
    ]
    return [
        (line.get_xdata()[0], line.get_ydata()[0], line.get_markerfacecolor() != "none")
        for line in lines
    ]


@pytest.mark.parametrize("method", METHODS)
def test_filled_marks_are_the_means_of_the_reference_reading(rows, method):
    for axis, inference in zip(hero(rows).axes, PANELS, strict=True):
        runs = load_or_run("evaluation", inference=inference, epoch=20, method=method)
        means = 100 * runs.groupby("experiment").accuracy_overall.mean()
        filled = [x for x, _, full in marks(axis, METHOD_COLORS[method]) if full]
        assert filled == pytest.approx([means[e] for e in EXPERIMENTS], abs=0.006)


def test_hollow_marks_are_the_data_set_s_normalizer_and_only_where_it_was_run(rows):
    left, right = hero(rows).axes
    for method in METHODS:
        hollow = [x for x, _, full in marks(left, METHOD_COLORS[method]) if not full]
        assert all(full for _, _, full in marks(right, METHOD_COLORS[method]))
        if method == "lf_sbn":  # without weights there is nothing to normalize
            assert hollow == []
            continue
        reading = {"loss_normalizer": "dataset", "batch_order": "reshuffle", "learning_rate": 1e-3}
        runs = load_or_run("family", epoch=20, method=method, **reading)
        means = 100 * runs.groupby("experiment").accuracy_overall.mean()
        assert hollow == pytest.approx([means[e] for e in EXPERIMENTS], abs=0.006)


def test_crosses_are_the_paper_s_on_the_lines_of_their_methods(rows):
    overall = TABLE_2[TABLE_2.metric == "accuracy_overall"]
    for axis in hero(rows).axes:
        crosses = marks(axis, INK)
        assert [x for x, _, _ in crosses] == overall.paper.astype(float).tolist()
        for method, color in METHOD_COLORS.items():
            heights = [y for _, y, full in marks(axis, color) if full]
            of_method = [c for c, m in zip(crosses, overall.method, strict=True) if m == method]
            assert heights == [y for _, y, _ in of_method]


def test_panels_and_legend_are_in_words(rows):
    figure = hero(rows)
    titles = [axis.get_title("left") for axis in figure.axes]
    assert titles == ["evaluated as the text says", "with the test set's statistics"]
    legend = [text.get_text() for text in figure.legends[0].texts]
    assert legend == [*METHODS.values(), "the paper"]


@pytest.mark.parametrize("ground", FILES)
def test_the_committed_file_is_what_is_drawn_now(drawn_now, ground):
    committed = (STATIC / FILES[ground]).read_text(encoding="utf-8")
    assert committed == drawn_now[ground], (
        "write it again: python -m study.chapters.report.hero book/_static"
    )


def test_both_files_differ_in_their_colors_only(drawn_now):
    light, dark = (re.split("#[0-9a-f]{6}", drawn_now[ground]) for ground in FILES)
    assert light == dark
    assert drawn_now["light"] != drawn_now["dark"]
