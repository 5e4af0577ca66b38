"""How to cite this work: BibTeX made of CITATION.cff.

`python book/_ext/citation.py` prints what README.md and the introduction
show.
"""

from __future__ import annotations

from pathlib import Path

import yaml

CITATION = Path(__file__).parents[2] / "CITATION.cff"
KINDS = {"software": "software", "conference-paper": "inproceedings"}


def people(authors: list[dict]) -> str:
    """Authors as BibTeX has them; a group keeps its name in braces."""
    return " and ".join(
        f"{{{a['name']}}}"
        if "name" in a
        else f"{a['family-names']}, {a['given-names']}"
        for a in authors
    )


def entry(key: str, work: dict) -> str:
    """One entry, with the fields that the work has.

    Examples
    --------
    >>> work = {"type": "software", "title": "wbn", "version": 1}
    >>> print(entry("wbn", work | {"authors": [{"name": "All of us"}]}))
    @software{wbn,
      author = {{All of us}},
      title = {wbn},
      version = {1}
    }
    """
    fields = {
        "author": people(work["authors"]),
        "title": work["title"],
        "booktitle": work.get("collection-title"),
        "version": work.get("version"),
        "license": work.get("license"),
        "year": work.get("year"),
        "url": work.get("url"),
    }
    lines = [f"  {name} = {{{v}}}" for name, v in fields.items() if v]
    head = f"@{KINDS[work['type']]}{{{key},"
    return "\n".join([head, ",\n".join(lines), "}"])


def bibtex(citation: dict) -> str:
    """Entries of the work and of the paper that it reproduces."""
    paper = citation["references"][0]
    first = paper["authors"][0]["family-names"].lower()
    entries = {"wbn": citation, f"{first}{paper['year']}": paper}
    return "\n\n".join(entry(key, work) for key, work in entries.items())


if __name__ == "__main__":
    print(bibtex(yaml.safe_load(CITATION.read_text(encoding="utf-8"))))
