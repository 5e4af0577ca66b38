"""Every number in the prose of the covered pages is one that a function computes."""

import re

import pytest
from conftest import ROOT
from pages import BOOK
from prose import NUMBER, as_pattern, blocks, complaints, occurrences, prose

from study.chapters.numbers import Statement, statements

# Pages covered as a whole; of every other chapter its question, overview and takeaways are.
WHOLE = ("README", "intro", "replication_report")
SUMMARY = ("", "Overview", "Takeaways")
CHAPTERS = [path.stem for path in sorted(BOOK.glob("[01]*.ipynb")) if path.stem not in WHOLE]
# Numbers that name something, and counts of what the text itself lists.
NAMES = (
    r"(Table|Eq\.|digit|image of a) \d|chapters? \d+(, \d+)*( (to|and) \d+)?",
    r"\(\d+\.\d+\)|7\.14 after|predictions 7\.4 and 7\.11",
    r"(arXiv:|Python |PyTorch |CC BY )\d+\.\d+|(NOLTA|the) 2019",
    r"with 2\.14 and not with 2\.10|\d GB",
    r"\d+ min\b|five minutes",  # test_intro compares these with the pages
    r"the two|one of two classes|two (changed lines|choices|draws|formulas|of the eq|ways out)",
    r"the four differences|three (kinds of statements|lines)|ten lines",
    r"0 at the majority's mean and 1 at the minority's",
    r"half of the runs of one reading had been seen",  # before a criterion was committed
    r"seeds below 30|the rate 0\.01 and batches of 200 in|two epochs of every kind",  # trials
)


def text_of(page):
    path = ROOT / "README.md" if page == "README" else BOOK / f"{page}.ipynb"
    return prose(path, () if page in WHOLE else SUMMARY)


@pytest.mark.parametrize("page", [*WHOLE, *CHAPTERS])
def test_every_number_is_the_computed_one(page):
    wrong = [m for block in text_of(page) for m in complaints(block, statements(), NAMES)]
    assert not wrong, "\n".join(wrong)


def test_every_statement_and_every_name_is_used():
    text = [block for page in (*WHOLE, *CHAPTERS) for block in text_of(page)]
    said = [statement.rendered() for statement in statements()]
    patterns = dict(zip(NAMES, NAMES, strict=True)) | {words: as_pattern(words) for words in said}
    unused = [n for n, p in patterns.items() if not any(occurrences(p, block) for block in text)]
    assert unused == []


def test_statements_say_what_their_numbers_are_about():
    bare = [words for words, _ in statements() if len(re.sub(r"\{.*?\}", "", words).split()) < 2]
    assert bare == []
    rendered = [statement.rendered() for statement in statements()]
    assert sorted(rendered) == sorted(set(rendered))


BELOW = Statement("{0} of {1} paired differences lie below zero", lambda: (47, 48))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("After 20 epochs 47 of 48 paired differences lie below zero.", []),
        ("Of them, 47 of\n48 paired *differences* lie below zero.", []),
        ("So 46 of 48 paired differences lie below zero.", ["46", "48"]),
        ("So 147 of 48 paired differences lie below zero.", ["147", "48"]),
        ("So \u221247 of 48 paired differences lie below zero.", ["47", "48"]),
        ("So seven of 48 paired differences lie below zero.", ["seven", "48"]),
        ("47 lie below zero, and $12$ or `13` do not, see [20](30).", ["47", "20"]),
        (":::{admonition} We measure\n:class: measured\nIt is 3 %.\n:::", ["3"]),
        ("```python\nx = 3\n```\n\n## Section 4\n\n5. An item of C1.", []),
    ],
)
def test_a_falsified_number_is_found(text, wrong):
    found = [
        m for _, block in blocks(text) for m in complaints(block, [BELOW], ["after 20 epochs"])
    ]
    assert [re.match("'(.*?)'", message).group(1) for message in found] == wrong


def test_a_falsified_function_is_found():
    def below():
        return 45, 48

    text = "It is worse. 47 of 48 paired differences lie below zero. It is so."
    first, _ = complaints(text, [Statement(BELOW.words, below)], [])
    assert first.startswith("'47' in '47 of 48 paired differences lie below zero.': ")
    assert first.endswith("below computes '45 of 48 paired differences lie below zero'")


def test_numbers_are_told_from_names():
    text = "C1, BatchNorm1d, two-class and 784-200-2 are none; 0.5, half, -3 and 95 % are."
    assert [m.group() for m in NUMBER.finditer(text)] == ["0.5", "half", "3", "95"]
