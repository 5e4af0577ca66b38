"""How numbers are printed."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.figures.text import MINUS, in_percent, percent, with_interval, written, written_table

numbers = st.floats(-1, 1)


@given(numbers, st.integers(0, 3), st.booleans())
def test_what_is_printed_is_the_rounded_number(fraction, digits, sign):
    text = percent(fraction, digits, sign)
    assert float(text.replace(MINUS, "-")) == pytest.approx(
        100 * fraction, abs=0.5 * 10**-digits + 1e-9
    )


@given(numbers, st.integers(0, 3), st.booleans())
def test_no_hyphen_and_no_sign_of_zero(fraction, digits, sign):
    text = percent(fraction, digits, sign)
    assert "-" not in text
    zero = float(text.replace(MINUS, "-")) == 0
    assert (text[0] in f"{MINUS}+") == (not zero and (sign or fraction < 0))


def test_tables_of_means_and_of_fractions():
    rows = pd.DataFrame({"mean": [0.5, -0.1], "low": [0.4, -0.2], "high": [0.6, 0.0]}, ["a", "b"])
    assert written(rows).to_dict() == {
        "a": "50.0 [40.0, 60.0]",
        "b": f"{MINUS}10.0 [{MINUS}20.0, 0.0]",
    }
    assert written(rows, 0, sign=True)["a"] == with_interval(0.5, 0.4, 0.6, 0, sign=True)
    assert in_percent(rows[["low"]], digits=0).low.tolist() == ["40", f"{MINUS}20"]


def test_only_fractions_become_percent():
    table = pd.DataFrame({"paper": ["71"], "low": [0.25], "n": [40], "fits": [True]})
    assert in_percent(table).to_dict("records") == [
        {"paper": "71", "low": "25.0", "n": 40, "fits": True}
    ]


def test_a_written_table_keeps_the_order_of_each_column_and_leaves_gaps_empty():
    keys = [("z", 2, "b"), ("a", 2, "b"), ("z", 1, "c"), ("z", 2, "c")]
    rows = pd.DataFrame(keys, columns=["reading", "step", "method"])
    rows = rows.assign(mean=[0.1, 0.2, 0.3, 0.4], low=0.0, high=1.0)
    table = written_table(rows, ["reading", "step"], "method", digits=0)
    assert table.index.tolist() == [("z", 2), ("z", 1), ("a", 2)]
    assert table.columns.tolist() == ["b", "c"]
    means = table.map(lambda text: text.split(" ")[0])
    assert means.to_numpy().tolist() == [["10", "40"], ["", "30"], ["20", ""]]
