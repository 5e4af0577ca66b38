"""The printed Table 2 that opens chapter 5 is the one that our numbers are compared with."""

import json

from pages import BOOK

from study.stats.table_2 import TABLE_2


def test_the_box_has_every_number_as_printed():
    cells = json.loads((BOOK / "05_three_experiments.ipynb").read_text(encoding="utf-8"))["cells"]
    lines = "".join(cells[0]["source"]).splitlines()
    rows = [
        [c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("| (")
    ]
    shown = {
        (experiment.strip("()"), method, f"accuracy_{kind}"): number
        for experiment, kind, *numbers in rows
        for method, number in zip(("lf_sbn", "wlf_sbn", "wlf_wbn"), numbers, strict=True)
    }
    printed = TABLE_2.set_index(["experiment", "method", "metric"]).paper.to_dict()
    assert shown == printed
