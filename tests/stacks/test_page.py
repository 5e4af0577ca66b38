"""The chapter on use: its Lightning module, taken from the page, is the plain loop."""

import json
import re
from pathlib import Path

import lightning
import torch

import wbn

CHAPTER = Path(__file__).parents[2] / "book" / "12_using_wbn.ipynb"


def test_lightning_in_15_lines(images, small, by_hand, tmp_path):
    cells = json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells)
    (block,) = re.findall(r"```python\n(import lightning.*?)```", text, re.DOTALL)
    assert len([line for line in block.splitlines() if line.strip()]) <= 15
    names = {}
    exec(block, names)
    start = {name: value.clone() for name, value in small.state_dict().items()}
    trainer = lightning.Trainer(
        accelerator="cpu", max_epochs=1, default_root_dir=tmp_path, logger=False,
        enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False,
    )  # fmt: skip
    counts = wbn.class_counts(images.labels)
    trainer.fit(names["Classifier"](small, counts), images.loader())
    fitted = {name: value.clone() for name, value in small.state_dict().items()}
    small.load_state_dict(start)
    torch.testing.assert_close(fitted, dict(by_hand(small)))
