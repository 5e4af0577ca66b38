"""The stored results by setting: three methods, the paper's numbers and the verdict on C1."""

from __future__ import annotations

import pandas as pd
from IPython.display import HTML

from study.chapters.report.settings import METRICS, SETTING, STATED, explored, printed
from study.engine.data import EXPERIMENTS
from study.engine.protocol import EPOCH, FAMILY, METHODS
from study.figures.interactive.frame import choice, html_table, page, slider
from study.figures.text import with_interval
from study.figures.words import words

# The first option of each menu is the reference reading's.
MENUS = {
    "loss_normalizer": ["batch", "dataset"],
    "batch_order": ["reshuffle", "fixed"],
    "learning_rate": [1e-3, 1e-2],
    "inference": [STATED, "pooled", "evaluation_set"],
    "metric": list(METRICS),
}
LOWEST = {"accuracy_balanced": 40, "accuracy_overall": 40, "accuracy_minority": 0}  # percent
ROW, TOP = 22, 44  # pixels between methods, and above the first
SHAPES = {
    "lf_sbn": '<path d="M-5-5h10v10h-10z"/>',
    "wlf_sbn": '<path d="M0-7L7 5H-7z"/>',
    "wlf_wbn": '<circle r="5.5"/>',
}
CELLS = [(experiment, method) for experiment in EXPERIMENTS for method in METHODS]
NOT_RUN = "This combination was not run with all three methods on the same 40 seeds."


def results_explorer(name: str = "explorer") -> HTML:
    """Menus over loss normalizer, batch order, learning rate and inference, a slider over epochs.

    The figure starts with the reference reading at epoch 20; what was not run with all three
    methods on 40 seeds is gray.

    Parameters
    ----------
    name
        The figure's id, different for each figure of a page.
    """
    accuracies, verdicts = explored()
    by_cell = accuracies.set_index([*SETTING, "metric", "experiment", "method"]).sort_index()
    controls = {
        f"{name}-{menu}": choice(f"{name}-{menu}", words(menu).capitalize(), _options(values))
        for menu, values in MENUS.items()
    }
    controls[f"{name}-epoch"] = slider(
        f"{name}-epoch", "Epoch", f'min="1" max="{EPOCH}" value="{EPOCH}" aria-valuetext="{EPOCH}"'
    )
    first = by_cell.loc[(STATED, 1, EPOCH, METRICS[0])]
    return page(
        name,
        controls,
        picture=_picture(first) + "\n" + _live_table(first),
        readout=_verdict(verdicts[STATED, 1, EPOCH]),
        table=_table(by_cell, verdicts),
        caption="Choose a reading, an epoch and the statistics of inference. Marks are means over "
        "40 seeds with 95 % intervals, crosses the paper's Table 2 (balanced accuracies follow "
        "from its class accuracies). Gray: not run with all three methods on the same 40 seeds.",
        needs="The menus need",
        script="explorer.js",
        settings={
            "cells": _packed(by_cell),
            "verdicts": {"|".join(map(str, key)): outcome for key, outcome in verdicts.items()},
            "paper": {m: [printed()[m][cell] for cell in CELLS] for m in METRICS},
            "lowest": LOWEST,
            "readings": [list(map(str, reading.values())) for reading in FAMILY],
            "menus": {menu: list(map(str, values)) for menu, values in MENUS.items()},
            "notRun": NOT_RUN,
        },
    )


def _options(values: list) -> list[str]:
    return [words(str(value)) for value in values]


def _tenths(row: pd.Series) -> list[int]:
    """Mean, low and high in tenths of a percent, rounded as they are printed."""
    return [round(float(f"{100 * row[end]:.1f}") * 10) for end in ("mean", "low", "high")]


def _packed(by_cell: pd.DataFrame) -> dict[str, list[list[int]]]:
    """For each setting and metric the cells' `_tenths`, in the order of `CELLS`."""
    packed = {}
    for key, rows in by_cell.groupby(level=[*SETTING, "metric"]):
        cells = rows.droplevel([*SETTING, "metric"])
        name = "|".join(map(str, key)).replace("accuracy_", "")  # the page is lighter without
        packed[name] = [_tenths(cells.loc[cell]) for cell in CELLS]
    return packed


