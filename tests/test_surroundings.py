"""A checkout that cannot be written, in the hands of an ordinary user."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from study.stores.plan import load_or_run
from study.stores.provenance import origin
from study.stores.store import Store

RESULTS = Path(__file__).parents[1] / "results"
# The check is made twice: in a copy, by whoever runs the tests, so that all is imported also where
# others cannot reach the interpreter; then by a user to whom permissions apply, and that is told.
PROGRAM = """
import json, os, sys
from pathlib import Path
from typer.testing import CliRunner
from study.cli import app
from study.stores import plan

def wbn(*arguments):
    shown = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return shown.exit_code, shown.output

for results in map(Path, sys.argv[2:]):
    plan.RESULTS = results
    answer = eval(sys.argv[1])
    os.getuid() or os.setuid(65534)
print(json.dumps(answer))
"""


@pytest.fixture
def results():
    """A folder for results that all users can reach; pytest's own are private."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder, "results")
        for path in Path(folder).rglob("*/"):
            path.chmod(0o755)


def ordinary_user(results, check):
    """What an ordinary user is told by `check`, an expression, where nothing can be written."""
    folders = [results, *results.rglob("*/")]
    before = {path: path.is_file() and path.read_bytes() for path in results.rglob("*")}
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(results, copy, dirs_exist_ok=True)
        for folder in folders:
            folder.chmod(0o555)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, check, copy, results],
            capture_output=True,
            text=True,
            env=os.environ | {"HOME": "/nonexistent", "WBN_DATA": "/nonexistent"},
        )
    assert (done.returncode, done.stderr) == (0, "")
    after = {path: path.is_file() and path.read_bytes() for path in results.rglob("*")}
    assert after == before
    return json.loads(done.stdout)


def test_stored_results_are_read(results):
    for name in ("probe", "family", "corrections"):
        shutil.copytree(RESULTS / name, results / name)
    rows, judged, shown = ordinary_user(
        results,
        "plan.load_or_run('probe').to_csv(), wbn('claims', results),"
        "wbn('show', results / 'probe', results / 'probe/plan.toml')",
    )
    assert rows == load_or_run("probe").to_csv()
    assert shown[0] == 0
    assert shown[1].endswith("nothing missing\n")
    assert judged[0] == 0
    assert "holds in" in judged[1]


def test_a_sweep_that_must_write_says_where_it_cannot(results):
    results.mkdir()
    (results / "plan.toml").write_text('seeds = 1\n[[grid]]\nexperiment = "i"\nmethod = "lf_sbn"')
    answers = ordinary_user(
        results,
        "[wbn('sweep', results / 'plan.toml', '--out', out) for out in (results, results / 'new')]",
    )
    assert answers == [
        [1, f"Failed: cannot write to the store {store}: Permission denied\n"]
        for store in (results, results / "new")
    ]


def test_what_another_user_wrote_is_read_and_damage_is_told(results):
    written, probe = Store(results), Store(RESULTS / "probe")
    written.prepare()
    (good, _), (bad, _) = probe.units()[:2]
    for unit in (bad, good):
        written.write(unit, probe.read(unit), origin(1.0))
    written.file.write_bytes(written.file.read_bytes().replace(b'"rows": ', b'"rows":  ', 1))
    code, output = ordinary_user(results, "wbn('show', results)")
    assert code == 0
    assert good.protocol.method in output.replace(bad.name, "")
    assert f"Warning: {written.file} has lines that are not used: line 1, {bad.name}" in output
