"""The reference has every public name, and the chapter on use every message and code that runs."""

import inspect
import re
import subprocess
import sys

import pytest
from pages import BOOK, documented, markdown

import wbn
from wbn import accumulation, distributed
from wbn.analysis.messages import messages

MESSAGES = messages().message.unique()
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


def explained():
    """What the chapter quotes of messages."""
    section = re.search(r"\n## What can go wrong\n(.*?)\n## ", CHAPTER, re.DOTALL)[1]
    terms = re.findall(r"^(`.*)\n: ", section, re.MULTILINE)
    return [quote for term in terms for quote in re.findall(r"`(.+?)`", term)]


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_is_explained(message):
    assert any(quote in message for quote in explained())


@pytest.mark.parametrize("quote", explained())
def test_nothing_is_explained_that_is_not_said(quote):
    assert any(quote in message for message in MESSAGES)


def test_several_processes_run_what_the_chapter_shows(tmp_path):
    (script,) = re.findall(r"```python\n([^`]*init_process_group.*?)```", CHAPTER, re.DOTALL)
    (tmp_path / "train.py").write_text(script)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    subprocess.run(
        [*torchrun, "--nproc-per-node", "2", "train.py"], cwd=tmp_path, check=True, timeout=120
    )
