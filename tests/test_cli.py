"""The wbn command as a person uses it."""

import io
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pandas as pd
import psutil
import pytest
from typer.testing import CliRunner

from study.__main__ import main
from study.cli import app
from study.stores.store import Store
from wbn import __version__

PATIENCE = 600  # seconds: a guard against hanging, which a busy machine must not reach

RESULTS = Path(__file__).parents[1] / "results"
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
    monkeypatch.setattr("study.engine.fetch.default_sources", lambda: [])
    shown = wbn("data", "--folder", tmp_path / "empty")
    assert shown.exit_code == 1
    assert str(tmp_path / "empty" / "MNIST" / "raw") in shown.output


def test_missing_data_are_told_once_and_before_any_process_starts(plan, tmp_path, monkeypatch):
    monkeypatch.setenv("WBN_DATA", str(tmp_path / "nowhere"))
    monkeypatch.setattr("study.stores.sweep.LocalProcesses", None)
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
        (["weights", "99999999999999999999999,1"], "at most 15 digits"),
        (["weights", "9" * 5000], "at most 15 digits"),
        (["weights", "٣,1"], "as in 5923,45"),
        (["weights", "5923,45", "--beta", "1.5"], "1.5"),
        (["weights", "5923,45", "--beta", "nan"], "nan"),
        (["reproduce", "--experiment", "iv"], "i,ii,iii"),
        (["reproduce", "--seeds", "1"], "--seeds"),
        (["reproduce", "--seeds", "1000000000"], "--seeds is 1000000000; give a whole number"),
        (["reproduce", "--epochs", "1000000000"], "--epochs is 1000000000; give a whole number"),
        (["reproduce", "--seeds", "90000", "--epochs", "90000"], "at most 10000000 fit in one"),
        (["sweep", "missing.toml"], "missing.toml"),
        (["show", "missing"], "missing"),
        (["show", "[red]missing[/]:smile:"], "[red]missing[/]:smile:"),
        (["show", "a" * 300], "there is no folder"),
        (["show", __file__], "there is no folder"),
        (["show", ".", "[bold]missing[/nothing].toml"], "[bold]missing[/nothing].toml"),
        (["verify", __file__], "there is no folder"),
        (["claims", __file__], "there is no folder"),
        (["swep"], "swep"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, message):
    shown = wbn(*arguments)
    assert shown.exit_code == 2
    assert message in unwrapped(shown.output)


def unwrapped(output):
    """What typer's box around an error says, in one line."""
    return re.sub(r"\W*\n\W*│ ", " ", output)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\xff\xfe", "is not valid TOML"),
        ("seeds = 1 # é".encode("utf-16"), "is not valid TOML"),
        (b"seeds = 1", "write one or more [[grid]] tables"),
        (None, "directory"),
    ],
    ids=["binary", "UTF-16", "no grid", "a folder"],
)
def test_an_odd_plan_is_wrong_usage(tmp_path, content, message):
    file = tmp_path / "plan [1].toml"
    file.mkdir() if content is None else file.write_bytes(content)
    for command in (["sweep", file, "--out", tmp_path / "store"], ["show", tmp_path, file]):
        shown = wbn(*command)
        assert shown.exit_code == 2
        assert message in unwrapped(shown.output)
    assert not (tmp_path / "store").exists()


def test_weights_of_thousands_of_classes_are_printed():
    shown = wbn("weights", ",".join(map(str, range(1, 2001))))
    assert shown.exit_code == 0
    assert shown.output.count("2.001e+06") >= 1  # N / N_1 = K (K + 1) / 2


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
    rows = wbn("show", store, "--csv")
    assert rows.output.startswith("protocol,experiment,method,")
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(rows.output)), Store(store).table())
    assert wbn("show", store, plan, "--csv").exit_code == 2
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
    command = [sys.executable, "-m", "study", "sweep", str(plan), "--out", str(store)]
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
            while not Store(store).units():
                assert job.poll() is None
            os.killpg(job.pid, signal.SIGINT)
            job.wait(timeout=PATIENCE)
        finally:  # a sweep that goes on would be waited for
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)
    assert job.returncode == 130
    assert "resumes" in errors.read_text()
    assert "Traceback" not in errors.read_text()
    assert Store(store).units()


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
    assert "clone" in result.output
    for name in ("family", "corrections"):
        (tmp_path / name).mkdir()
    result = wbn("claims", tmp_path)
    assert result.exit_code == 1
    assert "holds no results" in result.output


