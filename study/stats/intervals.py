"""What a table of runs says: means and paired differences, with 95 % intervals.

The functions take the tidy table that ``run`` and ``sweep`` return, and the name of a metric, a
column of fractions. The seeds are the sample: an interval is about the mean over seeds on the one
test set that all runs share, and says nothing of other test images.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import special

from study.engine.columns import SETTING

LEVEL = 0.95
ONE_IMAGE = 1e-3  # what one image of the test set is worth: MNIST has about 1000 of each class


class Estimate(NamedTuple):
    """A mean over seeds, its 95 % interval, the number of seeds and their standard deviation."""

    mean: float
    low: float
    high: float
    n: int
    sd: float


def mean_interval(values: ArrayLike, bounds: tuple[float, float] = (0.0, 1.0)) -> Estimate:
    r"""Mean :math:`m` of a bounded quantity with the longer arms of two Student intervals.

    .. math:: m \pm a \quad\text{and}\quad
        \operatorname{expit}\Big(\operatorname{logit} m \pm \frac{a}{m (1 - m)}\Big),
        \qquad a = t_{n-1} \frac{s}{\sqrt n},

    the second on the logit scale of the mean, for values in [0, 1] (others are mapped there
    from their bounds). The ends are cut at the bounds. Near 100 % runs are skewed, and a
    sample that happens to lack bad runs looks both too good and too certain; the second
    interval's longer arm makes up for much of it. Elsewhere the two nearly agree.

    Runs that all agree, say at 100 %, would give a width of zero. So s is at least what it
    would be if one image of the test set (1/1000) had gone otherwise in one of the runs,
    :math:`s^2 \ge 10^{-6} / n`, and on the logit scale m is at least that image away from the
    bounds. Ten runs at 100 % then give [99.90 %, 100 %].

    Parameters
    ----------
    values
        One value a seed. A single one has no interval: its ends are NaN.
    bounds
        What the values cannot exceed: (0, 1) for accuracies, (-1, 1) for their differences.

    Returns
    -------
    Estimate
        mean, low, high, n, sd.

    Notes
    -----
    Simulated coverage in percent, of this interval and, in parentheses, of Student's:

    ================================================ ============ ============ ============
    accuracy of a run                                n = 10       n = 20       n = 40
    ================================================ ============ ============ ============
    normal, mean 0.85, sd 0.05                       95.6 (94.6)  95.6 (94.8)  95.4 (95.0)
    beta(0.5, 0.5)                                   96.7 (94.2)  95.9 (94.4)  95.8 (95.1)
    binomial, 1000 images, 0.998                     97.3 (94.6)  96.4 (94.2)  96.0 (94.6)
    0.997, 0.998 or 0.999                            96.5 (94.2)  96.4 (96.1)  95.7 (95.3)
    1, in a fifth of the runs an image less          99.3 (88.8)  99.0 (92.5)  99.0 (91.9)
    1 - exponential, mean 0.97                       94.0 (89.8)  94.9 (91.7)  95.2 (93.3)
    beta(20, 0.5)                                    93.0 (86.4)  94.2 (89.9)  95.0 (92.0)
    1 - lognormal, log sd 1, mean 0.984              89.4 (84.1)  91.0 (87.2)  92.0 (89.3)
    1, in 30 % of the runs 1 - exponential(0.01)     89.6 (78.7)  94.1 (84.5)  95.4 (89.3)
    about 0.95, in 20 % of the runs about 0.6        88.7 (88.7)  94.5 (92.5)  95.9 (93.8)
    about 0.97, in 10 % of the runs about 0.75       62.9 (62.5)  82.6 (81.0)  91.3 (88.9)
    ================================================ ============ ============ ============

    The last lines are a limit of any method: a failure that no run of the sample shows is
    not in its interval, and one in ten runs is absent from 35 % of the samples of ten. In the
    same simulation BCa intervals covered less than Student's at n = 10 for most shapes, and
    bootstrap-t intervals about as much as these at up to four times the length.

    Examples
    --------
    >>> from study.stats.intervals import mean_interval
    >>> mean, low, high, n, sd = mean_interval([0.97, 0.99, 0.98, 1.0])
    >>> print(f"{mean:.3f} [{low:.3f}, {high:.3f}], n = {n}")
    0.985 [0.942, 1.000], n = 4
    >>> mean, low, high, n, sd = mean_interval([1.0] * 10)
    >>> print(f"{mean:.4f} [{low:.4f}, {high:.4f}], n = {n}")
    1.0000 [0.9990, 1.0000], n = 10
    """
    values, (lower, upper) = np.asarray(values, dtype=float), bounds
    if values.ndim != 1 or not values.size or not ((lower <= values) & (values <= upper)).all():
        raise ValueError(
            f"values must be one number a seed between {lower} and {upper} (fractions, not "
            f"percent; no NaN), got {values}"
        )
    n, span = len(values), upper - lower
    if n == 1:
        return Estimate(values[0], np.nan, np.nan, 1, np.nan)
    x, image = (values - lower) / span, ONE_IMAGE / span
    mean, sd = x.mean(), x.std(ddof=1)
    arm = special.stdtrit(n - 1, (1 + LEVEL) / 2) * max(sd, image / np.sqrt(n)) / np.sqrt(n)
    inner = np.clip(mean, image / n, 1 - image / n)
    center, logit_arm = special.logit(inner), arm / (inner * (1 - inner))
    low = max(min(mean - arm, special.expit(center - logit_arm)), 0)
    high = min(max(mean + arm, special.expit(center + logit_arm)), 1)
    return Estimate(values.mean(), lower + span * low, lower + span * high, n, span * sd)


def prediction_interval(values: ArrayLike, level: float = LEVEL) -> tuple[float, float]:
    r"""Range that holds one more run with a given probability, whatever the distribution.

    Between the k-th smallest and the k-th largest of n values lies one more with probability
    :math:`1 - 2k / (n + 1)`. The largest k that keeps the level is taken: with 40 seeds and 95 %
    k = 1, the range from the worst to the best run, at 95.1 %.

    Parameters
    ----------
    values
        One value a seed, 39 or more for 95 %.
    level
        The probability. Ten values reach 9/11, about 82 %.

    Examples
    --------
    >>> prediction_interval(range(40))
    (0.0, 39.0)
    >>> prediction_interval(range(10), level=9 / 11)
    (0.0, 9.0)
    """
    ordered = np.sort(np.asarray(values, dtype=float))
    k = int((1 - level) / 2 * (len(ordered) + 1) + 1e-9)
    if k < 1:
        needed = np.ceil(2 / (1 - level) - 1 - 1e-9)
        raise ValueError(
            f"{len(ordered)} values cannot bound {100 * level:.0f} % of runs: give {needed:.0f} "
            "or more"
        )
    return float(ordered[k - 1]), float(ordered[-k])


def intervals(
    table: pd.DataFrame,
    keys: Sequence[str],
    value: str,
    bounds: tuple[float, float] = (0.0, 1.0),
) -> pd.DataFrame:
    r"""Mean :math:`m = \frac{1}{n} \sum_s x_s` over seeds of a column, for each group of rows.

    Parameters
    ----------
    table
        One row a seed in each group, with a column ``seed``.
    keys
        Columns whose combinations are the groups; they come in their order of appearance.
    value, bounds
        A column, and what it cannot exceed, as in :func:`mean_interval`.

    Returns
    -------
    pandas.DataFrame
        A row for each group: the keys, then mean, low, high, n and sd.

    Examples
    --------
    >>> import pandas as pd
    >>> from study.stats.intervals import intervals
    >>> table = pd.DataFrame({"seed": [0, 1, 2], "accuracy_overall": [0.91, 0.93, 0.95]})
    >>> intervals(table.assign(method="wlf_wbn"), ["method"], "accuracy_overall").round(3)
        method  mean    low  high  n    sd
    0  wlf_wbn  0.93  0.861  0.98  3  0.02
    """
    keys = list(keys)
    repeated = table.duplicated([*keys, "seed"])
    if repeated.any():
        raise ValueError(
            f"several rows for {table.loc[repeated, [*keys, 'seed']].iloc[0].to_dict()}: name "
            "what tells them apart among the keys, or select one of them"
        )
    rows = [
        (*key, *mean_interval(runs[value], bounds))
        for key, runs in table.groupby(keys, sort=False, dropna=False)
    ]
    return pd.DataFrame(rows, columns=[*keys, *Estimate._fields])


def paired_difference(table: pd.DataFrame, method: str, baseline: str, metric: str) -> pd.DataFrame:
    r"""Mean :math:`\frac{1}{n} \sum_s (x_s^\mathrm{method} - x_s^\mathrm{baseline})` over seeds.

    Runs of one seed share split, initialization and batch order, so that their difference
    varies less than theirs do. The interval is that of :func:`mean_interval` in (-1, 1), where
    it hardly differs from Student's: it covers in 95 % for symmetric differences, but for
    exponential ones in 90 % at n = 10, 92 % at 20 and 93 % at 40 (simulated). What it misses
    then is mostly beyond the end of the longer tail: beware of rare large losses.

    Parameters
    ----------
    table
        Rows of ``run`` or ``sweep``, with one protocol for each of the two methods, and the
        same seeds: a ValueError lists those that one of them lacks.
    method, baseline
        Names in the column ``method``; positive differences favor the first, except those of
        ``calibration_error``.
    metric
        A column.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment, inference, evaluated_on and epoch, with the mean, low, high,
        n and sd of the differences, and method, baseline and metric as given.

    Examples
    --------
    >>> import pandas as pd
    >>> from study.stats.intervals import paired_difference
    >>> table = pd.DataFrame({"seed": [0, 1, 2] * 2, "method": ["lf_sbn"] * 3 + ["wlf_wbn"] * 3})
    >>> table["accuracy_overall"] = [0.70, 0.80, 0.90, 0.75, 0.86, 0.95]
    >>> table[["experiment", "inference", "evaluated_on", "epoch"]] = ["i", "pooled", "test", 20]
    >>> difference = paired_difference(table, "wlf_wbn", "lf_sbn", "accuracy_overall")
    >>> difference[["epoch", "mean", "low", "high", "n"]].round(3)
       epoch   mean    low   high  n
    0     20  0.053  0.039  0.068  3
    """
    runs = side_by_side(table, [method, baseline], metric)
    difference = (runs[method] - runs[baseline]).rename("difference").reset_index()
    estimates = intervals(difference, SETTING, "difference", bounds=(-1.0, 1.0))
    return estimates.assign(method=method, baseline=baseline, metric=metric)


def side_by_side(table: pd.DataFrame, methods: Sequence[str], metric: str) -> pd.DataFrame:
    """The metric of each method in a column of its own, a row for each setting and seed.

    Methods must have the same seeds, and one protocol each.
    """
    known = set(table["method"])
    if not 2 <= len(methods) == len(known.intersection(methods)):
        raise ValueError(f"need two or more different methods of {sorted(known)}, got {methods}")
    runs = table[table["method"].isin(methods)]
    if runs.duplicated([*SETTING, "seed", "method"]).any():
        raise ValueError(
            "the table has several rows for one run, or several protocols for one method: select "
            "one of each, for example table[table['protocol'].isin([...])]"
        )
    wide = runs.set_index([*SETTING, "seed", "method"])[metric].unstack("method", sort=False)
    for key, missing in wide[wide.isna().any(axis=1)].groupby(level=list(SETTING), sort=False):
        seeds = missing.index.get_level_values("seed")
        absent = {m: seeds[missing[m].isna()].tolist() for m in methods}
        at = dict(zip(SETTING, key, strict=True))
        raise ValueError(f"the methods don't have the same seeds: {absent} missing at {at}")
    return wide[list(methods)]
