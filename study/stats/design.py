"""Fractional designs over choices of a protocol, and the effects that they tell apart."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy import special

from study.engine.protocol import Protocol
from study.stats.intervals import LEVEL

ALONE = 1e-9  # 1 - leverage below which a point counts as fitted exactly: rounding leaves 1e-15

Levels = Mapping[str, Sequence]
Pairs = Sequence[tuple[str, str]]


def model_matrix(points: pd.DataFrame, levels: Levels, pairs: Pairs) -> np.ndarray:
    r"""Columns of :math:`y = \mu + \sum_f \alpha_f + \sum_{(f, g)} \alpha_{fg}` for each point.

    Factors are coded to sum to zero over their levels: :math:`\mu` is the mean over all
    levels, and what a factor does is averaged over the levels of the others.

    Parameters
    ----------
    points
        A row for each point of the design, a column for each factor.
    levels
        The levels of each factor.
    pairs
        Factors whose interaction is in the model.

    Returns
    -------
    numpy.ndarray
        One row for each point; first the constant, then factors, then pairs.

    Examples
    --------
    >>> points = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2]})
    >>> model_matrix(points, {"a": [1, 2], "b": [1, 2]}, [("a", "b")]).astype(int).tolist()
    [[1, 1, 1, 1], [1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]
    """
    coded = {}
    for name, values in levels.items():
        codes = np.vstack([np.eye(len(values) - 1), -np.ones(len(values) - 1)])
        coded[name] = codes[[list(values).index(value) for value in points[name]]]
    products = [
        (coded[f][:, :, None] * coded[g][:, None, :]).reshape(len(points), -1) for f, g in pairs
    ]
    return np.hstack([np.ones((len(points), 1)), *coded.values(), *products])


def d_optimal(levels: Levels, pairs: Pairs, n: int, seed: int, starts: int = 40) -> pd.DataFrame:
    r"""Choose `n` points with a large :math:`\det X^\top X` of their model matrix X.

    From random starts, one coordinate of one point after the other is set to its best level
    until none improves (coordinate exchange); the best start is returned. No result is looked
    at.

    Examples
    --------
    >>> levels = {"a": [0, 1], "b": [0, 1], "c": [0, 1]}
    >>> x = model_matrix(d_optimal(levels, [], n=4, seed=0), levels, [])
    >>> (x.T @ x).astype(int).tolist()
    [[4, 0, 0, 0], [0, 4, 0, 0], [0, 0, 4, 0], [0, 0, 0, 4]]
    """
    full = pd.DataFrame(list(itertools.product(*levels.values())), columns=list(levels))
    rows = model_matrix(full, levels, pairs)
    shape = [len(values) for values in levels.values()]
    random = np.random.default_rng(seed)
    designs = [
        _exchange(rows, random.integers(shape, size=(n, len(shape))), shape) for _ in range(starts)
    ]
    best = max(designs, key=lambda chosen: _log_det(rows[chosen]))
    return full.iloc[np.sort(best)].reset_index(drop=True)


def _exchange(rows: np.ndarray, points: np.ndarray, shape: list[int]) -> np.ndarray:
    """Row numbers of a design that no change of one coordinate improves."""
    place = np.array([np.prod(shape[f + 1 :], dtype=int) for f in range(len(shape))])
    score, before = _log_det(rows[points @ place]), -np.inf
    while score > before:
        before = score
        for point, factor in np.ndindex(points.shape):
            trials = np.repeat(points[None], shape[factor], axis=0)
            trials[:, point, factor] = range(shape[factor])
            scores = [_log_det(rows[trial @ place]) for trial in trials]
            if max(scores) > score:  # a tie leaves the level as it is
                points, score = trials[int(np.argmax(scores))], max(scores)
    return points @ place


def _log_det(x: np.ndarray) -> float:
    # The ridge lets designs be compared whose determinant is zero, as random starts often have;
    # rounding makes ties equal whatever the processor, so that the search ends alike everywhere.
    ridge = 1e-6 * np.eye(x.shape[1])
    return round(float(np.linalg.slogdet(x.T @ x + ridge)[1]), 8)


def responses(
    table: pd.DataFrame, protocols: Sequence[Protocol], metric: str
) -> dict[tuple[str, str], np.ndarray]:
    """The metric of each experiment and method, shape (points, seeds), for `level_means`.

    Parameters
    ----------
    table
        Rows of ``sweep`` at one epoch, with one kind of inference.
    protocols
        Those of the design, point by point, with the same experiments and methods at each.
    metric
        A column.
    """
    runs = table.pivot(index="protocol", columns="seed", values=metric)
    hashes: dict[tuple[str, str], list[str]] = {}
    for protocol in protocols:
        hashes.setdefault((protocol.experiment, protocol.method), []).append(protocol.hash)
    return {cell: runs.loc[names].to_numpy() for cell, names in hashes.items()}


class Misfit(NamedTuple):
    """What a fitted model misses: residual degrees of freedom, standard deviation, and the error
    at a point that is left out."""

    freedom: int
    sd: float
    left_out: float


def misfit(points: pd.DataFrame, response: np.ndarray, levels: Levels, pairs: Pairs) -> Misfit:
    r"""How far the model is from the mean responses :math:`\bar y_i` of n points over seeds.

    .. math:: \hat\sigma^2 = \frac{1}{n - p} \sum_i e_i^2, \qquad
        \mathrm{PRESS} = \frac{1}{n} \sum_i \Big( \frac{e_i}{1 - h_i} \Big)^2,
        \qquad e = (I - H) \bar y, \quad H = X (X^\top X)^{-1} X^\top,

    with p the columns of X and :math:`h_i` the diagonal of H, the leverages. The second is the
    mean squared error at a point that the fit has not seen, without fitting n times. If a point
    has leverage 1, some term cannot be estimated without it: PRESS is then not defined, and NaN.

    Parameters
    ----------
    points, response, levels, pairs
        As in `level_means`.

    Returns
    -------
    Misfit
        :math:`n - p`, :math:`\hat\sigma` and the root of PRESS, NaN where that is not defined.

    Examples
    --------
    >>> points = pd.DataFrame({"a": [1, 1, 2, 2]})
    >>> misfit(points, np.array([[0.0], [2.0], [5.0], [5.0]]), {"a": [1, 2]}, [])
    Misfit(freedom=2, sd=1.0, left_out=1.4142135623730951)
    """
    x = model_matrix(points, levels, pairs)
    n, terms = x.shape
    if n <= terms or np.linalg.matrix_rank(x) < terms:
        raise ValueError(
            f"{n} points cannot tell the {terms} terms of the model and its error apart"
        )
    hat = x @ np.linalg.pinv(x)
    means = response.mean(axis=1)
    missed = means - hat @ means
    sd = np.sqrt((missed**2).sum() / (n - terms))
    free = 1 - np.diag(hat)
    left_out = np.sqrt(((missed / free) ** 2).mean()) if free.min() > ALONE else np.nan
    return Misfit(n - terms, float(sd), float(left_out))


def model_arm(counts: np.ndarray, error: Misfit) -> np.ndarray:
    r"""Half a 95 % interval for the model's error, :math:`t_{n-p} \hat\sigma \lVert a \rVert`.

    What is fitted is a sum :math:`\sum_i a_i \bar y_i` over points. If each of them is off the
    model by an independent :math:`\delta_i` of variance :math:`\sigma^2`, the sum is off by
    :math:`\sum_i a_i \delta_i`, with a standard deviation of :math:`\sigma \lVert a \rVert`.

    Parameters
    ----------
    counts
        How much each point counts, :math:`a_i`, along the last axis.
    error
        Of `misfit`.
    """
    quantile = special.stdtrit(error.freedom, (1 + LEVEL) / 2)
    return quantile * error.sd * np.linalg.norm(counts, axis=-1)


def _combinations(
    points: pd.DataFrame, levels: Levels, pairs: Pairs, factors: Sequence[str]
) -> pd.DataFrame:
    """How much each point counts in the fit at each combination of some factors, row by row."""
    full = pd.DataFrame(list(itertools.product(*levels.values())), columns=list(levels))
    counts = model_matrix(full, levels, pairs) @ np.linalg.pinv(model_matrix(points, levels, pairs))
    return pd.DataFrame(counts).groupby([full[f] for f in factors], sort=False).mean()


def level_means(
    points: pd.DataFrame,
    response: np.ndarray,
    levels: Levels,
    pairs: Pairs,
    factors: Sequence[str],
) -> pd.DataFrame:
    """Fitted response at each combination of some factors, averaged over the levels of the others.

    Parameters
    ----------
    points, levels, pairs
        The design and its model.
    response
        Shape (points, seeds). The model is fitted by least squares for each seed on its own,
        so that seeds are the sample.
    factors
        Whose combinations to tell.

    Returns
    -------
    pandas.DataFrame
        A row for each combination of the factors and each seed, with the fitted `value` and,
        the same for all seeds, its `model_arm`.
    """
    error = misfit(points, response, levels, pairs)
    counts = _combinations(points, levels, pairs, factors)
    means = pd.DataFrame(counts.to_numpy() @ response, counts.index)
    means["model_arm"] = model_arm(counts.to_numpy(), error)
    return means.reset_index().melt([*factors, "model_arm"], var_name="seed")


def effects(
    points: pd.DataFrame, response: np.ndarray, levels: Levels, pairs: Pairs
) -> pd.DataFrame:
    """What each level changes against the first of its factor, averaged over the other factors.

    Takes what `level_means` takes, and returns a row for each factor, each of its levels but
    the first, and each seed, with the `change` and its `model_arm`.
    """
    error, tables = misfit(points, response, levels, pairs), []
    for factor in levels:
        counts = _combinations(points, levels, pairs, [factor])
        counts = counts.iloc[1:] - counts.iloc[0]
        changes = pd.DataFrame(counts.to_numpy() @ response, counts.index.rename("level"))
        changes["model_arm"] = model_arm(counts.to_numpy(), error)
        long = changes.reset_index().melt(
            ["level", "model_arm"], var_name="seed", value_name="change"
        )
        tables.append(long.assign(factor=factor))
    return pd.concat(tables, ignore_index=True)
