"""The ledger: numbers that pages state in sentences, each with its source.

A statement belongs to no page. Where several pages say the same in the same words, they share it.
"""

from __future__ import annotations

import pandas as pd

from wbn.analysis.ledger.argument import ARGUMENT
from wbn.analysis.ledger.cause import CAUSES
from wbn.analysis.ledger.choices import CHOICES
from wbn.analysis.ledger.experiments import THREE_EXPERIMENTS
from wbn.analysis.ledger.statement import Statement
from wbn.analysis.ledger.table_2 import ORIGIN
from wbn.analysis.ledger.weights import TEN_CLASSES, WEIGHTS

__all__ = ["LEDGER", "Statement", "ledger_table"]

LEDGER = (*ARGUMENT, *THREE_EXPERIMENTS, *CHOICES, *CAUSES, *ORIGIN, *WEIGHTS, *TEN_CLASSES)


def ledger_table() -> pd.DataFrame:
    """A row for each statement: its words, with the numbers that its source has, and the source."""
    lines = [(statement.rendered(), statement.source) for statement in LEDGER]
    return pd.DataFrame(lines, columns=["statement", "source"])
