"""Tables of chapter 8: the hypotheses, single epochs, and what made-up tables are taken for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from study.chapters.open_choices.effects import stored_design
from study.chapters.table_2.fits import score_fits, table_2_at_points
from study.chapters.table_2.hypotheses import HYPOTHESES
from study.chapters.table_2.scoring import board, by_epoch
from study.figures.text import in_percent
from study.stores.plan import load_or_run

TEST_MOMENTS = ["text", "moments of the test set"]  # the groups with the sixteen ways to mix them
COLUMNS = {"score": "score", "own": "own tables", "p": "as badly", "chance": "ranking",
           "verdict": "explains"}  # fmt: skip
FIGURE_NAMES = {
    "as the text says": "the text",
    "all four": "all four",
    "hidden mean, hidden variance": "hidden layer",
}
EXAMPLES = ["as the text says", "hidden mean, hidden variance", "all four"]


def board_by_family() -> pd.DataFrame:
    """The `board` with a column `family`: "test images" or "no test images"."""
    families = {True: "test images", False: "no test images"}
    return board().assign(family=[families[h.by_test_images] for h in HYPOTHESES])


def families(table: pd.DataFrame) -> pd.DataFrame:
    """Scores (points) of both families, and how many hypotheses explain numbers or ranking.

    Parameters
    ----------
    table
        Of `board_by_family`, as below.
    """
    groups = table.groupby("family")
    scores = groups.score.agg(lowest="min", median="median", highest="max")
    counts = {
        "hypotheses": groups.size(),
        "ranking likely": groups.chance.agg(lambda chance: (chance > 0.5).sum()),
        "explain both": groups.verdict.agg(lambda verdict: (verdict == "both").sum()),
    }
    return in_percent(scores).assign(**counts)


def of_groups(table: pd.DataFrame, *groups: str) -> pd.DataFrame:
    """The hypotheses of some groups, with percents and columns for a reader."""
    rows = table[table.group.isin(groups)].set_index("hypothesis")
    return in_percent(rows[list(COLUMNS)]).rename(columns=COLUMNS)


def by_moment(table: pd.DataFrame) -> pd.DataFrame:
    """Mean score over eight ways with a moment from the test set, and over eight without."""
    sixteen = table[table.group.isin(TEST_MOMENTS)]
    sources = {True: "from the test set", False: "from training"}
    means = {}
    for name in ("hidden mean", "hidden variance", "output mean", "output variance"):
        taken = sixteen.hypothesis.str.contains(f"{name}|all four")
        means[name] = sixteen.groupby(taken.map(sources)).score.mean()
    return pd.DataFrame(means).T.rename_axis("moment")


def at_every_epoch() -> dict[str, pd.DataFrame]:
    """Of each hypothesis by name its `by_epoch`."""
    return {hypothesis.name: by_epoch(hypothesis) for hypothesis in HYPOTHESES}


def examples_by_epoch(every: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Scores and chances of `EXAMPLES` at single epochs; `every` is of `at_every_epoch`."""
    return pd.concat({name: every[name] for name in EXAMPLES}, names=["hypothesis"])


def trainings_by_epoch(every: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Scores at single epochs where networks are trained otherwise than the reference."""
    others = [h.name for h in HYPOTHESES if h.training != "reference"]
    return pd.DataFrame({name: every[name].score for name in others}).T.rename_axis("hypothesis")


def families_by_epoch(every: Mapping[str, pd.DataFrame], table: pd.DataFrame) -> pd.DataFrame:
    """Median score (points) of both families at single epochs, and how often ranking is likely."""
    rows = pd.concat(every, names=["hypothesis"]).reset_index()
    rows["family"] = rows.hypothesis.map(table.set_index("hypothesis").family)
    groups = rows.groupby(["family", "epoch"])
    likely = groups.chance.agg(lambda chance: (chance > 0.5).sum())
    median = in_percent(groups.score.median().to_frame("median score"))
    return median.assign(**{"ranking likely": likely})


def taken_for(shares: pd.DataFrame, names: Iterable[str] = EXAMPLES, most: int = 4) -> pd.DataFrame:
    """What tables of some hypotheses are taken for most often.

    Parameters
    ----------
    shares
        Of `scoring.recovered`.
    names
        Who made the tables.
    most
        How many hypotheses to show for each.

    Examples
    --------
    >>> shares = pd.DataFrame([[0.2, 0.8], [0.0, 1.0]], ["a", "b"], ["a", "b"])
    >>> taken_for(shares, ["a"], most=1).reset_index().values.tolist()
    [['a', 'b', 0.8]]
    """
    tops = {name: shares.loc[name].nlargest(most) for name in names}
    tables = {
        name: pd.DataFrame({"share": top.to_numpy()}, pd.Index(top.index, name="taken for"))
        for name, top in tops.items()
    }
    return pd.concat(tables, names=["made by"])


def fits_of_the_design() -> pd.DataFrame:
    """How well the designed study fits Table 2, by statistics at inference and output BN."""
    fits = table_2_at_points(load_or_run("study"), stored_design())
    return score_fits(fits, ["inference", "output_norm"])
