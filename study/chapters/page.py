"""What every page needs: stored runs, their checks, and tables in words.

A page imports a few names from here, and the folder of its chapter: ``from study.chapters import
why``. The import sets the house style of figures.
"""

from study.chapters.predictions import scoreboard
from study.engine.data import EXPERIMENTS, load_split
from study.engine.protocol import Protocol
from study.engine.training import Trainer
from study.figures.style import use_house_style
from study.figures.tables import captioned
from study.figures.text import in_percent, written_table
from study.stores import verify
from study.stores.plan import RESULTS, load_or_run

__all__ = [
    "EXPERIMENTS",
    "Protocol",
    "Trainer",
    "captioned",
    "first_epoch_check",
    "in_percent",
    "load_or_run",
    "load_split",
    "scoreboard",
    "spot_check",
    "written_table",
]

use_house_style()


def spot_check(name: str) -> str:
    """Train a sample of the runs in results/`name` again: `study.stores.verify.spot_check`."""
    return verify.spot_check(RESULTS / name)


def first_epoch_check(name: str) -> str:
    """Train one epoch of a run in results/`name` again: `verify.first_epoch_check`."""
    return verify.first_epoch_check(RESULTS / name)
