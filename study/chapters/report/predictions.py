"""The predictions of all chapters, in the order of the chapters."""

from study.chapters.long_tail.predictions import LONG_TAIL
from study.chapters.repair.predictions import REPAIR
from study.chapters.table_2.predictions import FORENSICS
from study.chapters.three_experiments.predictions import MISMATCH
from study.chapters.why.predictions import CAUSE

PREDICTIONS = MISMATCH + CAUSE + FORENSICS + LONG_TAIL + REPAIR
