"""The README's example runs as it stands, and its verdicts are those of the results."""

import re
from pathlib import Path

import torch
from typer.testing import CliRunner

from study.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text()


def test_usage_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len([line for line in example.splitlines() if line.strip()]) <= 10
    names = {}
    exec(example, names)
    assert all(p.grad is not None and p.grad.isfinite().all() for p in names["model"].parameters())
    kinds = {type(m) for m in names["deployed"].modules()}
    assert torch.nn.BatchNorm2d in kinds
    with torch.no_grad():
        assert names["deployed"](names["images"]).isfinite().all()


def test_grid_of_verdicts_is_what_the_stored_results_say(monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[1])
    result = CliRunner().invoke(app, ["claims", "--grid"])
    assert result.exit_code == 0, result.output
    (printed,) = re.findall(r"<!-- wbn claims --grid -->\n(.*?)\n<!-- end -->", README, re.DOTALL)
    assert result.output.strip() == printed.strip()


def test_pictures_are_there_for_light_and_dark():
    pictures = re.findall(r'(?:src|srcset)="(.*?)"', README)
    assert pictures == ["book/_static/hero-dark.svg", "book/_static/hero-light.svg"]
    assert all((Path(__file__).parents[1] / picture).is_file() for picture in pictures)
    assert len(re.search(r'alt="(.*?)"', README)[1]) > 100
