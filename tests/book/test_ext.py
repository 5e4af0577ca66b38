"""The book's own Sphinx extensions: the logo, and what a page says when its address is known."""

import doctest
import importlib.util
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from math import pi

import pytest
from conftest import ROOT
from pages import BOOK

EXTENSIONS = BOOK / "_ext"
ADDRESS = "https://example.org/wbn"


@pytest.fixture(scope="module")
def logo():
    sys.path.insert(0, str(EXTENSIONS))
    import logo

    sys.path.remove(str(EXTENSIONS))
    return logo


def test_pictures_are_what_the_code_draws(logo):
    for name, text in logo.PICTURES.items():
        assert (BOOK / "_static" / name).read_text(encoding="utf-8") == text


def test_examples_run(logo):
    assert doctest.testmod(logo) == (0, 1)


def test_area_is_weight_and_lines_are_the_means(logo):
    svg = ElementTree.fromstring(logo.PICTURES["logo-light.svg"])
    circles = [c for c in svg if c.tag.endswith("circle")]
    areas = [pi * float(c.get("r")) ** 2 for c in circles]
    xs = [float(c.get("cx")) for c in circles]
    weights = [area / areas[0] for area in areas]
    means = sum(xs) / len(xs), sum(w * x for w, x in zip(weights, xs, strict=True)) / sum(weights)
    lines = [float(p.get("d")[1:].split()[0]) for p in svg if p.tag.endswith("path")]
    assert weights[-1] == pytest.approx(len(xs) - 1, rel=1e-3)
    assert lines == pytest.approx(means, rel=1e-3)


PAGE = 'A "title" & more\n================\n\nWhy so?\n'


def build(folder, page=PAGE, extensions="page", **environment):
    """Build a book of one page with the extensions; return the folder of its HTML."""
    folder.joinpath("intro.rst").write_text(page)
    options = {
        "extensions": extensions,
        "root_doc": "intro",
        "html_title": "The book",
        "html_theme": "basic",
        "templates_path": BOOK / "_templates",
        "html_additional_pages.404": "404.html",
    }
    settings = [f"-D{name}={value}" for name, value in options.items()]
    clean = {k: v for k, v in os.environ.items() if k != "WBN_BOOK_URL"}
    subprocess.run(
        [sys.executable, "-m", "sphinx", "-qWC", "-b", "html", *settings, ".", "html"],
        cwd=folder,
        env=clean | {"PYTHONPATH": os.pathsep.join(map(str, (EXTENSIONS, ROOT)))} | environment,
        check=True,
    )
    return folder / "html"


def test_known_address_is_used_throughout(tmp_path):
    html = build(tmp_path, WBN_BOOK_URL=ADDRESS)
    page = (html / "intro.html").read_text()
    assert f'<link rel="canonical" href="{ADDRESS}/intro.html" />' in page
    assert f'<meta property="og:url" content="{ADDRESS}/intro.html" />' in page
    assert f'<meta property="og:image" content="{ADDRESS}/_static/card.png" />' in page
    assert '<meta property="og:title" content="A “title” &amp; more" />' in page
    assert '<meta name="description" content="Why so?" />' in page
    assert f'<base href="{ADDRESS}/404.html" />' in (html / "404.html").read_text()
    assert struct.unpack(">II", (html / "_static/card.png").read_bytes()[16:24]) == (1200, 630)


def test_no_address_is_made_up(tmp_path):
    html = build(tmp_path)
    page = (html / "intro.html").read_text()
    assert '<meta property="og:title"' in page
    for absent in ("canonical", "og:url", "og:image"):
        assert absent not in page
    assert "<base" not in (html / "404.html").read_text()
    assert not (html / "_static/card.png").exists()


NAMES = """
``convert`` in a title
======================

``revert`` ``wbn.revert`` ``revert(model)`` and ``reverted`` ``x.revert`` ``revert =`` |link|_

.. |link| replace:: ``revert()``
.. _link: #

.. py:function:: wbn.revert
.. py:function:: wbn.convert
"""


def test_names_in_prose_are_linked(tmp_path):
    page = (build(tmp_path, NAMES, "names") / "intro.html").read_text()
    title, prose = re.search(r"<h1>(.*?)</h1>.*?<p>(.*?)</p>", page, re.DOTALL).groups()
    assert "wbn.convert" not in title
    linked = re.findall(r'<a [^>]*href="#wbn.(\w+)"[^>]*>(.*?)</a>', prose)
    texts = [re.sub(r"<.*?>", "", text) for _, text in linked]
    assert texts == ["revert", "wbn.revert", "revert(model)"]
    assert {name for name, _ in linked} == {"revert"}


def test_name_without_an_entry_stops_the_build(tmp_path):
    with pytest.raises(subprocess.CalledProcessError):
        build(tmp_path, f"{PAGE}\n``convert``\n", "names")


GLOSSARY = """
Words
=====

.. glossary::

   reading
       One way.

{glossary}

reading
    One way.
"""
TERMS = """
A reading in a title
====================

About 3 % of *readings*, ``reading`` code and a second reading of Table 2. No proofreading.

3 % here::

   3 % there
"""


def test_words_of_the_glossary_are_linked_once_and_numbers_keep_their_units(tmp_path):
    tmp_path.joinpath("notation.rst").write_text(":orphan:\n" + GLOSSARY)
    page = (build(tmp_path, TERMS, "prose") / "intro.html").read_text()
    assert re.findall(r'href="notation.html#term-reading">(.*?)</a>', page) == [
        '<span class="term">readings</span>'
    ]
    assert len(re.findall("3\u00a0%", page)) == 2
    assert "\u00a0" not in re.search("<pre>.*?</pre>", page, re.DOTALL)[0]
    assert "Table\u00a02" in page


def test_examples_of_prose_run():
    # Not by its name, which a module of these tests has too.
    spec = importlib.util.spec_from_file_location("extension", EXTENSIONS / "prose.py")
    extension = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(extension)
    assert doctest.testmod(extension) == (0, 1)
