"""Run notebooks in place, as many at once as cores and memory allow, with a line for each.

Usage: ``python tools/run_notebooks.py NOTEBOOK ...``
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import psutil

KERNEL_BYTES = 3e9  # what a kernel may take; the largest takes half of it
NOISE = "Kernel is running over TCP"  # what Jupyter says of each kernel


def at_once() -> int:
    """How many kernels the cores and the free memory bear."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS and Windows lack it
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, int(psutil.virtual_memory().available / KERNEL_BYTES)))


def run(notebook: str) -> tuple[float, str | None]:
    """The seconds that a notebook takes on one thread, and what it said if it failed."""
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "jupyter", "nbconvert", "--log-level=WARN", "--to=notebook",
         "--execute", "--inplace", "--ExecutePreprocessor.record_timing=False", notebook],
        env={**os.environ, "OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1"},
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    said = "".join(line for line in done.stderr.splitlines(True) if NOISE not in line)
    return time.monotonic() - started, said if done.returncode else None


def main(notebooks: list[str]) -> int:
    """Run them, the largest first, since it is likely to take longest."""
    order = sorted(notebooks, key=lambda name: -Path(name).stat().st_size)
    width, failed = at_once(), []
    print(f"Running {len(order)} notebooks, {width} at a time ...", flush=True)
    with ThreadPoolExecutor(width) as pool:
        running = {pool.submit(run, notebook): Path(notebook).stem for notebook in order}
        try:
            for number, future in enumerate(as_completed(running), start=1):
                (seconds, said), name = future.result(), running[future]
                how = "" if said is None else "FAILED after "
                print(f"[{number}/{len(order)}] {name}: {how}{seconds:.0f} s", flush=True)
                if said is not None:
                    failed.append(name)
                    print(said, file=sys.stderr, flush=True)
        except KeyboardInterrupt:  # the kernels were interrupted too
            pool.shutdown(cancel_futures=True)
            return 130
    if failed:
        print(f"{len(failed)} of {len(order)} notebooks failed: {', '.join(failed)}.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
