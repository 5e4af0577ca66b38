"""The recurring picture of a mini-batch, with a slider over the weight of its minority."""

from __future__ import annotations

import torch
from IPython.display import HTML
from torch import Tensor

from study.figures.interactive.batch import KEY, axis, ends, means, number, places, points
from study.figures.interactive.frame import html_table, page, slider
from wbn.functional import weighted_moments
from wbn.weights import effective_sample_size

LARGEST_WEIGHT = 200


def minority_weight_slider(
    x: Tensor, minority: Tensor, weight: int, name: str = "minority-weight"
) -> HTML:
    r"""The recurring picture with a slider over the weight of the minority samples.

    The areas of the points, WBN's mean :math:`\sum_\mu w_\mu x_\mu / Z` (Eq. 11) and Kish's
    effective sample size :math:`Z^2 / \sum_\mu w_\mu^2` follow the slider; majority samples
    have the weight 1. Signals are rounded to three decimals.

    Parameters
    ----------
    x
        One signal of each sample, shape (N,).
    minority
        Whether each sample belongs to the minority class, shape (N,).
    weight
        Where the slider starts, from 1 to 200.
    name
        The figure's id, different for each figure of a page.

    Examples
    --------
    >>> import torch
    >>> x, minority = torch.tensor([0.0, 1.0, 2.0]), torch.tensor([False, False, True])
    >>> page = minority_weight_slider(x, minority, weight=8).data
    >>> "WBN's mean is <b class=\"mean\">1.70</b>" in page
    True
    """
    x = x.double().round(decimals=3)
    low, high = ends(x)
    control = slider(
        f"{name}-slider",
        "Weight of a minority sample (a majority sample weighs 1)",
        f'min="1" max="{LARGEST_WEIGHT}" value="{weight}" '
        f'aria-valuetext="{weight} times a majority sample"',
    )
    return page(
        name,
        {f"{name}-slider": control},
        picture=_picture(x, minority, weight, low, high),
        readout=_readout(x, minority, weight),
        table=_table(x, minority, sorted({1, 10, 50, 100, weight, LARGEST_WEIGHT})),
        caption="Each point has the area of its weight. The more a minority sample weighs, the "
        "nearer WBN's mean is to it, and the fewer samples the batch is worth.",
        needs="The slider needs",
        script="minority_weight.js",
        settings={"low": low, "high": high},
    )


def _statistics(x: Tensor, minority: Tensor, weight: int) -> tuple[float, float, float]:
    """BN's mean, WBN's mean and the effective sample size."""
    w = torch.where(minority, float(weight), 1.0).double()
    mean, _ = weighted_moments(x[:, None], w, "none")
    return x.mean().item(), mean.item(), effective_sample_size(w).item()


def _readout(x: Tensor, minority: Tensor, weight: int) -> str:
    bn, wbn, size = _statistics(x, minority, weight)
    return (
        f"With a weight of <b class=\"weight\">{weight}</b>, BN's mean is {number(bn)} and WBN's "
        f'mean is <b class="mean">{number(wbn)}</b>; the effective sample size is '
        f'<b class="size">{size:.2f}</b> of {len(x)}.'
    )


def _table(x: Tensor, minority: Tensor, weights: list[int]) -> str:
    titles = ["weight", "BN's mean", "WBN's mean", "effective sample size"]
    rows = [[str(weight), *map(number, _statistics(x, minority, weight))] for weight in weights]
    return html_table("The same batch with other weights of a minority sample.", titles, rows)


def _picture(x: Tensor, minority: Tensor, weight: int, low: float, high: float) -> str:
    bn, wbn, _ = _statistics(x, minority, weight)
    place = places(low, high)
    summary = (
        f"A mini-batch of {len(x)} signals as points, {int(minority.sum())} of them from the "
        "minority class. BN's mean is a dashed line among the majority; WBN's mean, a solid line, "
        "lies nearer to the minority the more it weighs."
    )
    return "\n".join(
        [
            f'<svg role="img" aria-label="{summary}" style="height: 15rem">',
            KEY,
            points(x, minority, weight, low, high),
            means(place(bn), place(wbn)),
            axis(low, high),
            "</svg>",
        ]
    )
