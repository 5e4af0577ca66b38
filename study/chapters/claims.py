"""Claims about the method, with criteria that are fixed before the runs that judge them.

A claim is judged once for each reading of the declared family, at epoch `EPOCH`, by the
rule that its `judge` computes and its `criterion` says in words. The constants of this module
are the margins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import pandas as pd

from study.engine.data import EXPERIMENTS
from study.engine.protocol import EPOCH, FAMILY, METHODS, Protocol
from study.stats.intervals import paired_difference
from study.stats.table_2 import among_single_runs

EARLIER = (1, 5, 10)  # epochs whose counts stand beside a verdict
CELLS_OUTSIDE = 3  # of 18: four or more have a chance of 1.1 % if each has 5 %
MAJORITY_LOSS = 0.01  # the paper's largest is 0.6 points
WLF_GAIN = 0.005
SAME = 0.024  # half of 4.8 points, the smallest lead of Weighted + WBN in Table 2
VARIANTS = {
    "scale mean_one": {"scale": "mean_one"},
    "correction reliability": {"correction": "reliability"},
    "correction none": {"correction": "none"},
}

Outcome = Literal["replicated", "not replicated", "undecided", "held", "failed"]


@dataclass(frozen=True)
class Verdict:
    """What became of a claim under one reading, or of a prediction, and the numbers behind it."""

    outcome: Outcome
    evidence: pd.DataFrame


@dataclass(frozen=True)
class Claim:
    """A statement that results can confirm or refute.

    Parameters
    ----------
    name, words
        A short name, and what the paper says, or what its table shows.
    origin
        Whether the paper states it, its tables imply it, or it is ours.
    criterion
        In words, what `judge` computes.
    protocols
        From a reading, one of `FAMILY`, to the protocols that the claim is judged under.
    seeds
        How many, from 0.
    judge
        From rows of ``sweep`` for these protocols, at one epoch, to a verdict.
    """

    name: str
    words: str
    origin: Literal["stated", "implied", "ours"]
    criterion: str
    protocols: Callable[[dict], list[Protocol]]
    seeds: int
    judge: Callable[[pd.DataFrame], Verdict]

    def under(self, reading: dict, table: pd.DataFrame, epoch: int = EPOCH) -> Verdict:
        """The verdict under one reading, from rows of ``sweep`` that hold its protocols."""
        hashes = [protocol.hash for protocol in self.protocols(reading)]
        judged = table.protocol.isin(hashes) & (table.epoch == epoch) & (table.seed < self.seeds)
        missing = set(hashes) - set(table.protocol[judged])
        if missing:
            raise ValueError(
                f"{self.name} needs {len(set(hashes))} protocols at epoch {epoch}, and the table "
                f"lacks {len(missing)} of them: {', '.join(sorted(missing))}"
            )
        return self.judge(table[judged])

    def over_family(self, table: pd.DataFrame, epoch: int = EPOCH) -> pd.DataFrame:
        """A row for each reading of the family, from 1 on: its choices and the outcome."""
        outcomes = [self.under(reading, table, epoch).outcome for reading in FAMILY]
        readings = pd.RangeIndex(1, len(FAMILY) + 1, name="reading")
        return pd.DataFrame(FAMILY, readings).assign(outcome=outcomes)


def in_words(outcomes: pd.Series) -> str:
    """In how many readings a claim holds, and in how many that is open.

    Examples
    --------
    >>> in_words(pd.Series(["replicated", "undecided"]))
    'holds in 1 of 2 readings (some), undecided in 1'
    """
    n = len(outcomes)
    holding, left = ((outcomes == name).sum() for name in ("replicated", "undecided"))
    share = "none" if holding == 0 else "all" if holding == n else "some"
    words = f"holds in {holding} of {n} readings ({share})"
    return f"{words}, undecided in {left}" if left else words


def by_reading(claims: Sequence[Claim], table: pd.DataFrame, epoch: int = EPOCH) -> pd.DataFrame:
    """The outcome of each claim, a column, under each reading of the family, a row from 1 on."""
    return pd.DataFrame({claim.name: claim.over_family(table, epoch).outcome for claim in claims})


def held_by_epoch(
    claims: Sequence[Claim], table: pd.DataFrame, epochs: Sequence[int]
) -> pd.DataFrame:
    """In how many readings each claim holds, epoch by epoch."""
    holding = [(by_reading(claims, table, epoch) == "replicated").sum() for epoch in epochs]
    return pd.DataFrame(holding, pd.Index(epochs, name="epoch"))


def verdict_in_words(claim: Claim, table: pd.DataFrame) -> str:
    """The verdict over the family at epoch `EPOCH`, and how many readings hold at `EARLIER`."""
    at_end = in_words(claim.over_family(table).outcome)
    *first, last = held_by_epoch([claim], table, EARLIER)[claim.name]
    *epochs, final = EARLIER
    counts = f"{', '.join(map(str, first))} and {last}"
    return (
        f"At epoch {EPOCH}: {at_end}. At epochs {', '.join(map(str, epochs))} and {final}: "
        f"holds in {counts}."
    )


def claims_table(table: pd.DataFrame) -> pd.DataFrame:
    """Each claim with its criterion and its verdict over the family, `verdict_in_words`.

    Parameters
    ----------
    table
        Rows of ``sweep`` that hold the protocols of all claims.

    Returns
    -------
    pandas.DataFrame
        A row for each claim: claim, criterion and verdict.
    """
    return pd.DataFrame(
        {
            "claim": f"{claim.name} ({claim.origin}). {claim.words}",
            "criterion": claim.criterion,
            "verdict": verdict_in_words(claim, table),
        }
        for claim in CLAIMS
    )


def claims_markdown(table: pd.DataFrame) -> str:
    """The rows of `claims_table` in Markdown."""
    lines = ["| claim | criterion | verdict |", "|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in claims_table(table).itertuples(index=False)]
    return "\n".join(lines)


def table_2_runs(reading: dict) -> list[Protocol]:
    """The nine runs of Table 2."""
    return [Protocol.paper(e, m, **reading) for e in EXPERIMENTS for m in METHODS]


def table_2_by_reading(table: pd.DataFrame, epoch: int = EPOCH) -> dict[int, pd.DataFrame]:
    """The rows of the nine runs of Table 2 under each reading of the family, from 1 on."""
    at_epoch = table[table.epoch == epoch]
    return {
        n: at_epoch[at_epoch.protocol.isin([run.hash for run in table_2_runs(reading)])]
        for n, reading in enumerate(FAMILY, 1)
    }


def variant_runs(reading: dict) -> list[Protocol]:
    """Weighted + WBN as the paper has it, and in each of `VARIANTS`."""
    return [
        Protocol.paper(e, "wlf_wbn", **reading, **changes)
        for e in EXPERIMENTS
        for changes in ({}, *VARIANTS.values())
    ]


def _outcome(holds: pd.Series, fails: pd.Series) -> Outcome:
    if holds.all():
        return "replicated"
    return "not replicated" if fails.any() else "undecided"


def _best_overall(table: pd.DataFrame) -> Verdict:
    evidence = pd.concat(
        paired_difference(table, "wlf_wbn", other, "accuracy_overall")
        for other in ("lf_sbn", "wlf_sbn")
    )
    return Verdict(_outcome(evidence.low > 0, evidence.high < 0), evidence)


def _as_single_runs(table: pd.DataFrame) -> Verdict:
    cells = among_single_runs(table)
    evidence = cells[cells.metric != "accuracy_overall"]
    fits = (~evidence.inside).sum() <= CELLS_OUTSIDE
    return Verdict("replicated" if fits else "not replicated", evidence)


def _little_for_more(table: pd.DataFrame) -> Verdict:
    minority, majority = (
        paired_difference(table, "wlf_wbn", "wlf_sbn", f"accuracy_{name}")
        for name in ("minority", "majority")
    )
    holds = pd.concat([minority.low > 0, majority.low > -MAJORITY_LOSS])
    fails = pd.concat([minority.high < 0, majority.high < -MAJORITY_LOSS])
    return Verdict(_outcome(holds, fails), pd.concat([minority, majority]))


def _no_gain_by_weights(table: pd.DataFrame) -> Verdict:
    evidence = paired_difference(table, "wlf_sbn", "lf_sbn", "accuracy_overall")
    judged = evidence[evidence.experiment != "ii"]
    return Verdict(_outcome(judged.high < WLF_GAIN, judged.low > WLF_GAIN), evidence)


def _no_choice_matters(table: pd.DataFrame) -> Verdict:
    names = {
        Protocol.paper(e, "wlf_wbn", **reading, **changes).hash: name
        for e in EXPERIMENTS
        for reading in FAMILY
        for name, changes in ({"as in the paper": {}} | VARIANTS).items()
    }
    named = table.assign(method=table.protocol.map(names))
    evidence = pd.concat(
        paired_difference(named, name, "as in the paper", "accuracy_overall") for name in VARIANTS
    )
    holds = (evidence.low > -SAME) & (evidence.high < SAME)
    return Verdict(_outcome(holds, (evidence.low > SAME) | (evidence.high < -SAME)), evidence)


CLAIMS = (
    Claim(
        name="C1",
        words="The proposed method (WLF+pBN) was found to be the best in all experiments.",
        origin="stated",
        criterion=(
            "In each experiment the 95 % interval of the paired difference in overall accuracy of "
            "Weighted + WBN lies above zero against both other methods: replicated. One of the six "
            "intervals lies below zero: not replicated. Otherwise undecided."
        ),
        protocols=table_2_runs,
        seeds=40,
        judge=_best_overall,
    ),
    Claim(
        name="C2",
        words="The class accuracies of Table 2 are what single runs give.",
        origin="implied",
        criterion=(
            "Of the 18 class accuracies at most 3 lie outside the range that holds one more run "
            "with a probability of 95 % (from 40 seeds), at printed precision: replicated. "
            "Otherwise not replicated. One in twenty lies outside by chance."
        ),
        protocols=table_2_runs,
        seeds=40,
        judge=_as_single_runs,
    ),
    Claim(
        name="C3",
        words="WBN gives up little majority accuracy for more minority accuracy.",
        origin="implied",
        criterion=(
            "In each experiment the 95 % intervals of the paired differences of Weighted + WBN to "
            "Weighted + BN lie above zero for minority accuracy and above -1 point for majority "
            "accuracy: replicated. One of the six lies below zero or -1 point: not replicated. "
            "Otherwise undecided."
        ),
        protocols=table_2_runs,
        seeds=40,
        judge=_little_for_more,
    ),
    Claim(
        name="C4",
        words="With standard BN the weighted loss does not beat the plain loss.",
        origin="implied",
        criterion=(
            "In (i) and (iii) the 95 % interval of the paired difference in overall accuracy of "
            "Weighted + BN to Plain + BN lies below 0.5 points: replicated. One of the two lies "
            "above 0.5 points: not replicated. Otherwise undecided. Table 2 itself contradicts it "
            "in (ii), which is shown and not judged."
        ),
        protocols=table_2_runs,
        seeds=40,
        judge=_no_gain_by_weights,
    ),
    Claim(
        name="C5",
        words="It does not produce any additive hyper-parameters.",
        origin="stated",
        criterion=(
            "Weights on the scale mean_one, the correction reliability and no correction each "
            "leave the overall accuracy of Weighted + WBN within 2.4 points, half the smallest "
            "lead in Table 2: the 95 % intervals of the nine paired differences lie inside: "
            "replicated. One of them lies outside: not replicated. Otherwise undecided. Ten seeds, "
            "the number declared, turned out to be too few for this margin in most readings."
        ),
        protocols=variant_runs,
        seeds=10,
        judge=_no_choice_matters,
    ),
)
