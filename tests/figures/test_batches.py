"""What the figures show is what they are given."""

import numpy as np
import pytest
import torch

from wbn import weighted_moments
from wbn.figures.batches import digit_sheets, mini_batch, share_of_images, tile

pytestmark = pytest.mark.usefixtures("no_figures_left")


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


def test_share_of_images_draws_a_square_for_each_image():
    figure = share_of_images({"(i)": [45, 5923], "(ii)": [45, 5851]})
    counts = [np.bincount(a.images[0].get_array().data.ravel())[:2].tolist() for a in figure.axes]
    assert counts == [[5923, 45], [5851, 45]]


def test_digit_sheets_have_their_titles():
    images = torch.zeros(4, 28, 28, dtype=torch.uint8)
    figure = digit_sheets({"one": images, "two": images})
    assert [axis.get_title(loc="left") or axis.get_title() for axis in figure.axes] == [
        "one",
        "two",
    ]
