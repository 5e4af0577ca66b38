"""Links, anchors and heads of the built pages, read without a browser."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from conftest import HTML
from pages import chapters, markdown, notebooks

TITLE = "Weighted batch normalization"


class Document(HTMLParser):
    """Anchors of a page, addresses it links to and loads, and what its head says."""

    def __init__(self, path: Path):
        super().__init__()
        self.path, self.anchors, self.links, self.loads, self.meta = path, set(), set(), set(), {}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.anchors |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "meta":
            self.meta[given.get("name") or given.get("property")] = given.get("content")
        navigates = tag in ("a", "form") or given.get("rel") in ("canonical", "next", "prev")
        for key in ("href", "src", "action"):
            if key in given:
                (self.links if navigates else self.loads).add(given[key])

    def resolve(self, address):
        """File and anchor that a relative address means."""
        parts = urlsplit(address)
        target = self.path.parent / unquote(parts.path) if parts.path else self.path
        return target.resolve(), unquote(parts.fragment)


@pytest.fixture(scope="module")
def documents(html):
    return {path.resolve(): Document(path) for path in html.glob("*.html")}


def is_foreign(address):
    return bool(urlsplit(address).scheme or address.startswith("//"))


def test_every_internal_link_and_anchor_resolves(documents):
    broken = []
    for path, document in documents.items():
        for address in filter(lambda a: not is_foreign(a), document.links | document.loads):
            target, anchor = document.resolve(address)
            known = documents[target].anchors if target in documents else set()
            if not target.exists() or (anchor and anchor not in known):
                broken.append(f"{path.name} -> {address}")
    assert broken == []


def test_pages_load_nothing_from_elsewhere(documents):
    for document in documents.values():
        foreign = filter(is_foreign, document.loads)
        assert [a for a in foreign if not a.startswith("data:")] == []


@pytest.mark.parametrize("path", chapters(), ids=lambda path: path.stem)
def test_head_describes_the_page(path, documents):
    meta = documents[HTML / f"{path.stem}.html"].meta
    heading, _, text = markdown(path)[0].partition("\n")
    assert heading.removeprefix("# ") in meta["og:title"]
    assert meta["description"] == meta["og:description"]
    assert meta["description"].split()[0] == text.split()[0]
    assert meta["og:site_name"] == TITLE
    assert meta["og:type"] == "website"


def test_chapters_are_called_by_their_numbers():
    for path in notebooks():
        for number, target in re.findall(r"\[[Cc]hapter (\d+)\]\((\w+)\)", "".join(markdown(path))):
            assert target.startswith(f"{int(number):02d}_"), (path.name, number, target)


def test_titles_name_the_book_once(documents):
    for path in documents:
        text = path.read_text(encoding="utf-8")
        title = text[text.index("<title>") : text.index("</title>")]
        assert title.count(TITLE) == 1, path.name


def test_bare_address_shows_the_first_page(html):
    assert (html / "index.html").read_bytes() == (html / "intro.html").read_bytes()
