"""The wbn command as a person uses it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress

import pandas as pd
import psutil
import pytest
from typer.testing import CliRunner

from wbn import __version__
from wbn.cli import app

PLAN = """
seeds = 12
[[grid]]
experiment = "i"
method = ["lf_sbn", "wlf_wbn"]
hidden = 4
epochs = 1
"""


def wbn(*arguments):
    """Run the command in this process."""
    return CliRunner().invoke(app, [str(a) for a in arguments], env={"COLUMNS": "120"})


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


@pytest.mark.parametrize(
    "command", ["data", "reproduce", "sweep", "show", "verify", "claims", "weights"]
)
def test_help_has_an_example(command):
    shown = wbn(command, "--help")
    assert shown.exit_code == 0
    assert f"wbn {command}" in re.sub(r"\s+", " ", shown.output.split("Example")[1])


def test_version_is_the_packages():
    shown = wbn("--version")
    assert shown.exit_code == 0
    assert shown.output == f"wbn {__version__}\n"


def test_data_are_verified_where_they_are(tmp_path, monkeypatch):
    shown = wbn("data")
    assert shown.exit_code == 0
    assert "4 files verified in" in shown.output
    monkeypatch.setattr("wbn.experiments.fetch.default_sources", lambda: [])
    shown = wbn("data", "--folder", tmp_path / "empty")
    assert shown.exit_code == 1
    assert str(tmp_path / "empty" / "MNIST" / "raw") in shown.output


def test_missing_data_are_told_once_and_before_any_process_starts(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("WBN_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("wbn.experiments.sweep.LocalProcesses", None)
    sweep = ["sweep", plan, "--out", tmp_path / "store"]
    reproduce = ["reproduce", "--seeds", 2, "--out", tmp_path / "store"]
    for command in (sweep, reproduce):
        shown = wbn(*command)
        assert shown.exit_code == 1
        assert shown.output.count("no MNIST in") == 1
        assert f"{tmp_path / 'nowhere'}" in shown.output
        assert "`wbn data`" in shown.output


def test_weights_prints_the_weights_of_table_1():
    shown = wbn("weights", "5923,45", "--beta", "0.999")
    assert shown.exit_code == 0
    assert "132.622" in shown.output
    assert "66.3111" in shown.output
    assert "0.0227149" in shown.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["weights", "5923;45"], "as in 5923,45"),
        (["weights", "5923,0"], "class 1"),
        (["weights", "5923,45", "--beta", "1.5"], "1.5"),
        (["reproduce", "--experiment", "iv"], "i,ii,iii"),
        (["reproduce", "--seeds", "1"], "--seeds"),
        (["sweep", "missing.toml"], "missing.toml"),
        (["show", "missing"], "missing"),
        (["swep"], "swep"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, message):
    shown = wbn(*arguments)
    assert shown.exit_code == 2
    assert message in shown.output


def test_a_typo_in_a_plan_is_wrong_usage(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN.replace("wlf_wbn", "wlf_wnb"))
    shown = wbn("sweep", path, "--out", tmp_path / "store")
    assert shown.exit_code == 2
    assert "wlf_wnb" in shown.output
    assert not (tmp_path / "store").exists()


def test_reproduce_prints_and_writes_table_2(tmp_path):
    shown = wbn("reproduce", "--experiment", "i", "--seeds", 2, "--epochs", 1, "--out", tmp_path)
    assert shown.exit_code == 0
    assert "67.4" in shown.output
    table = pd.read_csv(tmp_path / "table_2.csv")
    assert len(table) == 9
    assert set(table.n) == {2}
    assert all(f" {100 * mean:.1f} " in shown.output for mean in table["mean"])
    assert (tmp_path / "curves.png").stat().st_size > 10_000


def test_sweep_then_show(plan, tmp_path):
    store = tmp_path / "store"
    store.mkdir()
    before = wbn("show", store, plan)
    assert before.exit_code == 0
    assert "24 runs missing" in before.output
    swept = wbn("sweep", plan, "--out", store)
    assert swept.exit_code == 0
    assert "24 runs" in swept.output
    after = wbn("show", store, plan)
    assert "nothing missing" in after.output
    assert "wlf_wbn" in after.output
    verified = wbn("verify", store, "--sample", 1)
    assert verified.exit_code == 0
    assert "1 identical" in verified.output


def test_an_unusable_folder_is_a_failure(plan, tmp_path):
    (tmp_path / "file").write_text("")
    shown = wbn("sweep", plan, "--out", tmp_path / "file" / "store")
    assert shown.exit_code == 1
    assert "Traceback" not in shown.output


def test_interrupt_keeps_what_is_finished_and_says_how_to_go_on(tmp_path):
    plan, store = tmp_path / "plan.toml", tmp_path / "store"
    plan.write_text(PLAN.replace("seeds = 12", "seeds = 4000"))
    command = [sys.executable, "-m", "wbn", "sweep", str(plan), "--out", str(store)]
    errors = tmp_path / "errors.txt"
    with (
        errors.open("w") as file,
        subprocess.Popen(
            command,
            stderr=file,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # not so in `make &`
        ) as job,
    ):
        try:
            while not (worker := a_worker_that_imports(job.pid)):
                assert job.poll() is None
            worker.send_signal(signal.SIGINT)  # workers leave Ctrl-C to their parent at all times
            while not list(store.glob("*.csv")):
                assert job.poll() is None
            os.killpg(job.pid, signal.SIGINT)
            job.wait(timeout=60)
        finally:  # a sweep that goes on would be waited for
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 130
    assert "resumes" in errors.read_text()
    assert "Traceback" not in errors.read_text()
    assert list(store.glob("*.csv"))


def a_worker_that_imports(parent):
    """A process of the pool that is still on its way to its first unit, None if there is none."""
    for process in psutil.Process(parent).children():
        with suppress(psutil.NoSuchProcess):  # it may end between two looks
            if "spawn_main" in " ".join(process.cmdline()) and process.cpu_times().user > 0.3:
                return process
    return None


def test_claims_need_their_stores(tmp_path):
    result = wbn("claims", tmp_path)
    assert result.exit_code == 2
    assert "there is no folder" in result.output
    assert "checkout" in result.output
    for name in ("family", "corrections"):
        (tmp_path / name).mkdir()
    result = wbn("claims", tmp_path)
    assert result.exit_code == 1
    assert "holds no results" in result.output
