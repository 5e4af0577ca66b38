"""Sentences of a page, and the numbers in them that no statement vouches for."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token
from pages import VERBATIM, markdown, myst_parser

from study.chapters.numbers import Statement

# The grid of verdicts, which test_readme compares.
CLAIMS = re.compile(r"<!-- wbn claims --grid -->.*?<!-- end -->", re.DOTALL)
WORDS = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen twenty thirty hundred half thirds quarters fifths twice"
)
# A number stands by itself: C1, nn.BatchNorm1d and two-class contain none.
NUMBER = re.compile(
    rf"(?<![\w.])(?<!\w-)(?:\d+(?:\.\d+)?|{'|'.join(WORDS.split())})(?![\w-])", re.I
)
SENTENCE = re.compile(r"(?<=[.?!]) (?=[A-Z\d])")
ELSEWHERE = "\u2026"  # replaces formulas, code and references


def normalized(text: str) -> str:
    """The text with one kind of space and of minus."""
    return re.sub(r"\s+", " ", text.replace("\u2212", "-")).strip()


def blocks(text: str, parser: MarkdownIt | None = None) -> Iterator[tuple[str, str]]:
    """Paragraphs and list items of MyST Markdown, each with the title of its section ("" at first).

    Text inside directives is included, headings and code are not.
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
    """Blocks of a page and of its captions: all of them, or those of the named sections."""
    found = blocks("\n\n".join(markdown(path)))
    return [block for section, block in found if not sections or section in sections]


def occurrences(pattern: str, block: str) -> list[range]:
    return [range(*m.span()) for m in re.finditer(pattern, block, re.IGNORECASE)]


def as_pattern(words: str) -> str:
    """What finds words as they are, not as a part of longer numbers or words."""
    return rf"(?<![\w.+-]){re.escape(normalized(words))}(?!\w|\.\d)"


def with_any_numbers(words: str) -> str:
    """What finds the words of a statement with any numbers in its places."""
    parts = re.split(r"\{.*?\}", normalized(words))
    return r"[-+]?[\w.]+(?: thirds| fifths| quarters)?".join(map(re.escape, parts))


def complaints(block: str, statements: Iterable[Statement], names: Iterable[str]) -> list[str]:
    """For each number of a block that no statement vouches for: its sentence, and what is computed.

    Parameters
    ----------
    block
        Of `prose`.
    statements
        Those that may vouch.
    names
        Patterns of text with numbers that need no statement.
    """
    patterns = [*names, *(as_pattern(statement.rendered()) for statement in statements)]
    vouched = [place for pattern in patterns for place in occurrences(pattern, block)]
    messages = []
    for number in NUMBER.finditer(block):
        at = number.start()
        if any(at in place for place in vouched):
            continue
        start = max((m.end() for m in SENTENCE.finditer(block, endpos=at + 1)), default=0)
        computed = [
            f"{statement.function.__qualname__} computes {statement.rendered()!r}"
            for statement in statements
            if any(at in place for place in occurrences(with_any_numbers(statement.words), block))
        ]
        says = "; or ".join(computed) or "no statement has such words"
        messages.append(f"{number.group()!r} in {SENTENCE.split(block[start:])[0]!r}: {says}")
    return messages
