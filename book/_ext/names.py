"""Code in prose that is a public name of the package links to its entry.

A name stands alone, after `wbn.`, or before arguments in parentheses.
"""

import re

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.transforms import SphinxTransform

import wbn

CALL = re.compile(r"(?:wbn\.)?(\w+)(?:\(.*\))?", re.DOTALL)


class LinkNames(SphinxTransform):
    """Wrap such code in a reference, except in titles and links."""

    default_priority = 500

    def apply(self):
        """Go through the code of a page."""
        for code in list(self.document.findall(nodes.literal)):
            match = CALL.fullmatch(code.astext())
            within = isinstance(
                code.parent, nodes.title | nodes.reference | pending_xref
            )
            if within or not match or match[1] not in wbn.__all__:
                continue
            link = pending_xref(
                refdomain="py",
                reftype="obj",
                reftarget=f"wbn.{match[1]}",
                refdoc=self.env.docname,
                refwarn=True,
            )
            code.replace_self(link)
            link += code


def setup(app):
    """Register with Sphinx."""
    app.add_transform(LinkNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