def _verdict(outcome: str) -> str:
    return (
        "C1, that Weighted + WBN is the best in all experiments, judged by overall accuracy: "
        f'<b class="verdict">{outcome}</b>.'
    )


def _written(cells: pd.DataFrame) -> list[str]:
    """Mean and interval of each method."""
    return [with_interval(*cells.loc[m, ["mean", "low", "high"]]) for m in METHODS]


def _region(table: str, name: str) -> str:
    """A table without empty headers, which scrolls on its own where it is too wide."""
    table = table.replace('<th scope="col"></th>', "<td></td>")
    return f'<div role="region" tabindex="0" aria-label="{name}">\n{table}\n</div>'


def _live_table(cells: pd.DataFrame) -> str:
    rows = [
        [f"({e})", *(f'<span class="value">{text}</span>' for text in _written(cells.loc[e]))]
        for e in EXPERIMENTS
    ]
    caption = (
        '<span class="metric">Balanced accuracy</span> in percent after epoch '
        f'<span class="epoch">{EPOCH}</span>, with 95 % intervals.'
    )
    return _region(html_table(caption, ["", *METHODS.values()], rows), "This setting")


def _table(by_cell: pd.DataFrame, verdicts: pd.Series) -> str:
    rows = []
    for (inference, reading, epoch), outcome in verdicts.items():
        if epoch != EPOCH:
            continue
        choices = [words(str(value)) for value in (*FAMILY[reading - 1].values(), inference)]
        for experiment in EXPERIMENTS:
            cells = by_cell.loc[(inference, reading, epoch, METRICS[0], experiment)]
            rows.append([", ".join(choices), f"({experiment})", *_written(cells), outcome])
    titles = ["loss normalized by, order, rate, inference", "", *METHODS.values(), "C1"]
    table = html_table(f"Balanced accuracy at epoch {EPOCH} in percent.", titles, rows)
    return _region(table, "Every setting")


def _place(value: float, lowest: float) -> str:
    return f"{12 + 85 * max(0.0, value - lowest) / (100 - lowest):.2f}%"


def _picture(cells: pd.DataFrame) -> str:
    lowest = LOWEST[METRICS[0]]
    bottom = TOP + len(EXPERIMENTS) * (len(METHODS) + 0.6) * ROW
    parts = [
        f'<svg x="{x}" y="10"><g class="{method}" transform="translate(8 0)">{SHAPES[method]}</g>'
        f'<text class="key" x="20" y="5">{METHODS[method]}</text></svg>'
        for x, method in zip(("0%", "29%", "63%"), METHODS, strict=True)
    ]
    for n, experiment in enumerate(EXPERIMENTS):
        middle = TOP + (n * (len(METHODS) + 0.6) + 1) * ROW
        parts.append(f'<text class="key" x="0" y="{middle + 5:g}">({experiment})</text>')
    for n, (experiment, method) in enumerate(CELLS):
        y = TOP + (n + 0.6 * (n // len(METHODS))) * ROW
        mean, low, high = (tenths / 10 for tenths in _tenths(cells.loc[(experiment, method)]))
        ends = f'x1="{_place(low, lowest)}" x2="{_place(high, lowest)}"'
        parts.append(f'<g class="cell {method}"><line {ends} y1="{y:g}" y2="{y:g}"/>')
        parts.append(
            f'<svg class="mark" x="{_place(mean, lowest)}" y="{y:g}">{SHAPES[method]}</svg></g>'
        )
        at = _place(printed()[METRICS[0]][experiment, method], lowest)
        parts.append(f'<svg class="paper" x="{at}" y="{y:g}"><path d="M-5-5L5 5M5-5L-5 5"/></svg>')
    parts.append(f'<line class="axis" x1="12%" x2="97%" y1="{bottom:g}" y2="{bottom:g}"/>')
    for n in range(5):
        tick = lowest + n * (100 - lowest) // 4
        at = _place(tick, lowest)
        parts.append(f'<text class="tick" x="{at}" y="{bottom + 18:g}">{tick}</text>')
    summary = (
        "For each of three experiments three lines, one a method, with the mean accuracy and its "
        "interval as a mark on an axis, and a cross for the paper's number. The table below has "
        "the numbers."
    )
    start = f'<svg role="img" aria-label="{summary}" style="height: {bottom + 26:g}px">'
    return "\n".join([start, *parts, "</svg>"])
