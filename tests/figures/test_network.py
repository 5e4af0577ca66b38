"""The drawing of the network: weights enter where the methods have them, and notes find room."""

import pytest

from study.engine.protocol import METHODS, Protocol
from study.figures.network import PLACES, STEPS, places_of_weights
from study.figures.style import METHOD_COLORS


def arrows(figure, color):
    """Horizontal places of the arrows of a color that point down."""
    notes = [t for t in figure.axes[0].texts if getattr(t, "arrow_patch", None)]
    down = [n for n in notes if n.arrowprops["color"] == color and n.xyann[1] > n.xy[1]]
    return [n.xy[0] for n in down]


def middle(figure, label):
    return next(t.get_position()[0] for t in figure.axes[0].texts if t.get_text() == label)


@pytest.mark.parametrize("method", METHODS)
def test_weights_enter_where_the_protocol_has_them(method):
    figure, protocol = places_of_weights(), Protocol.paper("i", method).resolved()
    has_weights = {
        "hidden BN": protocol.hidden_norm == "weighted",
        "output BN": protocol.output_norm == "weighted",
        "loss": protocol.weighting != "uniform",
    }
    entered = arrows(figure, METHOD_COLORS[method])
    for place, expected in has_weights.items():
        x = middle(figure, STEPS[place][0])
        assert any(abs(x - at) < 5 for at in entered) == expected
    assert len(entered) == sum(has_weights.values())


def test_sizes_are_the_protocols():
    hidden = Protocol.paper("i", "lf_sbn").hidden
    assert STEPS["hidden"][0].split("\n")[1] == str(hidden)


def test_every_place_has_its_number_once_and_again_beside_its_note():
    def numbers(figure):
        return sorted(t.get_text() for t in figure.axes[0].texts if t.get_text().isdigit())

    assert numbers(places_of_weights()) == sorted(PLACES.values())
    noted = places_of_weights({"loss": "which batches have a say"})
    assert numbers(noted) == sorted([*PLACES.values(), PLACES["loss"]])


def test_nothing_is_cut_or_covered():
    figure = places_of_weights(
        {place: f"what is suspected of the {place}\nand why" for place in PLACES}
    )
    figure.canvas.draw()
    texts = [t for t in figure.axes[0].texts if t.get_text()]
    boxes, page = [t.get_window_extent() for t in texts], figure.bbox.padded(2)
    circles = [t.get_bbox_patch().get_window_extent() for t in texts if t.get_bbox_patch()]
    assert all(page.padded(-2).contains(*circle.min) for circle in circles)
    assert all(page.padded(-2).contains(*circle.max) for circle in circles)
    assert all(line.get_window_extent().x1 < figure.bbox.x1 for line in figure.axes[0].lines)
    corners = [(box.x0, box.y0, box.x1, box.y1) for box in boxes]
    assert all(page.contains(*box[:2]) and page.contains(*box[2:]) for box in corners)
    for n, first in enumerate(boxes):
        for text, second in zip(texts[n + 1 :], boxes[n + 1 :], strict=True):
            assert not first.padded(-2).overlaps(second.padded(-2)), (
                texts[n].get_text(), text.get_text()
            )  # fmt: skip


def test_a_place_that_does_not_exist_is_named():
    with pytest.raises(ValueError, match="no place 'input' in the network: notes can stand at"):
        places_of_weights({"input": "noise"})
