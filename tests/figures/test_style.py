"""Colors are readable on light and dark pages; drawings repeat to the byte."""

import io
import re
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import seaborn as sns

from study.figures import style

CSS = Path(__file__).parents[2] / "book" / "_static" / "wbn.css"
LIGHT, DARK = "#FFFFFF", "#14181E"
# The matrix of CSS's hue-rotate(180deg), from the specification of filter effects.
HUE_ROTATE_180 = [[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]]


def rgb(color):
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def contrast(first, second):
    """Ratio of WCAG 2.2, from relative luminance."""
    linear = [
        np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) for c in (first, second)
    ]
    low, high = sorted(c @ [0.2126, 0.7152, 0.0722] for c in linear)
    return (high + 0.05) / (low + 0.05)


def in_the_dark(color):
    """What the book's style sheet makes of a color on a dark page."""
    return np.clip(HUE_ROTATE_180 @ (1 - rgb(color)), 0, 1)


MARKS = (style.MAJORITY, style.MINORITY, *style.METHOD_COLORS.values(), *style.ACCENTS)


@pytest.mark.parametrize("color", [style.INK, *MARKS])
def test_colors_are_readable_on_both_grounds(color):
    least = 4.5 if color == style.INK else 3
    assert contrast(rgb(color), rgb(LIGHT)) >= least
    assert contrast(in_the_dark(color), rgb(DARK)) >= least
    assert contrast(rgb(color), rgb(DARK)) >= 3  # where no style sheet helps


@pytest.mark.parametrize("color", [style.INK, *MARKS])
def test_files_for_the_dark_have_the_colors_of_the_style_sheet(color):
    assert rgb(style.in_the_dark(color)) == pytest.approx(in_the_dark(color), abs=0.51 / 255)


@pytest.mark.parametrize("color", [style.MAJORITY_IN_THE_DARK, style.MINORITY_IN_THE_DARK])
def test_colors_for_the_dark_are_readable_there(color):
    assert contrast(rgb(color), rgb(DARK)) >= 4.5


def test_the_minority_that_moves_has_the_color_of_the_drawn_one_in_the_dark():
    rule = re.search(r'\[data-theme="dark"\] .*\.moving \{ --minority: (.*?); \}', CSS.read_text())
    assert rule[1] == style.in_the_dark(style.MINORITY)


def test_the_style_sheet_turns_lightness_around_in_the_dark():
    rule = re.search(
        r'\[data-theme="dark"\] \.bd-content div\.cell_output img \{(.*?)\}', CSS.read_text(), re.S
    )
    assert "filter: invert(1) hue-rotate(180deg);" in rule[1]
    assert "background-color: transparent;" in rule[1]


def drawn(axis_points):
    figure, axis = plt.subplots(figsize=(style.WIDTH, 2))
    with style.steady_jitter():
        sns.stripplot(x=axis_points, ax=axis)
    file = io.BytesIO()
    figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def test_a_drawing_repeats_to_the_byte():
    assert drawn([1, 2, 3]) == drawn([1, 2, 3])


def test_jitter_leaves_the_global_generator_alone():
    np.random.seed(7)  # noqa: NPY002
    expected = np.random.uniform(size=3)  # noqa: NPY002
    np.random.seed(7)  # noqa: NPY002
    with style.steady_jitter():
        np.random.uniform(size=5)  # noqa: NPY002
    assert np.random.uniform(size=3).tolist() == expected.tolist()  # noqa: NPY002


def test_panels_come_in_reading_order():
    figure, axes = style.panels(2, rows=2, columns=3)
    assert axes == figure.axes
    assert len(axes) == 6
