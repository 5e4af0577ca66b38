"""The README's example runs as it stands."""

import re
from pathlib import Path

import torch

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
