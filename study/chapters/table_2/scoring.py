"""How well each hypothesis about Table 2 predicts it, and how well that could be found out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np
import pandas as pd

from study.chapters.table_2.hypotheses import EPOCHS, HYPOTHESES, Hypothesis
from study.engine.data import EXPERIMENTS
from study.engine.protocol import METHODS
from study.stats.rankings import ranking_probability
from study.stats.scores import METRIC, PRINTED

LEVEL = 0.05  # below it, Table 2 is worse than what a hypothesis itself produces
RANKING = ["wlf_wbn", ("lf_sbn", "wlf_sbn")]
CELLS = pd.MultiIndex.from_product([EXPERIMENTS, METHODS], names=["experiment", "method"])
TABLE = PRINTED.set_index(["experiment", "method"]).paper.astype(float).loc[CELLS].to_numpy() / 100


def cube(runs: pd.DataFrame) -> np.ndarray:
    """Minority accuracies of shape (epochs, seeds, nine cells), from rows of a hypothesis."""
    wide = runs.pivot(index=["epoch", "seed"], columns=["experiment", "method"], values=METRIC)
    if wide.isna().any(axis=None) or set(CELLS) - set(wide.columns):
        raise ValueError("every epoch and seed needs a run of each experiment and method")
    epochs = wide.index.get_level_values("epoch").nunique()
    return wide[CELLS].to_numpy().reshape(epochs, -1, len(CELLS))


def score(sample: np.ndarray, tables: np.ndarray) -> np.ndarray:
    r"""Mean over epochs and cells of the fair CRPS of tables under a sample of runs.

    .. math::
        \frac{1}{E} \sum_e \frac19 \sum_c \Bigl( \overline{|x_{eic} - y_c|}_i
        - \tfrac12 \overline{|x_{eic} - x_{ejc}|}_{i \ne j} \Bigr)

    All epochs count alike, rather than the best one alone.

    Parameters
    ----------
    sample
        Runs of a hypothesis, shape (epochs, seeds, cells).
    tables
        What is to be scored, shape (tables, cells).

    Returns
    -------
    numpy.ndarray
        A score for each table; smaller is better.

    Examples
    --------
    >>> float(score(np.array([[[0.5], [0.6], [0.7]]]), np.array([[0.6]])).round(4)[0])
    0.0
    """
    n = sample.shape[1]
    distance = np.abs(sample[None] - tables[:, None, None]).mean(2)
    pairs = np.abs(sample[:, :, None] - sample[:, None]).sum((1, 2)) / (n * (n - 1))
    return (distance - pairs / 2).mean((1, 2))


def own_scores(sample: np.ndarray) -> np.ndarray:
    """Scores of a hypothesis's own tables, one for each epoch and seed.

    The nine runs of a seed after one epoch stand for Table 2, and are scored under the runs of
    the other seeds, at all epochs.
    """
    return np.concatenate([
        score(np.delete(sample, seed, 1), sample[:, seed]) for seed in range(sample.shape[1])
    ])  # fmt: skip


@cache
def sample_of(hypothesis: Hypothesis) -> np.ndarray:
    """The `cube` of a hypothesis."""
    return cube(hypothesis.runs())


def chance_of_ranking(runs: pd.DataFrame) -> float:
    """Probability that single runs show WLF+WBN as the best in all experiments, over epochs."""
    by_experiment = ranking_probability(runs, RANKING, "accuracy_overall")
    return by_experiment.groupby("epoch").probability.prod().mean()


def verdict(p: float, chance: float) -> str:
    """What a hypothesis explains: "both", "numbers", "ranking" or "neither".

    The numbers if p, the share of its own tables that score as badly as Table 2, is above
    `LEVEL`; the ranking if its chance is above one half.

    Examples
    --------
    >>> verdict(0.3, 0.2), verdict(0.02, 0.9)
    ('numbers', 'ranking')
    """
    explained = {(True, True): "both", (True, False): "numbers", (False, True): "ranking"}
    return explained.get((p > LEVEL, chance > 0.5), "neither")


@cache
def board(hypotheses: Sequence[Hypothesis] = HYPOTHESES) -> pd.DataFrame:
    """A row for each hypothesis, as declared: score, its own tables' scores, chance, verdict.

    Returns
    -------
    pandas.DataFrame
        Columns group, hypothesis, score (of Table 2), own (mean score of its own tables), p (the
        share of these that score as badly, Table 2 counted in), chance (of the ranking), verdict.
    """
    rows = []
    for hypothesis in hypotheses:
        sample = sample_of(hypothesis)
        printed, own = score(sample, TABLE[None])[0], own_scores(sample)
        p = (1 + (own >= printed).sum()) / (1 + len(own))
        chance = chance_of_ranking(hypothesis.runs())
        rows.append({
            "group": hypothesis.group, "hypothesis": hypothesis.name, "score": printed,
            "own": own.mean(), "p": p, "chance": chance, "verdict": verdict(p, chance),
        })  # fmt: skip
    return pd.DataFrame(rows)


def recovered(hypotheses: Iterable[Hypothesis] = HYPOTHESES) -> pd.DataFrame:
    r"""Where tables from each hypothesis are said to come from: shares of the best scores.

    Each hypothesis makes tables as in `own_scores`. Each is scored under all hypotheses, without
    the runs of its seed (they share splits, initializations and often networks), and given to the
    one with the best score.

    Returns
    -------
    pandas.DataFrame
        Shape (hypotheses, hypotheses): row by row the shares, which add up to one.
    """
    hypotheses = list(hypotheses)
    samples = [sample_of(hypothesis) for hypothesis in hypotheses]
    names = [hypothesis.name for hypothesis in hypotheses]
    shares = np.zeros((len(names), len(names)))
    for row, made in enumerate(samples):
        for seed in range(made.shape[1]):
            scores = np.stack([_without(sample, seed, made[:, seed]) for sample in samples])
            np.add.at(shares[row], scores.argmin(0), 1)
    return pd.DataFrame(shares / shares.sum(1, keepdims=True), names, names)


def _without(sample: np.ndarray, seed: int, tables: np.ndarray) -> np.ndarray:
    left = np.delete(sample, seed, 1) if seed < sample.shape[1] else sample
    return score(left, tables)


def by_epoch(hypothesis: Hypothesis) -> pd.DataFrame:
    """Score of Table 2 at each stored epoch, beside what the hypothesis's own runs show there.

    Returns
    -------
    pandas.DataFrame
        A row for each epoch, also beyond the prior: score, own (the mean score of its own tables)
        and chance (of the ranking).
    """
    rows = {}
    for epoch, runs in hypothesis.runs(prior=False).groupby("epoch"):
        sample = cube(runs)
        rows[epoch] = {
            "score": score(sample, TABLE[None])[0],
            "own": own_scores(sample).mean(),
            "chance": chance_of_ranking(runs),
        }
    return pd.DataFrame(rows).T.rename_axis("epoch")


def by_cell(hypothesis: Hypothesis) -> pd.DataFrame:
    """Table 2's minority accuracies beside the means of a hypothesis's runs at each epoch.

    Returns
    -------
    pandas.DataFrame
        A row for each experiment and method: paper, and the mean at each epoch of the prior.
    """
    means = sample_of(hypothesis).mean(1)
    columns = {"paper": TABLE} | dict(zip(EPOCHS, means, strict=True))
    return pd.DataFrame(columns, CELLS)
