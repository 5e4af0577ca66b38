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


def test_the_wheel_says_that_it_is_typed():
    assert (ROOT / "wbn" / "py.typed").is_file()
    assert SETTINGS["tool"]["setuptools"]["package-data"]["wbn"] == ["py.typed", "native/*"]


def test_source_distribution_holds_what_the_tests_read(tmp_path):
    made = shutil.ignore_patterns("__pycache__", ".*_cache", ".ipynb_checkpoints", "*.csv", "*.so")
    for folder in ("tests", "book", "results", "data_scripts", "benchmarks", "wbn", ".ci"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=made)  # a table is like another
    patterns = "*.md", "*.yml", "*.toml", "*.lock", "*.in", "*.cff", "*.py", "LICENSE", "Makefile"
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


@pytest.fixture
def installed(tmp_path):
    """What `make env` calls in a fresh checkout, by a Python that writes its arguments down."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml", "setup.py"):
        shutil.copy(ROOT / name, tmp_path)
    folder = tmp_path / ".venv" / "bin"
    folder.mkdir(parents=True)
    log = tmp_path / "log.txt"
    (folder / "python").write_text(f'#!/bin/sh\necho "$@" >> "{log}"\n')
    (folder / "python").chmod(0o755)

    def run(*arguments: str) -> tuple[subprocess.CompletedProcess, list[str]]:
        command = ["make", "env", "PLATFORM=Linux x86_64", *arguments]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return done, log.read_text().splitlines() if log.exists() else []

    return run


def test_environment_for_the_cpu_leaves_out_cuda(installed, tmp_path):
    done, calls = installed("CPU=1", "TORCH_INDEX=https://index.example/cpu")
    assert done.returncode == 0, done.stderr
    from_index, from_lock, package = calls
    pins = [f"{name}=={PINS[name]}" for name in ("torch", "torchvision")]
    assert from_index.endswith(f"--no-deps --index-url https://index.example/cpu {' '.join(pins)}")
    assert from_lock.endswith("--no-deps -r _build/cpu.lock")
    assert package.endswith("-e .")
    kept = {line.split("==")[0] for line in (tmp_path / "_build/cpu.lock").read_text().split("\n")}
    gone = {name for name in PINS if name not in kept}
    assert {"torch", "torchvision", "triton", "nvidia-cublas", "cuda-toolkit"} <= gone
    assert all(re.match(r"(torch|torchvision|triton)$|nvidia-|cuda-", name) for name in gone)


def test_environment_for_the_cpu_asks_for_the_index(installed):
    done, calls = installed("CPU=1")
    assert done.returncode != 0
    assert "TORCH_INDEX" in done.stdout
    assert calls == []


def test_environment_installs_the_whole_lock_otherwise(installed):
    done, calls = installed()
    assert done.returncode == 0, done.stderr
    assert [call.split("--no-deps ")[1] for call in calls] == [
        "-r requirements.lock",
        "--no-build-isolation -e .",
    ]


def test_oldest_versions_are_the_bounds_of_pyproject():
    shown = subprocess.run(["make", "-n", "test-oldest"], cwd=ROOT, capture_output=True, text=True)
    (code,) = re.findall(r"python3 -c '(import tomllib.*?)'\)", shown.stdout, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    extras = PYPROJECT["optional-dependencies"]["experiments"]
    bounds = [r for r in PYPROJECT["dependencies"] + extras if name_of(r) != "pandas"][:3]
    assert done.stdout.split() == [bound.replace(">=", "==") for bound in bounds]
    assert {name_of(bound) for bound in bounds} == {"torch", "numpy", "torchvision"}
    for module in ("conversion", "functional", "layers", "weights"):
        assert f"wbn/{module}.py" in shown.stdout
        assert f"tests/test_{module}.py" in shown.stdout


def test_lock_starts_with_the_command_that_regenerates_it():
    assert LOCK[0].startswith("#")
    assert LOCK[0].endswith("make lock")


def test_every_line_of_the_lock_is_an_exact_pin():
    assert all(re.fullmatch(r"[a-z0-9._-]+==[A-Za-z0-9.+!]+", line) for line in LOCK[1:])


@pytest.mark.parametrize(
    "extra", [None, *sorted(PYPROJECT["optional-dependencies"].keys() - {"stacks", "bench"})]
)
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
