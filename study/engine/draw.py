"""Random streams, and how many points of each class are drawn from them."""

from __future__ import annotations

import hashlib

import torch
from torch import Tensor


def stream(seed: int, purpose: str) -> torch.Generator:
    """A generator of its own for each seed and purpose.

    What one purpose draws never shifts what another draws, so that methods
    compared on one seed share the split, the initialization and the batch order.

    Examples
    --------
    >>> a, b = (torch.rand(1, generator=stream(0, p)) for p in ("split", "order"))
    >>> bool(a == b)
    False
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def imbalanced(labels: Tensor, counts: dict[int, int | None], seed: int) -> Tensor:
    """Row numbers of `counts[k]` randomly drawn points of each label `k`.

    The rows come class by class, in the order of `counts`, and in increasing
    order within a class. What is drawn of a class depends on the seed and on the
    class, not on the other classes.

    Parameters
    ----------
    labels
        Labels of the full data set, shape (N,).
    counts
        How many points to draw of each label; None takes all.
    seed
        Determines the draw.

    Examples
    --------
    >>> imbalanced(torch.tensor([7, 4, 7, 7]), {4: 1, 7: 3}, seed=0)
    tensor([1, 0, 2, 3])
    """
    chosen = []
    for label, count in counts.items():
        rows = (labels == label).nonzero().squeeze(1)
        if count is not None:
            if not 0 < count <= len(rows):
                raise ValueError(
                    f"cannot draw {count} points of class {label}: give between 1 and "
                    f"{len(rows)}, the number there are"
                )
            order = torch.randperm(len(rows), generator=stream(seed, f"split/{label}"))
            rows = rows[order[:count]].sort().values
        chosen.append(rows)
    return torch.cat(chosen)


def long_tail_counts(n_max: int, ratio: float, classes: int) -> list[int]:
    """``n_max * ratio ** (-k / (classes - 1))`` points for class ``k``, rounded.

    The exponential profile of Cui et al. (2019): the first class has `n_max`
    points, the last one `ratio` times fewer.

    Examples
    --------
    >>> long_tail_counts(5000, 100, 3)
    [5000, 500, 50]
    """
    if classes < 2 or ratio < 1 or n_max < ratio:
        raise ValueError(
            f"need classes >= 2, ratio >= 1 and n_max >= ratio, got classes={classes}, "
            f"ratio={ratio}, n_max={n_max}"
        )
    return [round(n_max * ratio ** (-k / (classes - 1))) for k in range(classes)]
