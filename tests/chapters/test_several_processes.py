"""The demonstration as a reader runs it."""

import os
import re
import subprocess
import sys


def test_two_processes_match_one():
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    done = subprocess.run(
        [sys.executable, *command, "-m", "study.chapters.several_processes"],
        capture_output=True,
        text=True,
        timeout=300,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert "[33, 67] images" in done.stdout
    assert "816" in done.stdout
    assert done.stdout.endswith("matches one process\n")
    apart = float(re.search(r"without sharing the moments: (\S+)", done.stdout)[1])
    assert apart > 1e-3  # it does matter
