"""The ledger: numbers that pages state in sentences, each with its source.

A statement belongs to no page. Where several pages say the same in the same words, they share it.
"""

from __future__ import annotations

import re

import pandas as pd

from study.chapters.argument.numbers import ARGUMENT
from study.chapters.betas.numbers import TEN_CLASSES, WEIGHTS
from study.chapters.open_choices.numbers import CHOICES
from study.chapters.repair.numbers import REPAIRS
from study.chapters.statement import Statement
from study.chapters.table_2.numbers import ORIGIN
from study.chapters.three_experiments.numbers import THREE_EXPERIMENTS
from study.chapters.why.numbers import CAUSES

__all__ = ["LEDGER", "Statement", "ledger_table"]

LEDGER = (
    *ARGUMENT, *THREE_EXPERIMENTS, *CHOICES, *CAUSES, *ORIGIN, *WEIGHTS, *TEN_CLASSES, *REPAIRS
)  # fmt: skip
CODE = re.compile(
    r"results/\w+|\b(?:study|wbn|fetch|Protocol)\.\w+(?:\.\w+)*|\b[a-z]+(?:_[a-z0-9]+)+\b"
)


def ledger_table() -> pd.DataFrame:
    """A row for each statement: its words, with the numbers that its source has, and the source.

    Names of code and of stores stand in backticks.
    """
    lines = [(s.rendered(), CODE.sub(r"`\g<0>`", s.source)) for s in LEDGER]
    return pd.DataFrame(lines, columns=["statement", "source"])
