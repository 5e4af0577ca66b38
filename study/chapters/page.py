"""What every page needs: stored runs, their checks, tables in words. Imported, it sets the style.

A page imports from here, and its own chapter's folder: ``from study.chapters import why``.
"""

from study.chapters.claims import CLAIMS, claims_table
from study.chapters.predictions import scoreboard
from study.engine.data import EXPERIMENTS, LONG_TAILED, load_split
from study.engine.protocol import EPOCH, FAMILY, METHODS, Protocol
from study.engine.training import Trainer
from study.figures.runs import heat_map
from study.figures.style import use_house_style
from study.figures.tables import captioned
from study.figures.text import in_percent, written_table
from study.figures.words import words
from study.stats.intervals import paired_difference
from study.stores.plan import RESULTS, load_or_run, read_plan
from study.stores.verify import first_epoch_check, spot_check

__all__ = [
    "CLAIMS",
    "EPOCH",
    "EXPERIMENTS",
    "FAMILY",
    "LONG_TAILED",
    "METHODS",
    "RESULTS",
    "Protocol",
    "Trainer",
    "captioned",
    "claims_table",
    "first_epoch_check",
    "heat_map",
    "in_percent",
    "load_or_run",
    "load_split",
    "paired_difference",
    "read_plan",
    "scoreboard",
    "spot_check",
    "words",
    "written_table",
]

use_house_style()
