"""The reference has every public name, and the chapter on use has code that runs."""

import inspect
import re
import subprocess
import sys

import pytest
from pages import BOOK, documented, markdown

import wbn
from wbn import accumulation, distributed

CHAPTER = "\n\n".join(markdown(BOOK / "12_using_wbn.ipynb"))


def public(module):
    """Functions and classes that a module defines for others."""
    found = inspect.getmembers(module, lambda o: inspect.isfunction(o) or inspect.isclass(o))
    own = [name for name, o in found if o.__module__ == module.__name__ and name[0] != "_"]
    return {f"{module.__name__}.{name}" for name in own}


def test_reference_has_every_public_name():
    names = {f"wbn.{name}" for name in wbn.__all__}
    names |= public(distributed) | public(accumulation) | {"wbn.normalization"}
    assert sorted(documented((BOOK / "api.md").read_text())) == sorted(names)


@pytest.mark.parametrize("name", wbn.__all__)
def test_page_has_an_entry(html, name):
    assert f'id="wbn.{name}"' in (html / "api.html").read_text()


def test_several_processes_run_what_the_chapter_shows(tmp_path):
    (script,) = re.findall(r"```python\n([^`]*init_process_group.*?)```", CHAPTER, re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    subprocess.run(
        [*torchrun, "--nproc-per-node", "2", "train.py"], cwd=tmp_path, check=True, timeout=120
    )
