"""The grid of verdicts says of each claim and reading what the claim says itself."""

import pandas as pd
import pytest

from study.chapters.claims import CLAIMS
from study.chapters.report.grid import SYMBOLS, grid_markdown, verdict_grid
from study.engine.protocol import FAMILY
from study.stores.plan import load_or_run


@pytest.fixture(scope="module")
def table():
    return pd.concat([load_or_run("family"), load_or_run("corrections")])


@pytest.fixture(scope="module")
def grid(table):
    return verdict_grid(table)


@pytest.mark.parametrize("n", range(len(FAMILY)), ids=lambda n: f"reading {n + 1}")
def test_each_cell_is_the_verdict_under_its_reading(table, grid, n):
    for claim, row in zip(CLAIMS, grid.index[-len(CLAIMS) :], strict=True):
        assert row.startswith(f"{claim.name} ({claim.origin}). ")
        assert grid.loc[row, n + 1] == SYMBOLS[claim.under(FAMILY[n], table).outcome]


def test_the_first_rows_tell_all_readings_apart(grid):
    choices = grid.iloc[: -len(CLAIMS)]
    assert choices.index.tolist() == ["loss normalized by", "order of batches", "learning rate"]
    assert choices.T.drop_duplicates().shape == (len(FAMILY), 3)
    assert choices[1].tolist() == ["the batch", "reshuffled", "0.001"]
    assert choices[8].tolist() == ["the data set", "fixed", "0.01"]


def test_markdown_has_the_same_cells_and_explains_the_symbols(table, grid):
    *lines, _, key = grid_markdown(table).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["reading", *map(str, range(1, 9))]
    assert [row[1:] for row in cells[2:]] == grid.to_numpy().tolist()
    assert key == "✓ replicated, ✗ not replicated, ○ undecided"
