"""The repository keeps its promises: dependencies, versions, metadata."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import wbn

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYPROJECT = SETTINGS["project"]
STUDY = tomllib.loads((ROOT / "study" / "pyproject.toml").read_text())["project"]
PINNED = set(re.findall(r"^(\S+)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))


def name_of(requirement: str) -> str:
    return re.match(r"[A-Za-z0-9._-]+", requirement)[0].lower()


def run_blocking(blocked: list[str], code: str) -> subprocess.CompletedProcess:
    """Run `code` in a new interpreter in which the packages in `blocked` cannot be imported."""
    block = f"import sys; sys.modules.update(dict.fromkeys({blocked!r}))\n"
    return subprocess.run([sys.executable, "-c", block + code], capture_output=True, text=True)


EXTRA_MODULES = [
    "torchvision", "pandas", "scipy", "matplotlib", "seaborn", "tqdm", "typer", "rich", "dask",
    "distributed", "IPython",
]  # fmt: skip


def test_import_needs_torch_and_numpy_only():
    assert sorted(map(name_of, PYPROJECT["dependencies"])) == ["numpy", "torch"]
    code = "import wbn; [getattr(wbn, name) for name in wbn.__all__]"
    done = run_blocking(EXTRA_MODULES, code)
    assert done.returncode == 0, done.stderr


def command(*arguments: str) -> str:
    """A program that is the wbn command with these arguments."""
    return (
        f"import sys; sys.argv = ['wbn', *{arguments!r}]; from study.__main__ import main; main()"
    )


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["--help"], "typer", ""),
        (["sweep", "plan.toml"], "pandas", ""),
        (["verify", ".", "--scheduler", "tcp://127.0.0.1:1"], "dask", "[cluster]"),
    ],
)
def test_command_without_extras_says_what_to_install(arguments, package, extra):
    done = run_blocking([package], command(*arguments))
    assert done.returncode == 1
    assert done.stderr == (
        f"This command needs {package!r}, which is not installed: run "
        f"`pip install -e . -e './study{extra}'` in the clone\n"
    )


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--help"], ["torch", "numpy", "pandas", "matplotlib", "torchvision"]),
        (["--version"], ["torch", "numpy", "pandas", "matplotlib", "torchvision"]),
        (["weights", "5923,45"], ["pandas", "scipy", "matplotlib", "torchvision"]),
    ],
)
def test_a_command_imports_what_it_needs_only(arguments, unneeded):
    report = "; import atexit; atexit.register(lambda: print('imported', *sys.modules))"
    code = command(*arguments).replace("; from", report + "; from")
    done = run_blocking([], code)
    assert done.returncode == 0, done.stderr
    imported = done.stdout.splitlines()[-1].split()
    assert imported[0] == "imported"
    assert "typer" in imported
    assert not set(unneeded) & set(imported)


def test_public_names_are_typed_for_users(tmp_path):
    """As a user's mypy sees them; `convert` and `revert` keep the type of the model."""
    (tmp_path / "user.py").write_text(
        "import wbn\nfrom torch import nn\n"
        "model = nn.Sequential(nn.BatchNorm1d(3))\n"
        "kept: nn.Sequential = wbn.revert(wbn.convert(model))\n"
        "wrong: nn.Linear = wbn.convert(model)\n"
        "wbn.nonsense\n"
        "layer: wbn.WeightedBatchNorm = wbn.WeightedBatchNorm1d(3, correction='nonsense')\n"
        "weight = wbn.current_sample_weight()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", str(tmp_path / "user.py")],
        cwd=ROOT,  # for its settings and its cache
        capture_output=True,
        text=True,
    )
    lines = [line.split(":")[1] for line in done.stdout.splitlines() if ": error: " in line]
    assert lines == ["5", "6", "7"], done.stdout


def test_distributions_hold_the_method_only(tmp_path):
    made = shutil.ignore_patterns("__pycache__", ".*", "_build", "data", "*.egg-info", "*.so")
    shutil.copytree(ROOT, tmp_path / "clone", ignore=made)
    build = "from setuptools.build_meta import build_sdist as s, build_wheel as w; s('..'); w('..')"
    done = subprocess.run(
        [sys.executable, "-c", build], cwd=tmp_path / "clone", capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    (source,) = tmp_path.glob("weighted_batch_norm-*.tar.gz")
    with tarfile.open(source) as members:
        packed = {name.partition("/")[2] for name in members.getnames()}
    tracked = {str(path.relative_to(ROOT)) for path in (ROOT / "wbn").rglob("*.py")}
    assert tracked <= packed
    assert {name.split("/")[0] for name in packed if "/" in name} == {
        "wbn", "weighted_batch_norm.egg-info",
    }  # fmt: skip
    (wheel,) = tmp_path.glob("weighted_batch_norm-*.whl")
    assert wheel.stat().st_size < 1e6
    with zipfile.ZipFile(wheel) as members:
        tops = {name.split("/")[0] for name in members.namelist()}
    assert {top.split("-")[0] for top in tops} == {"wbn", "weighted_batch_norm"}


@pytest.mark.parametrize("group", ["book", "cluster", "test", "lab"])
def test_lock_pins_every_direct_dependency(group):
    groups = STUDY["optional-dependencies"] | SETTINGS["dependency-groups"]
    direct = PYPROJECT["dependencies"] + STUDY["dependencies"] + groups[group]
    wanted = {name_of(requirement) for requirement in direct} - {PYPROJECT["name"]}
    assert wanted <= PINNED


def test_versions_agree():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert wbn.__version__ == PYPROJECT["version"] == STUDY["version"] == citation["version"]


def test_readme_shows_the_two_commands_in_its_first_screen():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:25])
    assert "make book" in first_screen
    assert "make test" in first_screen


def test_make_lists_every_target_with_one_line():
    listing = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True).stdout
    targets = {line.split()[1] for line in listing.splitlines()}
    wanted = "book test env data lint unit notebooks run-notebooks html lab serve bench reproduce"
    assert set(wanted.split()) <= targets
