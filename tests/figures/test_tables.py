"""Tables as pages show them, read back from their HTML."""

import re
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from study.engine import METHODS
from study.engine.data import ALL_EXPERIMENTS
from study.engine.protocol import BY_LAYER, FAMILY, INFERENCE, PROBES, STATISTICS
from study.figures.tables import captioned
from study.figures.text import MINUS, written_table
from study.figures.words import WORDS, words

GROUPS = (METHODS, ALL_EXPERIMENTS, (*INFERENCE, *BY_LAYER), PROBES, STATISTICS, FAMILY[0])


def read(table):
    """Root, header texts and rows of texts of what a browser is given."""
    root = ElementTree.fromstring(table._repr_html_())
    (header,) = root.findall("thead/tr")
    rows = [["".join(c.itertext()) for c in row] for row in root.findall("tbody/tr")]
    return root, [" ".join(cell.itertext()) for cell in header], rows


@pytest.mark.parametrize("names", GROUPS, ids=" ".join)
def test_the_vocabulary_has_a_word_for_every_name_and_no_word_twice(names):
    called = [words(name) for name in names]
    assert len(set(called)) == len(called)
    assert not any("_" in word for word in called)


def test_no_word_is_a_name_of_something_else():
    assert [word for word in WORDS.values() if WORDS.get(word, word) != word] == []


@given(st.lists(st.floats(-100, 100), min_size=1), st.integers(0, 4))
def test_numbers_are_rounded_with_a_true_minus_and_no_minus_zero(values, digits):
    frame = pd.DataFrame({"name": [f"row {n}" for n in range(len(values))], "x": values})
    _, _, rows = read(captioned(frame, "Numbers.", digits))
    for value, (_, text) in zip(values, rows, strict=True):
        assert len(re.fullmatch(rf"{MINUS}?\d+\.?(\d*)", text)[1] if digits else "") == digits
        assert float(text.replace(MINUS, "-")) == pytest.approx(value, abs=0.5001 * 10**-digits)
        assert not (MINUS in text and float(text.replace(MINUS, "-")) == 0)


def test_headers_are_one_row_in_words_and_every_one_has_a_scope():
    columns = pd.MultiIndex.from_product([["i", "iii"], [1, 20]], names=["experiment", "epoch"])
    index = pd.Index(["batch_average", "pooled"], name="inference")
    frame = pd.DataFrame([["a", "b", "c", "d"]] * 2, index, columns)
    root, header, rows = read(captioned(frame, "Letters."))
    assert header == [
        "inference statistics", "(i) epoch 1", "(i) epoch 20", "(iii) epoch 1", "(iii) epoch 20",
    ]  # fmt: skip
    assert rows[0] == ["averages over mini-batches", "a", "b", "c", "d"]
    scopes = [cell.get("scope") for cell in root.iter("th")]
    assert scopes == ["col"] * 5 + ["row"] * 2
    assert root.find("caption").text == "Letters."


def test_outer_levels_head_groups_of_rows():
    index = pd.MultiIndex.from_tuples(
        [("i", 0.001, "batch"), ("i", 0.001, "dataset"), ("i", 0.01, "batch")],
        names=["experiment", "learning_rate", "loss_normalizer"],
    )
    table = captioned(pd.DataFrame({"seeds": [40, 40, 12_000]}, index), "Runs.")
    root, header, rows = read(table)
    assert header == ["loss normalized by", "seeds"]
    assert rows == [
        ["(i), learning rate 0.001"], ["the batch", "40"], ["the data set", "40"],
        ["(i), learning rate 0.01"], ["the batch", "12,000"],
    ]  # fmt: skip
    heads = root.findall("tbody/tr/th[@scope='rowgroup']")
    assert [head.get("colspan") for head in heads] == ["2", "2"]
    assert repr(table).splitlines()[2:5] == [
        "(i), learning rate 0.001:", "the batch | 40", "the data set | 40",
    ]  # fmt: skip


def test_a_number_and_its_interval_may_part_and_stay_one_text():
    rows = pd.DataFrame({"arm": ["x"], "epoch": 1, "mean": -0.1, "low": -0.2, "high": 0.1})
    root, header, shown = read(captioned(written_table(rows, "arm", "epoch"), "Means."))
    assert [span.text for span in root.iter("span")] == [f"{MINUS}10.0", f"[{MINUS}20.0, 10.0]"]
    assert (header, shown) == (["arm", "epoch 1"], [["x", f"{MINUS}10.0 [{MINUS}20.0, 10.0]"]])


def test_kinds_of_cells():
    frame = pd.DataFrame(
        {
            "sign": ["a < b & c", "`mean_one`"],
            "fits": [True, False],
            "learning_rate": [0.0003, 0.03],
            "share": ["3 %", ""],
            "gone": [float("nan"), 1.5],
        }
    )
    root, header, rows = read(captioned(frame, "Kinds of cells.", {"gone": 1}))
    assert header == ["sign", "fits", "learning rate", "share", "gone"]
    assert rows[0] == ["a < b & c", "yes", "0.0003", "3\u00a0%", ""]
    assert rows[1] == ["mean_one", "no", "0.03", "", "1.5"]
    assert [code.text for code in root.iter("code")] == ["mean_one"]
    texts = [cell.get("class") for cell in root.findall("tbody/tr[1]/td")]
    assert texts == ["text", None, None, None]


def test_prose_breaks_and_carries_its_header():
    frame = pd.DataFrame(
        {"claim": ["C1"], "words": ["a sentence that is longer than a line of it"]}
    )
    root, _, _ = read(captioned(frame, "Claims."))
    assert "prose" in root.get("class")
    assert root.find("tbody/tr/td").get("data-header") == "words"


def test_no_caption_is_refused():
    with pytest.raises(ValueError, match="caption is empty"):
        captioned(pd.DataFrame({"a": [1]}), " ")
