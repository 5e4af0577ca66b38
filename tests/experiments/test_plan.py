"""Grids in TOML files."""

import pytest

from wbn.experiments.plan import read_plan, stored

GRID = """
seeds = 4
[[grid]]
experiment = ["i", "iii"]
method = ["lf_sbn", "wlf_wbn"]
learning_rate = [1e-3, 1e-2]
inference = ["pooled", "batch_average"]
eval_epochs = [[1, 2], [20]]
[[grid]]
experiment = "i"
method = "lf_sbn"
inference = ["pooled", "batch_average"]
eval_epochs = [20]
"""


def write(folder, text):
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_grid_is_every_combination_once(tmp_path):
    protocols, seeds = read_plan(write(tmp_path, GRID))
    assert len(protocols) == 2 * 2 * 2 * 2
    assert len({p.hash for p in protocols}) == len(protocols)
    assert seeds == range(4)
    assert {p.inference for p in protocols} == {("pooled", "batch_average")}
    assert {p.eval_epochs for p in protocols} == {(1, 2), (20,)}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = ", "not valid TOML"),
        ("seeds = 3", "grid"),
        ("seeds = 0\n[[grid]]", "at least 1"),
        ("seeds = 3\nseed = 1\n[[grid]]", "seed"),
        ('seeds = 3\n[[grid]]\nmethod = "lf_sbn"', "needs experiment"),
        ('seeds = 3\n[[grid]]\nexperiment = "i"\nmethod = "lfsbn"', "method is 'lfsbn'"),
    ],
)
def test_mistakes_are_named(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_plan(write(tmp_path, text))


def test_stored_rows_come_with_the_choices_asked_for(tmp_path, monkeypatch):
    text = """
seeds = 1
[[grid]]
experiment = "i"
method = ["lf_sbn", "wlf_sbn"]
loss_normalizer = "dataset"
hidden = 4
epochs = 1
"""
    folder = tmp_path / "small"
    folder.mkdir()
    write(folder, text)
    monkeypatch.setattr("wbn.experiments.plan.RESULTS", tmp_path)
    table = stored("small", "loss_normalizer", "hidden")
    assert table.loss_normalizer.tolist() == [
        "batch",
        "dataset",
    ]  # without weights it means nothing
    assert table.hidden.tolist() == [4, 4]
    assert len(list(folder.glob("*.csv"))) == 2
    assert stored("small").equals(table.drop(columns=["loss_normalizer", "hidden"]))
