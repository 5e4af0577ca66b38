"""Every number in the prose of the covered pages is the one that its source has."""

import re

import pytest
from conftest import ROOT
from pages import BOOK
from prose import NUMBER, as_pattern, blocks, disagreements, occurrences, prose

from study.chapters.ledger import LEDGER, Statement

SUMMARY = ("", "Overview", "Takeaways")  # and the question before them
SUMMARIES = {path.stem: SUMMARY for path in sorted(BOOK.glob("[01]*.ipynb"))}
WHOLE = {"README": (), "intro": (), "replication_report": ()}
PAGES = WHOLE | SUMMARIES
# Those in which each number is looked up; a page that states new numbers is added here.
COVERED = (
    "README",
    "intro",
    "replication_report",
    "01_weighted_loss",
    "02_batch_normalization",
    "03_size_mismatch",
    "04_data",
    "05_three_experiments",
    "06_what_the_paper_does_not_say",
    "07_why",
    "08_where_table_2_could_come_from",
    "09_class_balanced",
    "10_beyond_two_classes",
    "11_what_to_use",
)
# Numbers that name something, and counts of what the text itself lists.
NAMES = (
    r"(Table|Eq\.) \d",
    r"chapters? \d+(, \d+)*( (to|and) \d+)?",
    r"(NOLTA|the) 2019|arXiv:[\d.]+",
    r"(Python|PyTorch|CC BY) \d+\.\d+",
    r"with 2\.14 and not with 2\.10",
    r"\(\d+\.\d+\)|7\.14 after|predictions 7\.4 and 7\.11",
    r"\d GB",
    r"the digit \d",
    r"the two",
    r"two (choices|draws|formulas|of the equations|ways out|changed lines)",
    r"half of the runs of one reading had been seen",  # before a criterion was committed
    r"trials with seeds below 30",
    r"the rate 0\.01 and batches of 200 in",  # of these trials, as are
    r"two epochs of every kind of arm",
    r"one of two classes",
    r"0 at the majority's mean and 1 at the minority's",
    r"\d+ min\b|five minutes",  # compared with the words of the pages by test_intro
    r"(of|image of a|the) digit [01]|image of a [01]",
    r"the four differences|three kinds of statements|in ten lines",
)


def text_of(page):
    path = ROOT / "README.md" if page == "README" else BOOK / f"{page}.ipynb"
    return prose(path, PAGES[page])


@pytest.fixture(scope="module")
def ledger():
    return [(statement, statement.rendered()) for statement in LEDGER]


@pytest.mark.parametrize("page", COVERED)
def test_every_number_is_what_its_source_says(page, ledger):
    wrong = [f"{page}: {m}" for block in text_of(page) for m in disagreements(block, ledger, NAMES)]
    assert not wrong, "\n".join(wrong)


def test_every_statement_is_made_somewhere(ledger):
    everything = [block for page in PAGES for block in text_of(page)]
    unused = [
        f"{rendered!r} ({statement.source})"
        for statement, rendered in ledger
        if not any(occurrences(as_pattern(rendered), block) for block in everything)
    ]
    assert not unused, "no page says\n" + "\n".join(unused)


def test_every_name_is_used():
    everything = [block for page in PAGES for block in text_of(page)]
    assert [n for n in NAMES if not any(occurrences(n, block) for block in everything)] == []


def test_statements_say_what_their_numbers_are_about():
    bare = [s.words for s in LEDGER if len(re.sub(r"\{\d?\}", "", s.words).split()) < 2]
    assert bare == []


def test_no_statement_is_made_twice(ledger):
    rendered = [words for _, words in ledger]
    assert sorted(rendered) == sorted(set(rendered))


BELOW = Statement("{} of {} paired differences lie below zero", "stored rows", lambda: (47, 48))


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
        message
        for _, block in blocks(text)
        for message in disagreements(block, [(BELOW, BELOW.rendered())], [r"after 20 epochs"])
    ]
    assert [re.match("'(.*?)'", message).group(1) for message in found] == wrong


def test_a_falsified_source_is_found():
    text = "It is worse. 47 of 48 paired differences lie below zero. It is so."
    changed = Statement(BELOW.words, "stored rows", lambda: (45, 48))
    first, _ = disagreements(text, [(changed, changed.rendered())], [])
    assert first == (
        "'47' in '47 of 48 paired differences lie below zero.': the source (stored rows) says "
        "'45 of 48 paired differences lie below zero'"
    )


def test_numbers_are_told_from_names():
    text = "C1, BatchNorm1d, two-class and 784-200-2 are none; 0.5, half, -3 and 95 % are."
    assert [m.group() for m in NUMBER.finditer(text)] == ["0.5", "half", "3", "95"]
