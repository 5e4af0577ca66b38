"""Run the tests as other processors would: one setting of arithmetic after the other.

OpenBLAS (for NumPy and SciPy), ATen and MKL (for PyTorch) and NumPy itself choose their kernels by
the processor, and the kernels decide the last bits of a result. Each setting makes one of these
libraries choose as it would on another processor; the last one changes the number of threads.
Numbers computed from stored rows must be the same in print under all settings. Networks that are
trained again must agree within the tolerances of ``wbn verify``.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOGS = ROOT / "_build" / "machines"
# Each with what runs under it. The oldest kernels of each library differ most from ours, and run
# the notebooks as well.
SETTINGS = {
    "OPENBLAS_CORETYPE=Haswell": ["tests"],
    "OPENBLAS_CORETYPE=Zen": ["tests"],
    "OPENBLAS_CORETYPE=Nehalem": ["tests", "notebooks"],
    "NPY_DISABLE_CPU_FEATURES=X86_V3": ["tests"],
    "ATEN_CPU_CAPABILITY=avx2": ["tests"],
    "ATEN_CPU_CAPABILITY=default": ["tests", "notebooks"],
    "MKL_CBWR=COMPATIBLE": ["tests", "notebooks"],
    "OMP_NUM_THREADS=2": ["tests", "notebooks"],
}
# What computes nothing: stores, sweeps, the command, pages.
LEFT_OUT = (
    "tests/book", "tests/stacks", "tests/figures", "tests/stores", "tests/engine/test_fetch.py",
    *(f"tests/test_{name}.py" for name in (
        "machines", "cli", "project", "readme", "rooms", "surroundings", "environment", "tools",
    )),
)  # fmt: skip
PROBE = """
import numpy, scipy.linalg, torch
matrix = numpy.random.default_rng(0).normal(size=(64, 64))
scipy.linalg.inv(matrix @ matrix)
torch.nn.functional.batch_norm(torch.rand(64, 64) @ torch.rand(64, 64), None, None, training=True)
"""
PYTEST = ("-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider")
COMMANDS = {
    "probe": ("-c", PROBE),
    "tests": (*PYTEST, *(f"--ignore={path}" for path in LEFT_OUT)),
    "notebooks": (
        *PYTEST, "--dist=loadfile", "--nbval", "--nbval-current-env",
        "--nbval-sanitize-with=book/nbval_sanitize.cfg",
        *sorted(f"book/{path.name}" for path in ROOT.glob("book/*.ipynb")),
    ),
}  # fmt: skip


def run(setting: str, kind: str) -> tuple[bool, str]:
    """Whether a command passes under a setting, and its last line; the rest goes to a file."""
    name, _, value = setting.partition("=")
    log = LOGS / f"{name}-{value}-{kind}.log"
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "TQDM_DISABLE": "1",
        # Two workers; only one where each has two threads, which would wait for each other.
        "PYTEST_XDIST_AUTO_NUM_WORKERS": "1" if name == "OMP_NUM_THREADS" else "2",
        name: value,
    }
    if name == "ATEN_CPU_CAPABILITY":  # what torch compiled for one instruction set serves no other
        environment["TORCHINDUCTOR_CACHE_DIR"] = str(LOGS / "inductor" / value)
    with log.open("w") as file:
        command = [sys.executable, *COMMANDS[kind]]
        done = subprocess.run(command, cwd=ROOT, env=environment, stdout=file, stderr=file)
    last = log.read_text().splitlines()[-1:] or ["nothing was printed"]
    return done.returncode == 0, re.sub(r" in [\d.]+s.*", "", last[0].strip("= "))


def check(setting: str, kinds: list[str]) -> bool:
    """Try a setting, and print its line."""
    print(f"{setting:<32} ", end="", flush=True)
    if not run(setting, "probe")[0]:
        print("skipped: its probe fails, as it does where the processor lacks the instructions")
        return True
    started, passed = time.monotonic(), True
    for kind in kinds:
        good, said = run(setting, kind)
        print(f"{kind}: {said}; ", end="", flush=True)
        passed = passed and good
    print(f"{(time.monotonic() - started) / 60:.0f} minutes")
    return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("settings", nargs="*", metavar="NAME=VALUE", help="these settings only")
    parser.add_argument("--only", choices=["tests", "notebooks"])
    chosen = parser.parse_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    passed = True
    for setting in chosen.settings or SETTINGS:
        kinds = [chosen.only] if chosen.only else SETTINGS.get(setting, ["tests", "notebooks"])
        passed = check(setting, kinds) and passed
    if not passed:
        print(f"The whole output of what failed is in {LOGS.relative_to(ROOT)}.")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
