"""What the figures show is what they are given."""

import numpy as np
import pytest
import torch
from matplotlib.colors import same_color, to_hex

from study.figures.batches import (
    digit_sheets,
    mini_batch,
    places_of_batches,
    share_of_images,
    spread_of_means,
    tile,
    variance_ratios,
    weight_in_loss,
)
from study.figures.style import MAJORITY, MINORITY, WIDTH
from wbn import weighted_moments


def test_tile_keeps_every_image_in_reading_order():
    images = torch.arange(1, 6, dtype=torch.uint8)[:, None, None].expand(5, 28, 28)
    sheet = tile(images, columns=3)
    assert sheet.shape == (56, 84)
    corners = sheet[::28, ::28]
    assert corners.tolist() == [[1, 2, 3], [4, 5, 0]]


def test_mini_batch_marks_both_means_and_draws_area_as_weight():
    x = torch.tensor([0.0, 1.0, 2.0, 7.0])
    w, minority = torch.tensor([1.0, 1.0, 1.0, 50.0]), torch.tensor([False, False, False, True])
    (axis,) = mini_batch(x, w, minority).axes
    drawn = [line.get_xdata()[0] for line in axis.lines]
    expected = [weighted_moments(x[:, None], v)[0].item() for v in (torch.ones(4), w)]
    assert drawn == pytest.approx(expected)
    discs, diamonds = (points.get_sizes() for points in axis.collections)
    assert diamonds[0] / (np.pi / 4 * discs[0]) == pytest.approx(50.0)


def test_weight_in_loss_stacks_what_the_classes_weigh():
    figure = weight_in_loss(
        np.array([4.0, 3.0]), np.array([0.0, 6.0]), {"batch": np.array([4, 9]), "2": np.full(2, 2)}
    )
    for axis, z in zip(figure.axes, ([4, 9], [2, 2]), strict=True):
        bars = {
            to_hex(color).upper(): [
                bar.get_height() for bar in axis.patches if same_color(bar.get_facecolor(), color)
            ]
            for color in (MAJORITY, MINORITY)
        }
        assert bars[MAJORITY] == pytest.approx([4 / z[0], 3 / z[1]])
        assert bars[MINORITY] == pytest.approx([0, 6 / z[1]])
        assert max(bar.get_y() + bar.get_height() for bar in axis.patches) == pytest.approx(
            max(4 / z[0], 9 / z[1])
        )


def test_variance_ratios_draw_one_size_filled_and_the_other_as_a_line():
    figure = variance_ratios({100: np.full(10, 1.0), 4: np.full(20, 0.1)})
    (axis,) = figure.axes
    (filled,), (line,) = axis.collections, axis.lines
    tops = filled.get_paths()[0].vertices
    assert tops[:, 1].max() == 10
    assert tops[tops[:, 1] == 10, 0] == pytest.approx([1, 1], rel=0.13)
    assert line.get_ydata().max() == 20
    assert axis.get_xscale() == "log"
    assert [text.get_text() for text in figure.legends[0].texts] == ["100 images", "4 images"]


def test_spread_of_means_draws_every_batch_by_its_minority_samples():
    bn, wbn, ones = torch.zeros(6), torch.arange(6.0), torch.tensor([0, 0, 0, 1, 1, 4])
    figure = spread_of_means(bn, wbn, ones)
    assert [axis.get_title("left") for axis in figure.axes] == ["BN's mean", "WBN's mean"]
    above, below = figure.axes
    assert max(p.vertices[:, 1].max() for c in above.collections for p in c.get_paths()) == 6
    assert max(p.vertices[:, 1].max() for c in below.collections for p in c.get_paths()) == 1
    names = [text.get_text() for text in figure.legends[0].texts]
    assert names == ["no minority sample", "one", "two or more"]


def test_places_of_batches_stand_at_their_number_of_minority_samples():
    place, ones = torch.tensor([0.0, 0.1, 0.9]), torch.tensor([0, 0, 5])
    (axis,) = places_of_batches(place, ones, {"average": 0.3, "pooled": 0.5}).axes
    dots = sorted(dot.tolist() for c in axis.collections for dot in c.get_offsets())
    assert sorted(y for _, y in dots) == pytest.approx([0, 0.1, 0.9])
    assert dots[2] == [pytest.approx(5, abs=1.6), pytest.approx(0.9)]
    assert [line.get_ydata()[0] for line in axis.lines] == [0.3, 0.5]


def test_batches_have_the_same_colors_in_both_figures_of_their_means():
    ones = torch.tensor([0, 1, 2, 3])
    (axis,) = places_of_batches(torch.rand(4), ones, {"average": 0.3, "pooled": 0.5}).axes
    drawn = [to_hex(color) for c in axis.collections for color in c.get_facecolors()]
    legend = spread_of_means(torch.rand(4), torch.rand(4), ones).legends[0]
    none, one, more = (to_hex(patch.get_facecolor()) for patch in legend.get_patches())
    assert drawn == [none, one, more, more]


@pytest.mark.parametrize("counts", [{"(i)": [45, 5923], "(iii)": [39, 6265]}, {"small": [3, 50]}])
def test_share_of_images_draws_a_square_for_each_image_within_the_figure(counts):
    (axis,) = share_of_images(counts).axes
    drawn = {MAJORITY: 0, MINORITY: 0}
    for line in axis.lines:
        dash, gap = line._unscaled_dash_pattern[1]
        side = line.get_linewidth()
        left, right = line.get_xdata()
        assert dash == 1
        assert 0 <= left < right <= 72 * WIDTH
        drawn[line.get_color()] += round((right - left - side) / (side * (1 + gap))) + 1
    assert [drawn[MINORITY], drawn[MAJORITY]] == np.sum(list(counts.values()), 0).tolist()
    assert axis.bbox.width == pytest.approx(WIDTH * axis.figure.dpi)  # a unit is a point


def test_digit_sheets_have_their_titles():
    images = torch.zeros(4, 28, 28, dtype=torch.uint8)
    figure = digit_sheets({"one": images, "two": images})
    assert [axis.get_title(loc="left") or axis.get_title() for axis in figure.axes] == [
        "one",
        "two",
    ]
