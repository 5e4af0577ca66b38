"""What `make env` installs, from where and with what."""

import importlib.util
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "tools" / "environment.py"
LOCK = (ROOT / "requirements.lock").read_text()


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """The script, in a checkout of its own."""
    spec = importlib.util.spec_from_file_location("environment", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    venv = tmp_path / ".venv"
    names = {"VENV": venv, "PYTHON": venv / "bin/python", "LOG": venv / "install.log"}
    names |= {"DONE": venv / ".installed", "BEFORE": venv / ".installed-before"}
    for name, value in names.items():
        monkeypatch.setattr(script, name, value)
    monkeypatch.setattr(script, "make_venv", lambda: venv.mkdir(exist_ok=True))
    return script


def test_lock_pins_with_hashes_and_without_addresses(environment):
    for entry in environment.entries(LOCK):
        pin, *hashes = entry.replace("\\\n", "\n").strip().split("\n")
        assert re.match(r"[a-z0-9.-]+==\S+( ; |\s*$)", pin)
        assert hashes
        assert all(line.strip().startswith("--hash=sha256:") for line in hashes)
    assert "://" not in LOCK


def test_without_cuda_whole_entries_go(environment):
    pins, rest = environment.for_cpu(LOCK)
    assert [pin.split("==")[0] for pin in pins] == ["torch", "torchvision"]
    before, after = environment.entries(LOCK), environment.entries(rest)
    gone = {entry.split("==")[0] for entry in before if entry not in after}
    assert {"torch", "torchvision", "triton", "nvidia-cublas", "cuda-toolkit"} <= gone
    assert all(re.match(r"torch(vision)?$|triton$|nvidia-|cuda-", name) for name in gone)
    assert "".join(after) == rest
    assert len(after) + len(gone) == len(before)


LISTED = """:env:.index-url='https://index.example/env'
global.cert='/certificates'
global.extra-index-url='file:///nowhere'
global.index-url='https://index.example/global'
install.index-url='https://index.example/install'
"""


def test_pips_settings_are_read_in_its_order(environment):
    lines = LISTED.splitlines(keepends=True)
    assert environment.settings(LISTED)["index-url"] == "https://index.example/env"
    assert environment.settings("".join(lines[1:]))["index-url"] == "https://index.example/install"
    assert environment.settings("".join(lines[1:4]))["index-url"] == "https://index.example/global"


def test_uv_is_given_pips_index_and_certificates_where_it_has_none(environment, tmp_path):
    pip = environment.settings(LISTED)
    empty = {"XDG_CONFIG_HOME": str(tmp_path)}
    assert environment.uv_environment(pip, empty) == empty | {
        "UV_DEFAULT_INDEX": "https://index.example/env",
        "SSL_CERT_FILE": "/certificates",
    }
    for own in ({"UV_INDEX_URL": "a"}, {"UV_DEFAULT_INDEX": "a"}, {"UV_CONFIG_FILE": "a"}):
        found = environment.uv_environment(pip, empty | own | {"SSL_CERT_FILE": "b"})
        assert found == empty | own | {"SSL_CERT_FILE": "b"}
    (tmp_path / "uv").mkdir()
    (tmp_path / "uv" / "uv.toml").touch()
    assert "UV_DEFAULT_INDEX" not in environment.uv_environment(pip, empty)


def installed(environment, monkeypatch, tool, *arguments):
    """Arguments of the calls that install, of a `tool` that writes them down."""
    log = environment.VENV.parent / "calls.txt"
    program = environment.VENV.parent / "tool"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{log}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(environment, "get_uv", lambda: str(program) if tool == "uv" else None)
    monkeypatch.setattr(environment, "environment_of_uv", dict)
    monkeypatch.setattr(environment, "PIP", [str(program), "pip"])
    environment.install(*arguments or [None])
    return [line.split("--no-deps ")[1] for line in log.read_text().splitlines()]


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_the_lock_and_then_the_package_are_installed(environment, monkeypatch, tool, capsys):
    lock, package = installed(environment, monkeypatch, tool)
    assert lock == f"--require-hashes -r {ROOT / 'requirements.lock'}"
    assert package.endswith("-e . -e ./study")
    assert environment.DONE.exists()
    assert re.search(rf"GB, with {tool} in \d+ seconds", capsys.readouterr().out)


@pytest.mark.parametrize("tool", ["uv", "pip"])
def test_pytorch_for_the_cpu_comes_from_its_index(environment, monkeypatch, tool):
    torch, lock, _ = installed(environment, monkeypatch, tool, "https://index.example/cpu")
    assert re.fullmatch(r"--index-url https://index.example/cpu torch==\S+ torchvision==\S+", torch)
    assert lock == f"--require-hashes -r {environment.VENV / 'cpu.lock'}"


def failing(error):
    def install_packages(index):
        raise error

    return install_packages


def test_after_an_interrupt_everything_is_made_anew(environment, monkeypatch):
    """A package that uv was interrupted in counts as installed when it is called again."""
    installed(environment, monkeypatch, "uv")
    with monkeypatch.context() as patch:
        patch.setattr(environment, "install_packages", failing(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            environment.install(None)
    assert not environment.DONE.exists()
    made = []
    monkeypatch.setattr(environment, "make_venv", lambda: made.append(True))
    installed(environment, monkeypatch, "uv")
    assert made == [True]


def test_what_cannot_be_fetched_leaves_the_environment_as_it_was(environment, monkeypatch):
    installed(environment, monkeypatch, "uv")
    before = environment.DONE.stat().st_mtime_ns
    environment.LOG.write_text("no such host\n")
    error = subprocess.CalledProcessError(1, ["uv"])
    monkeypatch.setattr(environment, "install_packages", failing(error))
    with pytest.raises(SystemExit, match="Is there a network"):
        environment.install(None)
    assert environment.DONE.stat().st_mtime_ns == before


def test_make_asks_for_the_index_of_the_cpu():
    command = ["make", "env", "CPU=1", "PYTHON=false", "--assume-new=pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "make env CPU=1 TORCH_INDEX=..." in done.stdout
