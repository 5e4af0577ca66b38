"""What a page says about itself to search engines, previews and readers.

Its description is its first paragraph, in a chapter the question that it
answers. `WBN_BOOK_URL`, set by the publishing workflow, is where the book
will be read. Without it there are no canonical addresses and no preview
picture: no address is made up.
"""

import os
import shutil
from html import escape, unescape
from pathlib import Path

from docutils import nodes
from logo import PICTURES, write_card
from markupsafe import Markup

CARD = "_static/card.png"
CARD_ALT = (
    "Nine small blue points and a large orange one. A dashed line, their "
    "mean, stands among the blue points; a solid line, their weighted "
    "mean, halfway to the orange one."
)


def set_address(app, config):
    """Take the book's address from the environment."""
    if url := os.environ.get("WBN_BOOK_URL"):
        config.html_baseurl = url.rstrip("/") + "/"


def describe(book, base, context, doctree):
    """Properties of a page, named as in the Open Graph protocol."""
    first = next(doctree.findall(nodes.paragraph), None)
    text = first.astext() if first else book
    tags = {
        "og:type": "website",
        "og:site_name": book,
        "og:title": unescape(Markup(context["title"]).striptags()),
        "og:description": " ".join(text.split()),
    }
    if base:
        tags["og:url"] = context["pageurl"]
        tags["og:image"] = base + CARD
        tags["og:image:alt"] = CARD_ALT
    return tags


def complete(app, pagename, templatename, context, doctree):
    """Describe a page in its head, and make its works cited list items.

    docutils gives them a role that ARIA has withdrawn and that its lists
    may not contain.
    """
    if pagename == "404":
        context["mark"] = PICTURES["favicon.svg"]
    if doctree is None:
        return
    config = app.config
    if pagename == config.root_doc:
        context["docstitle"] = ""  # it is the page's own title already
    tags = describe(
        config.html_title, config.html_baseurl, context, doctree
    )
    described = [("name", "description", tags["og:description"])]
    described += [("property", *item) for item in tags.items()]
    context["metatags"] += "".join(
        f'\n    <meta {key}="{name}" content="{escape(value)}" />'
        for key, name, value in described
    )
    context["body"] = context["body"].replace(
        'role="doc-biblioentry"', 'role="listitem"'
    )


def finish(app, exception):
    """Show the first page at the bare address; draw the preview picture."""
    if exception or app.builder.name != "html":
        return
    out = Path(app.outdir)
    shutil.copy(out / f"{app.config.root_doc}.html", out / "index.html")
    if app.config.html_baseurl:
        write_card(out / CARD, app.config.html_title)


def setup(app):
    """Register with Sphinx, before an index that only redirects is made."""
    app.connect("config-inited", set_address, priority=1)
    app.connect("html-page-context", complete)
    app.connect("build-finished", finish, priority=1)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
