"""Fill .venv with the packages of requirements.lock: by uv, or by pip where there is no uv.

    python tools/environment.py install [INDEX]  # INDEX: of PyTorch's CPU wheels, to leave out CUDA
    python tools/environment.py uv ARGUMENT ...  # the uv of .venv

This script runs before anything is installed, so it imports nothing but the standard library.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements.lock"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
DONE = VENV / ".installed"  # the target of make env
BEFORE = VENV / ".installed-before"
LOG = VENV / "install.log"
UV = "uv==0.13.8"
PIP = [str(PYTHON), "-m", "pip", "--disable-pip-version-check"]

CUDA = re.compile(r"(torch|torchvision|triton)==|(nvidia|cuda)-")
LARGE = re.compile(r"Downloading (\S+) \((\d{3,}[\d.]*) ?Mi?B\)")
HANDED_OVER = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE"}  # from pip to uv


def entries(lock: str) -> list[str]:
    """Requirements of a lock file, each with the lines of its hashes."""
    return re.findall(r"^[^\s#].*\n(?:[ \t].*\n)*", lock, re.MULTILINE)


def for_cpu(lock: str) -> tuple[list[str], str]:
    """Pins of PyTorch, and a lock without it and without CUDA."""
    pins = [entry.split()[0] for entry in entries(lock) if re.match("torch(vision)?==", entry)]
    return pins, "".join(entry for entry in entries(lock) if not CUDA.match(entry))


def settings(listed: str) -> dict[str, str]:
    """What `pip config list` prints, as pip install reads it: later sections win."""
    found = re.findall(r"^(global|install|:env:)\.(\S+?)=(.+)$", listed, re.MULTILINE)
    order = "global", "install", ":env:"
    found.sort(key=lambda setting: order.index(setting[0]))
    return {name: ast.literal_eval(value) for _, name, value in found}


def uv_environment(pip: Mapping[str, str], environ: Mapping[str, str]) -> dict[str, str]:
    """Variables for uv, which does not read pip's settings: pip's index where uv has none."""
    home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    files = home / "uv" / "uv.toml", Path("/etc/uv/uv.toml")
    variables = "UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_CONFIG_FILE"
    has_index = any(map(environ.get, variables)) or any(file.exists() for file in files)
    handed = {HANDED_OVER[name]: value for name, value in pip.items() if name in HANDED_OVER}
    if has_index:
        handed.pop("UV_DEFAULT_INDEX", None)
    return handed | dict(environ)


def make_venv() -> None:
    print("Creating .venv ...", flush=True)
    command = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}Creating .venv failed.")


def get_uv() -> str | None:
    """Path of the uv of .venv, which pip installs there; None where it can't."""
    if subprocess.run([*PIP, "--version"], capture_output=True).returncode:
        make_venv()
    command = [*PIP, "install", "--quiet", "--retries=1", "--only-binary=:all:", UV]
    done = subprocess.run(command, capture_output=True, text=True)
    LOG.write_text(done.stderr)
    return str(VENV / "bin" / "uv") if done.returncode == 0 else None


def environment_of_uv() -> dict[str, str]:
    listed = subprocess.run([*PIP, "config", "list"], capture_output=True, text=True).stdout
    return uv_environment(settings(listed), os.environ)


def progress(lines: Iterator[str]) -> None:
    """Log all lines, and print those of large downloads."""
    with LOG.open("a") as log:
        for line in lines:
            log.write(line)
            if found := LARGE.search(line):
                name = re.split(r"-\d", found[1])[0]
                print(f"  downloading {name}, {found[2]} MB", flush=True)


def install(torch_index: str | None) -> None:
    start = time.monotonic()
    if DONE.exists():
        DONE.rename(BEFORE)
    else:  # after an interrupt uv takes a half-installed package for an installed one
        make_venv()
    try:
        tool = install_packages(torch_index)
    except subprocess.CalledProcessError:
        print(*LOG.read_text().splitlines()[-6:], sep="\n")
        if BEFORE.exists():
            BEFORE.rename(DONE)
        sys.exit(
            "Installing failed; the whole output is in .venv/install.log. Is there a network, and "
            "a package index in reach? (`pip config list` shows pip's settings.)"
        )
    BEFORE.unlink(missing_ok=True)
    DONE.touch()
    count = len(list(VENV.glob("lib/*/site-packages/*.dist-info")))
    size = sum(file.lstat().st_size for file in VENV.rglob("*")) / 1e9
    seconds = time.monotonic() - start
    print(f"Installed {count} packages, {size:.1f} GB, with {tool} in {seconds:.0f} seconds.")


def install_packages(torch_index: str | None) -> str:
    """Install the lock and both packages of the clone; return the name of what installed them."""
    uv = get_uv()
    if uv:
        command, environ = [uv, "pip", "install", f"--python={PYTHON}"], environment_of_uv()
    else:
        print(f"{UV} can't be installed (see .venv/install.log): pip takes some minutes.")
        command, environ = [*PIP, "install", "--progress-bar=off"], dict(os.environ)

    def run(*arguments: str) -> None:
        with subprocess.Popen(
            [*command, "--no-deps", *arguments],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            progress(process.stdout)
        if process.returncode:
            raise subprocess.CalledProcessError(process.returncode, process.args)

    lock = LOCK
    if torch_index:
        pins, rest = for_cpu(LOCK.read_text())
        print(f"Installing {' and '.join(pins)} from TORCH_INDEX ...", flush=True)
        run("--index-url", torch_index, *pins)
        lock = VENV / "cpu.lock"
        lock.write_text(rest)
    size = "2 GB" if torch_index else "6 GB"
    print(f"Installing the packages of requirements.lock (about {size} in all) ...", flush=True)
    run("--require-hashes", "-r", str(lock))
    print("Installing wbn, whose compiled part is built here, and the study ...", flush=True)
    run("--no-build-isolation", "--force-reinstall", "-e", ".", "-e", "./study")
    return "uv" if uv else "pip"


def main(command: str, *arguments: str) -> None:
    if sys.version_info < (3, 11):  # noqa: UP036, it may be run by an older one
        version = sys.version.split()[0]
        sys.exit(f"wbn needs Python 3.11 or newer, this is {version}: make PYTHON=python3.12 ...")
    if command == "install":
        install(*arguments or [None])
    elif uv := get_uv():
        os.execve(uv, [uv, *arguments], environment_of_uv())
    else:
        sys.exit(f"{LOG.read_text()}This needs {UV}, which pip could not install.")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("Interrupted. The same command starts again.")
