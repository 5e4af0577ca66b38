"""The repository keeps its promises: dependencies, versions, metadata."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import wbn

ROOT = Path(__file__).resolve().parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text().splitlines()
PINS = dict(line.split("==") for line in LOCK if "==" in line)


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()


def run_blocking(blocked: list[str], code: str) -> subprocess.CompletedProcess:
    """Run `code` in a new interpreter in which the packages in `blocked` cannot be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True)


EXTRA_MODULES = [
    "torchvision", "pandas", "scipy", "matplotlib", "seaborn", "tqdm", "typer", "rich", "dask",
    "distributed",
]  # fmt: skip


def test_import_needs_torch_and_numpy_only():
    assert sorted(map(name_of, PYPROJECT["dependencies"])) == ["numpy", "torch"]
    code = "import wbn; [getattr(wbn, name) for name in wbn.__all__]"
    done = run_blocking(EXTRA_MODULES, code)
    assert done.returncode == 0, done.stderr


def test_experiments_and_analysis_import_without_torchvision_and_loading_asks_for_it():
    rooms = [ROOT / "wbn" / room for room in ("experiments", "analysis")]
    modules = [
        f"wbn.{path.parent.name}.{path.stem}" for room in rooms for path in room.glob("*.py")
    ]
    code = f"import wbn.experiments, {', '.join(m for m in modules if '__' not in m)}"
    done = run_blocking(["torchvision"], f"{code}\nwbn.experiments.load_split('i', 0)")
    assert "read by torchvision, which is not installed: pip install" in done.stderr
    done = run_blocking(["torchvision"], code)
    assert done.returncode == 0, done.stderr


def test_command_without_extras_says_what_to_install():
    code = "import sys; sys.argv = ['wbn', '--help']; from wbn.__main__ import main; main()"
    done = run_blocking(["typer"], code)
    assert done.returncode == 1
    assert "pip install 'wbn[experiments]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_lock_starts_with_the_command_that_regenerates_it():
    assert LOCK[0].startswith("#")
    assert LOCK[0].endswith("make lock")


def test_every_line_of_the_lock_is_an_exact_pin():
    assert all(re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in LOCK[1:])


@pytest.mark.parametrize("extra", [None, *PYPROJECT["optional-dependencies"]])
def test_lock_pins_every_direct_dependency(extra):
    direct = PYPROJECT["optional-dependencies"][extra] if extra else PYPROJECT["dependencies"]
    assert {name_of(requirement) for requirement in direct} <= PINS.keys()


def test_conda_environment_is_the_locked_one():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    *conda, pip = environment["dependencies"]
    assert pip == {"pip": ["-r requirements.lock", "-e ."]}
    python = re.search(r"Python (3\.\d+)", LOCK[0])[1]
    assert conda == [f"python={python}", "pip"]


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert wbn.__version__ == PYPROJECT["version"] == citation["version"]


def test_readme_shows_the_two_commands_in_its_first_screen():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:25])
    assert "make book" in first_screen
    assert "make test" in first_screen


def test_make_lists_every_target_with_one_line():
    listing = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True).stdout
    targets = {line.split()[1] for line in listing.splitlines()}
    wanted = "book test env data lint unit notebooks run-notebooks html serve bench reproduce clean"
    assert set(wanted.split()) <= targets
