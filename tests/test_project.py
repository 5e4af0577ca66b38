"""The repository keeps its promises: dependencies, versions, metadata."""

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

import wbn

ROOT = Path(__file__).resolve().parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYPROJECT = SETTINGS["project"]
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


def command(*arguments: str) -> str:
    """A program that is the wbn command with these arguments."""
    return f"import sys; sys.argv = ['wbn', *{arguments!r}]; from wbn.__main__ import main; main()"


@pytest.mark.parametrize(
    ("arguments", "package", "extra"),
    [
        (["--help"], "typer", "experiments"),
        (["sweep", "plan.toml"], "pandas", "experiments"),
        (["verify", ".", "--scheduler", "tcp://127.0.0.1:1"], "dask", "cluster"),
    ],
)
def test_command_without_extras_says_what_to_install(arguments, package, extra):
    done = run_blocking([package], command(*arguments))
    assert done.returncode == 1
    assert done.stderr == (
        f"This command needs {package!r}, which is not installed: "
        f"pip install 'weighted-batch-norm[{extra}]'\n"
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


def test_public_names_are_found_whatever_was_imported_before():
    code = (
        "import sys, wbn; assert 'torch' not in sys.modules\n"
        "import wbn.conversion, wbn.weights, wbn.loss\n"
        "from wbn import convert; assert wbn.convert is convert is wbn.conversion.convert\n"
        "assert set(wbn.__all__) <= set(dir(wbn)); exec('from wbn import *'); sample_weights\n"
        "assert not hasattr(wbn, 'nonsense')\n"
        "assert not hasattr(wbn, 'experiments'); assert 'pandas' not in sys.modules"
    )
    done = run_blocking([], code)
    assert done.returncode == 0, done.stderr


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


def test_source_distribution_holds_what_the_tests_read(tmp_path):
    made = shutil.ignore_patterns(
        "__pycache__", ".*_cache", ".ipynb_checkpoints", "*.csv", "*.jsonl", "*.so"
    )
    for folder in ("tests", "book", "results", "data_scripts", "benchmarks", "wbn", "tools", ".ci"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=made)  # a table is like another
    patterns = "*.md", "*.yml", "*.toml", "*.lock", "*.in", "*.cff", "*.py"
    patterns += "LICENSE", "Makefile", ".gitattributes"
    for path in [path for pattern in patterns for path in ROOT.glob(pattern)]:
        shutil.copy(path, tmp_path)
    files = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    build = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    (archive,) = (tmp_path / "dist").glob("weighted_batch_norm-*.tar.gz")
    with tarfile.open(archive) as members:
        packed = {name.partition("/")[2] for name in members.getnames()}
    assert len(files) > 100
    assert files <= packed, files - packed


@pytest.mark.parametrize("group", ["experiments", "book", "cluster", "test", "lab"])
def test_lock_pins_every_direct_dependency(group):
    groups = PYPROJECT["optional-dependencies"] | SETTINGS["dependency-groups"]
    direct = PYPROJECT["dependencies"] + groups[group]
    assert {name_of(requirement) for requirement in direct} <= PINNED


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
    wanted = "book test env data lint unit notebooks run-notebooks html lab serve bench reproduce"
    assert set(wanted.split()) <= targets
