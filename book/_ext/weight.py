"""Leave out scripts that pages load and do not use.

The theme draws its icons twice, with a web font and with a script of 1.5
MB, and loads search and formulas on pages that have none.
"""

import re
from pathlib import Path

SCRIPT = r'\s*<script[^>]*src="[^"]*{}[^"]*"[^>]*></script>'
ICONS = SCRIPT.format(r"scripts/fontawesome\.js")
FORMULAS = r"\s*<script>window\.MathJax = .*?</script>" + SCRIPT.format(
    r"mathjax/startup\.js"
)
SEARCH = SCRIPT.format(r"(?:searchtools|language_data|searchindex)\.js")


def without_scripts(page, name):
    """A page without the icons' script, and without those for formulas and
    for the search where there is none.

    >>> without_scripts('<script src="searchindex.js"></script>', "api")
    ''
    """
    page = re.sub(ICONS, "", page)
    if 'class="math ' not in page:
        page = re.sub(FORMULAS, "", page)
    return page if name == "search" else re.sub(SEARCH, "", page)


def lighten(app, exception):
    """Take these scripts out of the finished pages."""
    if exception or app.builder.name != "html":
        return
    out = Path(app.outdir)
    for page in out.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        page.write_text(without_scripts(text, page.stem), encoding="utf-8")
    (out / "_static" / "scripts" / "fontawesome.js").unlink()


def setup(app):
    """Register with Sphinx, after everything else that finishes a build."""
    app.connect("build-finished", lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
