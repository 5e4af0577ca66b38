"""What the table of contents promises."""

from pathlib import Path

import yaml

BOOK = Path(__file__).resolve().parents[2] / "book"


def chapters() -> list[Path]:
    """Source files in reading order."""
    toc = yaml.safe_load((BOOK / "_toc.yml").read_text())
    names = [toc["root"], *(c["file"] for part in toc["parts"] for c in part["chapters"])]
    return [next(BOOK.glob(f"{name}.*")) for name in names]


def notebooks() -> list[Path]:
    """Those chapters that are notebooks."""
    return [path for path in chapters() if path.suffix == ".ipynb"]
