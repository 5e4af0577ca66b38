"""The ledger: numbers that pages state in sentences, each with its source.

A statement belongs to no page. Where several pages say the same in the same words, they share it.
"""

from __future__ import annotations

import re

import pandas as pd

from wbn.analysis.ledger.argument import ARGUMENT
from wbn.analysis.ledger.cause import CAUSES
from wbn.analysis.ledger.choices import CHOICES
from wbn.analysis.ledger.experiments import THREE_EXPERIMENTS
from wbn.analysis.ledger.repair import REPAIRS
from wbn.analysis.ledger.statement import Statement
from wbn.analysis.ledger.table_2 import ORIGIN
from wbn.analysis.ledger.weights import TEN_CLASSES, WEIGHTS

__all__ = ["LEDGER", "Statement", "ledger_table"]

LEDGER = (
    *ARGUMENT, *THREE_EXPERIMENTS, *CHOICES, *CAUSES, *ORIGIN, *WEIGHTS, *TEN_CLASSES, *REPAIRS
)  # fmt: skip
CODE = re.compile(r"results/\w+|\b(?:wbn|fetch|Protocol)\.\w+(?:\.\w+)*|\b[a-z]+(?:_[a-z0-9]+)+\b")


def ledger_table() -> pd.DataFrame:
    """A row for each statement: its words, with the numbers that its source has, and the source.

    Names of code and of stores stand in backticks.
    """
    lines = [(s.rendered(), CODE.sub(r"`\g<0>`", s.source)) for s in LEDGER]
    return pd.DataFrame(lines, columns=["statement", "source"])
