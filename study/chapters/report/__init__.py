"""The replication report: the verdicts at a glance, every setting to explore, the predictions."""

from study.chapters.report.explorer import results_explorer
from study.chapters.report.grid import SYMBOLS, verdict_grid
from study.chapters.report.predictions import PREDICTIONS

__all__ = ["PREDICTIONS", "SYMBOLS", "results_explorer", "verdict_grid"]
