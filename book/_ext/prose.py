"""Words of the glossary are linked, and a number stays with its unit.

The first time that a page has such a word in a paragraph or in a list, it
links to the glossary, which is on the page `notation`.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

GLOSSARY = "notation"
ENTRY = re.compile(r"^([a-z][\w -]+)\n    \S", re.MULTILINE)
TOGETHER = re.compile(
    r"(?<=\d) (?=%)|(?<=Table) (?=\d)|(?<=hapter) (?=\d)|(?<=Eq\.) (?=\d)"
)
LEFT_ALONE = (
    nodes.title, nodes.reference, nodes.literal, nodes.math, nodes.caption,
    nodes.term, pending_xref,
)  # fmt: skip
SECTIONS = (Path(__file__).parent / "search_sections.js").read_text()


def entries(text):
    """Words that a glossary explains, longer ones first, but for those that
    say in parentheses what they are of: they mean other things as well.

    >>> entries("reading\\n    One.\\n\\norder (of images)\\n    It.")
    ['reading']
    """
    return sorted(ENTRY.findall(text), key=len, reverse=True)


def is_plain(text):
    """Whether a text is prose: in a paragraph, neither linked nor code."""
    while not isinstance(text, nodes.paragraph | nodes.document):
        if isinstance(text, LEFT_ALONE):
            return False
        text = text.parent
    return isinstance(text, nodes.paragraph)


class LinkTerms(SphinxTransform):
    """Link the first use of each word of the glossary."""

    default_priority = 510

    def apply(self):
        """Go through the glossary's words, longer ones first."""
        if self.env.docname == GLOSSARY:
            return
        source = Path(self.env.doc2path(GLOSSARY)).read_text(
            encoding="utf-8"
        )
        for term in entries(source.partition("{glossary}")[2]):
            pattern = re.compile(rf"\b{term.removesuffix('s')}s?\b")
            for text in self.document.findall(nodes.Text):
                if (found := pattern.search(text)) and is_plain(text):
                    self.link(text, found, term)
                    break

    def link(self, text, found, term):
        """Put a reference in the place of a word."""
        link = pending_xref(
            refdomain="std",
            reftype="term",
            reftarget=term,
            refdoc=self.env.docname,
            refexplicit=True,
            refwarn=True,
        )
        link += nodes.inline("", found[0], classes=["term"])
        parts = [text[: found.start()], link, text[found.end() :]]
        new = [
            nodes.Text(p) if isinstance(p, str) else p for p in parts if p
        ]
        text.parent.replace(text, new)


class KeepTogether(SphinxTransform):
    """Put no line break between a number and its percent sign."""

    default_priority = 520

    def apply(self):
        """Go through the texts of a page."""
        for text in list(self.document.findall(nodes.Text)):
            kept = TOGETHER.sub("\u00a0", text)
            if kept != text and not isinstance(
                text.parent, nodes.literal_block
            ):
                text.parent.replace(text, nodes.Text(kept))


def find_sections(app, pagename, templatename, context, doctree):
    """Let the search page name the sections that it finds words in."""
    if pagename == "search":
        app.add_js_file(None, body=SECTIONS, priority=900)


def setup(app):
    """Register with Sphinx."""
    app.add_transform(LinkTerms)
    app.add_transform(KeepTogether)
    app.connect("html-page-context", find_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