DAMAGE = {
    "not JSON": lambda path: path.write_bytes(b"\x00\xff\n"),
    "a list": lambda path: path.write_text("[1, 2]\n"),
    "another object": lambda path: path.write_text('{"seeds": [0]}\n'),
    "deeply nested": lambda path: path.write_text("[" * 100_000 + "\n"),
    "a torn line": lambda path: path.write_text('{"sha256": "8a17'),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.filterwarnings("default")  # they are shown to a user
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_store_with_damaged_or_foreign_files_is_told_in_lines(tmp_path, damage):
    for folder in (tmp_path / "family", tmp_path / "corrections"):
        folder.mkdir()
        DAMAGE[damage](folder / "runs.jsonl")
        (folder / "notes.json").write_text("{")
    for command in (["show", tmp_path / "family"], ["claims", tmp_path]):
        shown = wbn(*command)
        assert shown.exit_code in (0, 1)
        assert shown.exception is None or isinstance(shown.exception, SystemExit)
        lines = shown.output.splitlines()
        assert lines
        assert all(line.startswith(("Warning: ", "Failed: ", f"{tmp_path}")) for line in lines)


def wbn_process(*arguments, **environment):
    """Run the command in a process of its own, as a person does."""
    return subprocess.run(
        [sys.executable, "-m", "study", *map(str, arguments)],
        capture_output=True,
        env=os.environ | environment,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=PATIENCE,
    )


def test_whatever_else_goes_wrong_is_told_in_a_line(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["wbn", "weights", "1,2"])
    monkeypatch.setattr("wbn.weights.rescale", lambda *_: {}["missing"])
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == "Failed unexpectedly: KeyError('missing')"


@pytest.mark.parametrize("command", [["weights", "5923,45"], ["show", "."], ["sweep", "no.toml"]])
def test_an_interrupt_at_any_moment_is_told_in_a_line(command):
    program = (
        f"import sys; sys.argv = ['wbn', *{command}]; from study.__main__ import main\n"
        "print('started', flush=True); main()"
    )
    # What a press gives that comes between the two calls of this program's second line.
    before_main = (
        "Traceback (most recent call last):\n"
        '  File "<string>", line 2, in <module>\n'
        "KeyboardInterrupt\n"
    )
    for press in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", program],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # not so in `make &`
        ) as job:
            assert job.stdout.readline() == "started\n"
            time.sleep(press * 0.2)  # seconds, of one to three that the imports take
            job.send_signal(signal.SIGINT)
            _, errors = job.communicate(timeout=PATIENCE)
        if job.returncode == 130:
            assert errors == "Interrupted.\n"
        else:  # it was done before, or on its way out, when Python lets signals through
            done = 2 if command[0] == "sweep" else 0
            assert job.returncode in (done, -signal.SIGINT)
            assert "Traceback" not in errors.removeprefix(before_main)


def without_site(program):
    """Run a program with nothing loaded before it but what Python needs, and what `site` uses."""
    return subprocess.run(
        [sys.executable, "-S", "-c", f"import os, sys\n{program}"], capture_output=True, text=True
    )


def test_nothing_is_imported_before_interrupts_are_handled():
    loaded = without_site(
        "before = set(sys.modules); import study.__main__; print(sorted({*sys.modules} - before))"
    )
    assert loaded.stdout == "['study', 'study.__main__']\n"


def test_an_interrupt_of_the_first_import_is_told_in_a_line():
    pressed = without_site("""
class Press:
    def find_spec(name, *_):
        if name == "signal":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Press)
from study.__main__ import main
main()""")
    assert (pressed.returncode, pressed.stderr) == (130, "Interrupted.\n")


NO_UTF_8 = {"LC_ALL": "C", "PYTHONUTF8": "0"}


def test_without_utf_8_plans_are_read_and_stores_written_and_shown(tmp_path):
    folder = tmp_path / "a folder [é] β"
    folder.mkdir()
    file = folder / "plän.toml"
    file.write_text(f"# 0,5 × β\n{PLAN}".replace("12", "1"), encoding="utf-8")
    swept = wbn_process("sweep", file, "--out", folder / "störe", **NO_UTF_8)
    assert (swept.returncode, swept.stderr) == (0, "")
    assert "2 protocols, 2 runs, 2 rows" in swept.stdout
    shown = wbn_process("show", folder / "störe", file, **NO_UTF_8)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "nothing missing" in shown.stdout
    file.write_text(f"{PLAN}\nβ = 1", encoding="utf-8")
    refused = wbn_process("show", folder / "störe", file, **NO_UTF_8)
    assert refused.returncode == 2
    assert "TOML" in refused.stderr


def test_what_a_terminal_cannot_show_is_replaced(tmp_path):
    (folder := tmp_path / "é [β]").mkdir()
    shown = wbn_process("show", folder, PYTHONIOENCODING="ascii")
    assert shown.stdout == f"{tmp_path / '? [?]'} holds no results\n"
    for command in (["--help"], ["claims", RESULTS]):
        shown = wbn_process(*command, **NO_UTF_8)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.isascii()


def test_a_path_is_printed_as_it_is(tmp_path):
    (folder := tmp_path / "[red]a[bold] :smile:").mkdir()
    assert wbn("show", folder).output == f"{folder} holds no results\n"
