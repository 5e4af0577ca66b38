"""How to cite: CITATION.cff is complete, and README and introduction show what follows from it."""

import doctest
import json
import re
import sys

import pytest
import yaml
from conftest import ROOT
from pages import BOOK
from pybtex.database import parse_string

CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
BIB = parse_string((BOOK / "references.bib").read_text(encoding="utf-8"), "bibtex").entries
# What the schema of version 1.2.0 asks for, and the keys of it that are used here.
NEEDED = {"cff-version", "message", "title", "authors"}
OF_A_WORK = {
    "type", "title", "authors", "year", "collection-title", "start", "end", "url", "notes", "status"
}  # fmt: skip
TYPES = {"conference-paper", "article"}


@pytest.fixture(scope="module")
def citation():
    sys.path.insert(0, str(BOOK / "_ext"))
    import citation

    sys.path.remove(str(BOOK / "_ext"))
    return citation


def shown(text):
    return re.findall(r"```bibtex\n(.*?)\n```", text, re.DOTALL)


def test_the_file_keeps_to_the_schema():
    assert CITATION["cff-version"] == "1.2.0"
    assert set(CITATION) >= NEEDED
    for work in CITATION["references"]:
        assert {"type", "title", "authors"} <= set(work) <= OF_A_WORK
        assert work["type"] in TYPES
        assert all(set(author) == {"family-names", "given-names"} for author in work["authors"])


@pytest.mark.parametrize("key", ["yasuda2019", "yasuda2020", "cui2019"])
def test_references_are_those_of_the_bibliography(key):
    entry = BIB[key]
    (work,) = [w for w in CITATION["references"] if w["title"] == entry.fields["title"]]
    assert str(work["year"]) == entry.fields["year"]
    assert work["url"] == entry.fields["url"]
    names = [f"{a['family-names']}, {a['given-names']}" for a in work["authors"]]
    assert names == [str(person) for person in entry.persons["author"]]


def test_bibtex_is_shown_as_it_is_generated(citation):
    generated = citation.bibtex(CITATION)
    cells = json.loads((BOOK / "intro.ipynb").read_text(encoding="utf-8"))["cells"]
    intro = "\n".join("".join(cell["source"]) for cell in cells)
    for text in ((ROOT / "README.md").read_text(encoding="utf-8"), intro):
        assert shown(text) == [generated], "run python book/_ext/citation.py"


def test_bibtex_says_what_the_file_says(citation):
    work, paper = parse_string(citation.bibtex(CITATION), "bibtex").entries.values()
    assert (work.type, work.fields["version"]) == ("software", CITATION["version"])
    assert work.fields["title"] == CITATION["title"]
    assert str(work.persons["author"][0]) == "{The wbn contributors}"
    assert paper.fields["title"] == BIB["yasuda2019"].fields["title"]
    assert paper.fields["booktitle"] == BIB["yasuda2019"].fields["booktitle"]
    assert paper.persons["author"] == BIB["yasuda2019"].persons["author"]


def test_examples_run(citation):
    assert doctest.testmod(citation) == (0, 2)
