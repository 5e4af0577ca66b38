"""The paper's network, the places where weights enter it, and what inference uses there."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from study.figures.style import INK, METHOD_COLORS, panels

# From left to right: what stands in a box, and how wide it is in hundredths of the figure.
STEPS = {
    "image": ("image\n784", 11),
    "hidden": ("linear\n200", 11),
    "hidden BN": ("hidden\nBN", 13),
    "relu": ("ReLU", 10),
    "output": ("linear\n2", 11),
    "output BN": ("output\nBN", 13),
    "loss": ("loss", 10),
}
PLACES = {"hidden BN": "1", "output BN": "2", "loss": "3", "inference": "4"}
INFERENCE = """\
averages over the mini-batches (the paper's text),
pooled over the training set, or
those of the test set (not the paper's text)"""
ARROW = {"arrowstyle": "-|>", "linewidth": 1.5, "shrinkA": 0, "shrinkB": 0}
CHAIN, LOW, HIGH = 0.0, -1.0, 1.0  # heights of the boxes' middle, bottom and top


def places_of_weights(notes: Mapping[str, str] | None = None) -> Figure:
    """784-200-2: the weights enter the loss, and with WBN both normalizations as well.

    The picture numbers the places that a later argument can suspect: 1 the hidden
    normalization, 2 the output's, 3 the loss, 4 the statistics of inference.

    Parameters
    ----------
    notes
        For places of `PLACES`, a line or two to stand below the picture beside its number;
        without notes it says what inference uses.

    Examples
    --------
    >>> figure = places_of_weights({"output BN": "a learned shift drifts"})
    >>> [text.get_text() for text in figure.axes[0].texts][-1]
    'a learned shift drifts'
    """
    unknown = set(notes or ()) - set(PLACES)
    if unknown:
        raise ValueError(
            f"no place {', '.join(map(repr, sorted(unknown)))} in the network: notes can stand at "
            f"{', '.join(PLACES)}"
        )
    lines = sum(note.count("\n") + 1 for note in (notes or {}).values())
    figure, (axis,) = panels(2.5 + 0.22 * lines)
    axis.set(xlim=(-0.5, 100.5), ylim=(-8.7 - 1.3 * lines, 6.6))
    axis.axis("off")
    middles = _chain(axis)
    _weights(axis, middles)
    _inference(axis, middles)
    height = -9.0
    for place, note in (notes or {}).items():
        _number(axis, 2, height, PLACES[place])
        axis.text(5, height, note, va="center_baseline", size="small")
        height -= 1.3 * (note.count("\n") + 1)
    return figure


def _chain(axis: Axes) -> dict[str, float]:
    """Draw the steps; return the middle of each."""
    gap = (100 - sum(width for _, width in STEPS.values())) / (len(STEPS) - 1)
    left, middles = 0.0, {}
    for name, (label, width) in STEPS.items():
        normalizes = name.endswith("BN")
        middles[name] = left + width / 2
        axis.text(
            middles[name], CHAIN, label, ha="center", va="center", size="small", linespacing=1.1,
            weight="bold" if normalizes else "normal",
        )  # fmt: skip
        box = ([left, left + width, left + width, left, left], [HIGH, HIGH, LOW, LOW, HIGH])
        axis.plot(*box, color=INK, linewidth=2 if normalizes else 1)
        if name != "loss":
            end, start = (left + width + gap, CHAIN), (left + width, CHAIN)
            axis.annotate("", end, start, arrowprops=ARROW | {"color": INK})
        left += width + gap
    return middles


def _weights(axis: Axes, middles: dict[str, float]) -> None:
    """Arrows of weights into the loss, of both weighted methods, and into BN, of WBN."""
    both, one = METHOD_COLORS["wlf_sbn"], METHOD_COLORS["wlf_wbn"]
    for place, color, aside in (
        ("hidden BN", one, 0), ("output BN", one, 0), ("loss", both, -1.5), ("loss", one, 1.5)
    ):  # fmt: skip
        x = middles[place] + aside
        axis.annotate("", (x, HIGH + 0.1), (x, 3.4), arrowprops=ARROW | {"color": color})
    for place in ("hidden BN", "output BN", "loss"):
        _number(axis, middles[place], 4.3, PLACES[place])
    between = (middles["hidden BN"] + middles["output BN"]) / 2
    small = {"size": "small", "va": "center"}
    axis.text(0, 5.9, "weights enter here in training", weight="bold", **small)
    axis.text(between, 2.5, "with Weighted + WBN only", color=one, ha="center", **small)
    axis.text(100, 5.9, "both weighted methods", ha="right", **small)


def _inference(axis: Axes, middles: dict[str, float]) -> None:
    """Below both normalizations: the moments of training, and those of inference."""
    for name in ("hidden BN", "output BN"):
        dashed = ARROW | {"color": INK, "linestyle": "--"}
        axis.annotate("", (middles[name], LOW - 0.1), (middles[name], -3.2), arrowprops=dashed)
    between = (middles["hidden BN"] + middles["output BN"]) / 2
    axis.text(between, -2.3, "mean and variance", ha="center", va="center", size="small")
    for y, when, which in (
        (-4.1, "in training", "of the mini-batch"),
        (-5.2, "at inference", INFERENCE),
    ):
        axis.text(24, y, when, weight="bold", size="small", ha="right", va="top")
        axis.text(26, y, which, size="small", va="top", linespacing=1.15)
    _number(axis, 2, -5.65, PLACES["inference"])


def _number(axis: Axes, x: float, y: float, number: str) -> None:
    axis.text(
        x, y, number, ha="center", va="center_baseline", size="small", weight="bold",
        bbox={"boxstyle": "circle,pad=0.2", "facecolor": "none", "edgecolor": INK},
    )  # fmt: skip
