"""Sentences of a page, the numbers in them, and whether the ledger vouches for each."""

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pages import VERBATIM, markdown, myst_parser

from study.chapters.ledger import Statement

CLAIMS = re.compile(
    r"<!-- wbn claims --grid -->.*?<!-- end -->", re.DOTALL
)  # compared by test_readme
WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen "
    "fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty hundred half "
    "thirds quarters fifths twice"
)
# A number stands by itself: C1, nn.BatchNorm1d and two-class hold none.
NUMBER = re.compile(
    rf"(?<![\w.])(?<!\w-)(?:\d+(?:\.\d+)?|{'|'.join(WORDS.split())})(?![\w-])", re.I
)
SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z\d])")
ELSEWHERE = "\u2026"  # in place of a formula, of code and of a reference


def normalized(text: str) -> str:
    """One kind of space and of minus, so that line breaks and typography make no difference."""
    return re.sub(r"\s+", " ", text.replace("\u2212", "-")).strip()


def blocks(text: str, parser: MarkdownIt | None = None) -> Iterator[tuple[str, str]]:
    """Paragraphs and list items of MyST Markdown, each with the section it is in, "" at first.

    Directives are opened, headings and code left out.
    """
    parser = parser or myst_parser()
    section, heading = "", ""
    for token in parser.parse(CLAIMS.sub("", text)):
        directive = token.type in ("fence", "colon_fence") and token.info.strip()
        if token.type in ("heading_open", "heading_close"):
            heading = token.tag if token.type == "heading_open" else ""
        elif token.type == "inline" and heading:
            section = token.content if heading == "h2" else section
        elif token.type == "inline":
            yield section, normalized("".join(map(_words, token.children)))
        elif directive and directive.startswith("{") and not directive.startswith(VERBATIM):
            inside = re.sub(r"^:\w+:.*$", "", token.content, flags=re.MULTILINE)
            yield from ((section, block) for _, block in blocks(inside, parser))


def _words(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type == "text" else ELSEWHERE if token.content else ""


def prose(path: Path, sections: Iterable[str] = ()) -> list[str]:
    """Blocks of a page: those of the named sections, or all of them and the captions."""
    if not sections:
        return [block for text in markdown(path) for _, block in blocks(text)]
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = "\n\n".join("".join(c["source"]) for c in cells if c["cell_type"] == "markdown")
    return [block for section, block in blocks(text) if section in sections]


def occurrences(pattern: str, block: str) -> list[range]:
    return [range(*m.span()) for m in re.finditer(pattern, block, re.IGNORECASE)]


def as_pattern(words: str) -> str:
    """What finds words as they are, not as a part of longer numbers or words."""
    return rf"(?<![\w.+-]){re.escape(normalized(words))}(?!\w|\.\d)"


def with_any_numbers(words: str) -> str:
    """What finds words of a statement with whatever numbers in its places."""
    return r"[-+]?[\w.]+(?: thirds| fifths| quarters)?".join(
        re.escape(part) for part in normalized(words).split("{}")
    )


def disagreements(
    block: str, ledger: Iterable[tuple[Statement, str]], names: Iterable[str]
) -> list[str]:
    """For each number of a block that no statement vouches for: the sentence and its source.

    Parameters
    ----------
    block
        Of `prose`.
    ledger
        Statements, and each as it is rendered.
    names
        Patterns of what holds a number and states none.
    """
    ledger = list(ledger)
    vouched = [r for name in names for r in occurrences(name, block)]
    vouched += [r for _, rendered in ledger for r in occurrences(as_pattern(rendered), block)]
    messages = []
    for number in NUMBER.finditer(block):
        if any(number.start() in r for r in vouched):
            continue
        starts = [0, *(m.end() for m in SENTENCE.finditer(block))]
        start = max(s for s in starts if s <= number.start())
        sentence = SENTENCE.split(block[start:])[0]
        meant = [
            f"the source ({statement.source}) says {rendered!r}"
            for statement, rendered in ledger
            if any(
                number.start() in r for r in occurrences(with_any_numbers(statement.words), block)
            )
        ]
        says = "; or ".join(meant) or "no statement of the ledger has such words"
        messages.append(f"{number.group()!r} in {sentence!r}: {says}")
    return messages
