"""Numbers of the designed study of what the paper leaves open."""

from __future__ import annotations

from wbn.analysis.ledger.experiments import runs
from wbn.analysis.ledger.statement import Statement, rows
from wbn.analysis.study import LEVELS
from wbn.analysis.text import count


def design() -> list[object]:
    """Choices beside output BN, kinds of inference statistics, epochs, and runs."""
    kinds, epochs = (rows("study")[column].nunique() for column in ("inference", "epoch"))
    return [count(len(LEVELS) - 1), count(kinds), count(epochs), runs("study")]


STUDY = "plan and rows of results/study"

CHOICES = (
    Statement("designed study of {3} runs", STUDY, design),
    Statement("study of {0} unstated choices and of output BN ({3} runs)", STUDY, design),
    Statement(
        "study of {} unstated choices and of output BN, with {} kinds of inference statistics and "
        "{} epochs: {} runs",
        STUDY,
        design,
    ),
)
