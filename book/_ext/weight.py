"""Leave out what pages load and do not use.

The theme draws its icons twice, with a web font and with a script of 1.5
MB, has a rule for each icon there is, and loads search and formulas on
pages that have none. Style sheets come with their comments.
matplotlib writes every style again for every dot, and coordinates to a
millionth of a point.
"""

import re
from pathlib import Path

SCRIPT = r'\s*<script[^>]*src="[^"]*{}[^"]*"[^>]*></script>'
ICONS = SCRIPT.format(r"scripts/fontawesome\.js")
FORMULAS = r"\s*<script>window\.MathJax = .*?</script>" + SCRIPT.format(
    r"mathjax/startup\.js"
)
SEARCH = SCRIPT.format(r"(?:searchtools|language_data|searchindex)\.js")
ICON_RULE = re.compile(r'((?:\.fa-[\w-]+:before,?)+)\{content:"\\\w+"\}')
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


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


def without_icons(css, used):
    r"""A style sheet without the icons that no page has.

    >>> icon = '.fa-x:before,.fa-y:before{content:"\\f0"}'
    >>> without_icons(icon, {"fa-y"}) == icon, without_icons(icon, {"fa-z"})
    (True, '')
    """

    def kept(rule):
        names = set(re.findall(r"fa-[\w-]+", rule[1]))
        return rule[0] if names & used else ""

    return ICON_RULE.sub(kept, css)


def without_layout(css):
    r"""A style sheet without comments, and with a space for white space.

    >>> without_layout("a {\n  b: c; /* d */\n}")
    'a { b: c; }'
    """
    return re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", "", css, flags=re.S))


def smaller(svg):
    """A figure of matplotlib: styles once, short names, places to 0.01.

    >>> dot = '<use id="a" x="1.23456" y="-0.0001" style="fill: red"/>'
    >>> smaller("<svg><style></style>" + dot + dot + "</svg>")[:47]
    '<svg><style>.s0{fill: red}</style><use x="1.23"'
    """
    svg = re.sub(
        r"<\?xml.*?\?>|<!DOCTYPE.*?>|<metadata>.*?</metadata>|<!--.*?-->",
        "",
        svg,
        flags=re.S,
    )
    named = set(re.findall(r"#([\w-]+)", svg))
    svg = re.sub(
        r' id="([^"]*)"', lambda m: m[0] if m[1] in named else "", svg
    )
    svg = re.sub(
        r' (?:d|x|y)="[^"]*"', lambda m: NUMBER.sub(rounded, m[0]), svg
    )
    svg = re.sub(
        r' d="[^"]*"', lambda m: re.sub(r"\s*([A-Zz])\s*", r"\1", m[0]), svg
    )
    ids = dict.fromkeys(re.findall(r' id="([^"]*)"', svg))
    short = {name: f"i{n}" for n, name in enumerate(ids)}
    svg = re.sub(
        r'( id="|#)([\w-]+)(?=["\)])',
        lambda m: m[1] + short.get(m[2], m[2]),
        svg.replace("xlink:href=", "href="),
    )
    styles = {}
    svg = re.sub(
        r' style="([^"]*)"',
        lambda m: f' class="s{styles.setdefault(m[1], len(styles))}"',
        svg,
    )
    rules = "".join(f".s{n}{{{style}}}" for style, n in styles.items())
    svg = ungrouped(svg.replace("</style>", f"{rules}</style>", 1))
    return re.sub(r"\s*\n\s*", " ", svg).replace("> <", "><").strip()


def ungrouped(svg):
    """Without groups that say nothing or have nothing.

    >>> ungrouped('<g><g class="s0"><g><use/><g id="a"/></g></g></g>')
    '<g class="s0"><use/></g>'
    """
    kept = []

    def tag(match):
        if match[0].endswith("/>"):
            return ""
        if match[0] == "</g>":
            return match[0] if kept.pop() else ""
        kept.append(match[0] != "<g>")
        return match[0] if kept[-1] else ""

    return re.sub(r"<g[^>]*>|</g>", tag, svg)


def rounded(number):
    """Two digits behind the point, and no more than are needed."""
    text = f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def rewrite(path, change, *arguments):
    """Change the text of a file."""
    text = path.read_text(encoding="utf-8")
    path.write_text(change(text, *arguments), encoding="utf-8")


def lighten(app, exception):
    """Do all this to the finished pages."""
    if exception or app.builder.name != "html":
        return
    out = Path(app.outdir)
    used = set()
    for page in out.glob("*.html"):
        rewrite(page, without_scripts, page.stem)
        used |= set(
            re.findall(r"fa-[\w-]+", page.read_text(encoding="utf-8"))
        )
    styles = out / "_static" / "styles"
    if (theme := styles / "pydata-sphinx-theme.css").exists():
        rewrite(theme, without_icons, used)
        (out / "_static" / "scripts" / "fontawesome.js").unlink()
    for sheet in (out / "_static").rglob("*.css"):
        rewrite(sheet, without_layout)
    for figure in (out / "_images").glob("*.svg"):
        rewrite(figure, smaller)


def setup(app):
    """Register with Sphinx, after everything else that finishes a build."""
    app.connect("build-finished", lighten, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
