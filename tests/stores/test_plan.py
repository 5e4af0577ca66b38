"""Grids in TOML files."""

import re
from concurrent.futures import ThreadPoolExecutor

import pandas as pd
import pytest

from study.stores.plan import load_or_run, read_plan
from study.stores.store import Store
from study.stores.sweep import sweep

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
    path.write_text(text, encoding="utf-8")
    return path


def test_grid_is_every_combination_once(tmp_path):
    protocols, seeds = read_plan(write(tmp_path, GRID))
    assert len(protocols) == 2 * 2 * 2 * 2
    assert len({p.hash for p in protocols}) == len(protocols)
    assert seeds == range(4)
    assert {p.inference for p in protocols} == {("pooled", "batch_average")}
    assert {p.eval_epochs for p in protocols} == {(1, 2), (20,)}


HEAD = 'seeds = 3\n[[grid]]\nexperiment = "i"\nmethod = "lf_sbn"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seeds = ", "^PATH is not valid TOML: "),
        ("seeds = 3\nseeds = 4", "^PATH is not valid TOML: "),
        ("seeds = " + "9" * 5000, "^PATH is not valid TOML: "),
        ("seeds = " + "[" * 100_000, "^PATH is not valid TOML: "),
        ("seeds = 3", r"^PATH: grid is None; write one or more \[\[grid\]\] tables"),
        ("seeds = 3\ngrid = []", "^PATH: grid is .*; write one or more"),
        ("seeds = 3\n[grid]\nmethod = 1", "^PATH: grid is .*; write one or more"),
        ("seeds = 3\ngrid = [1]", r"^PATH, \[\[grid\]\] 1: grid is 1; write \[\[grid\]\] "),
        ("[[grid]]", "^PATH: seeds is None; give a whole number from 1 to 100000"),
        ("seeds = 0\n[[grid]]", "^PATH: seeds is 0; "),
        ("seeds = -3\n[[grid]]", "^PATH: seeds is -3; "),
        ("seeds = true\n[[grid]]", "^PATH: seeds is True; "),
        ("seeds = 1_000_000_000\n[[grid]]", "^PATH: seeds is 1000000000; .* to 100000$"),
        ("seeds = 3\nseed = 1\n[[grid]]", "^PATH: no such entry: 'seed'; did you mean 'seeds'"),
        ("seeds = 3\nfirst_seed = -1\n[[grid]]", "^PATH: first_seed is -1; give a whole number fr"),
        ("seeds = 3\nfirst_seed = 1_000_000_001\n[[grid]]", "^PATH: first_seed .* to 1000000000$"),
        ("seeds = 3\nfirst_seed = 0.5\n[[grid]]", "^PATH: first_seed is 0.5; "),
        ("seeds = 3\nfirst_seed = true\n[[grid]]", "^PATH: first_seed is True; "),
        ("seeds = 3\nfirst_seed = '1'\n[[grid]]", "^PATH: first_seed is '1'; "),
        ("seeds = 3\nfirst_seed = [1]\n[[grid]]", r"^PATH: first_seed is \[1\]; "),
        ("first_seed = 3\n[[grid]]", "^PATH: seeds is None; "),
        ("seeds = 3\nfirst = 1\n[[grid]]", "^PATH: no such entry: 'first'; did you mean 'first_"),
        ('seeds = 3\n[[grid]]\nmethod = "lf_sbn"', "needs experiment"),
        (
            HEAD.replace("lf_sbn", "lfsbn"),
            r"^PATH, \[\[grid\]\] 1: method is 'lfsbn'; choose one",
        ),
        (HEAD + "[[grid]]\nhidden = []", r"^PATH, \[\[grid\]\] 2: hidden is \[\]; give at least"),
        (HEAD + "eval_epochs = []", r"\[\[grid\]\] 1: eval_epochs is \[\]; give at least one"),
        (HEAD + "eval_epochs = [[]]", r"\[\[grid\]\] 1: eval_epochs is \[\]; give a list of at"),
        (HEAD + "eval_epochs = [1, [2]]", r"\[\[grid\]\] 1: eval_epochs is 1; give a list"),
        (HEAD + "adam_betas = [0.9]", r"\[\[grid\]\] 1: adam_betas is \[0.9\]; give a list of 2"),
        (HEAD + "batch_size = inf", r"\[\[grid\]\] 1: batch_size is inf"),
        (
            HEAD + "hidden = 1979-05-27",
            r"\[\[grid\]\] 1: hidden is datetime.date\(1979, 5, 27\); give",
        ),
        (HEAD + "hidden = {a = 1}", r"\[\[grid\]\] 1: hidden is {'a': 1}; give"),
        (HEAD + "epoch = 3", r"\[\[grid\]\] 1: no such choice: 'epoch'; did you mean 'epochs'"),
        (
            HEAD + "epochs = 0",
            r"\[\[grid\]\] 1: epochs is 0; give a whole number from 1 to 1000000",
        ),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(ValueError, match=message.replace("PATH", re.escape(f"{path}"))) as error:
        read_plan(path)
    assert "\n" not in str(error.value)


def test_a_plan_is_utf_8(tmp_path):
    (path := tmp_path / "plan.toml").write_bytes(f"# 0,5 × β\n{HEAD}".encode("latin-1", "replace"))
    with pytest.raises(
        ValueError, match=r"plan.toml is not valid TOML: 'utf-8' codec can't decode"
    ):
        read_plan(path)
    path.write_bytes(f"# 0,5 × β\n{HEAD}".encode())
    assert len(read_plan(path)[0]) == 1


def test_combinations_are_counted_before_they_are_built(tmp_path, monkeypatch):
    numbers = list(range(1, 1001))
    many = f"{HEAD}hidden = {numbers}\nepochs = {numbers}\nbatch_size = {numbers}"
    monkeypatch.setattr("study.stores.plan.Protocol.from_dict", None)
    with pytest.raises(ValueError, match="1000000000 combinations; at most 100000 are allowed"):
        read_plan(write(tmp_path, many))


@pytest.mark.parametrize(
    ("more", "rows"),
    [
        ("epochs = 1_000_000", 100_000_000),
        ("epochs = [200_000, 200_001]", 40_000_100),
        ('epochs = 100_000\ninference = ["pooled", "batch_average"]', 20_000_000),
    ],
)
def test_rows_are_counted_before_anything_runs(tmp_path, more, rows):
    with pytest.raises(ValueError, match=f"plan.toml: .* 100 seeds give {rows} rows; at most 10"):
        read_plan(write(tmp_path, HEAD.replace("3", "100") + more))
    assert read_plan(write(tmp_path, HEAD.replace("3", "100") + f"{more}\neval_epochs = [1]"))


SMALL = """
seeds = 2
[[grid]]
experiment = "i"
method = ["lf_sbn", "wlf_sbn", "wlf_wbn"]
loss_normalizer = "dataset"
hidden = 4
epochs = 2
inference = ["pooled", "batch_average"]
"""


@pytest.mark.parametrize("first", [0, 100, 1_000_000_000])
def test_seeds_start_where_the_plan_says(tmp_path, first):
    assert read_plan(write(tmp_path, f"first_seed = {first}\n{HEAD}"))[1] == range(first, first + 3)


def test_a_plan_from_another_seed_is_run_and_stored_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr("study.stores.plan.RESULTS", tmp_path)
    (tmp_path / "later").mkdir()
    write(tmp_path / "later", f"first_seed = 119\n{HEAD}hidden = 4\nepochs = 1")
    with ThreadPoolExecutor(1) as executor:
        sweep(*read_plan(tmp_path / "later" / "plan.toml"), tmp_path / "later", executor)
    assert load_or_run("later").seed.tolist() == [119, 120, 121]
    assert {unit.seeds for unit, _ in Store(tmp_path / "later").units()} == {(119,), (120, 121)}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder of results with one store, of three methods after each of two epochs."""
    folder = tmp_path_factory.mktemp("results")
    (folder / "small").mkdir()
    with ThreadPoolExecutor(1) as executor:
        sweep(*read_plan(write(folder / "small", SMALL)), folder / "small", executor)
    return folder


@pytest.fixture
def small(results, monkeypatch):
    monkeypatch.setattr("study.stores.plan.RESULTS", results)
    return results / "small"


def test_stored_rows_come_with_the_choices_asked_for(small):
    table = load_or_run("small", "loss_normalizer", "hidden")
    by_method = table.groupby("method").loss_normalizer.unique().explode().to_dict()
    # Without weights the normalizer means nothing.
    assert by_method == {"lf_sbn": "batch", "wlf_sbn": "dataset", "wlf_wbn": "dataset"}
    assert set(table.hidden) == {4}
    assert len(Store(small).units()) == 3
    assert load_or_run("small").equals(table.drop(columns=["loss_normalizer", "hidden"]))


SELECTIONS = {
    "a column": ({"epoch": 2}, "epoch == 2"),
    "two columns": ({"epoch": 2, "inference": "pooled"}, "epoch == 2 and inference == 'pooled'"),
    "any of a list": ({"method": ["lf_sbn", "wlf_wbn"]}, "method != 'wlf_sbn'"),
    "any of a tuple": ({"inference": ("pooled", "last_epoch")}, "inference == 'pooled'"),
    "any of a range": ({"seed": range(1, 9)}, "seed == 1"),
    "a field": ({"loss_normalizer": "dataset"}, "method != 'lf_sbn'"),
    "a field that follows from the method": ({"output_norm": "weighted"}, "method == 'wlf_wbn'"),
    "a field and a column": ({"seed": 0, "weighting": "uniform"}, "seed == 0 and method=='lf_sbn'"),
    "a field without a value": ({"beta": None}, "seed >= 0"),
}


@pytest.mark.parametrize("case", SELECTIONS)
def test_stored_rows_are_those_selected(small, case):
    only, query = SELECTIONS[case]
    expected = load_or_run("small").query(query).reset_index(drop=True)
    assert len(expected) > 0
    pd.testing.assert_frame_equal(load_or_run("small", **only), expected)
    both = load_or_run("small", "output_norm", *(set(only) - set(expected)), **only)
    pd.testing.assert_frame_equal(both[list(expected)], expected)


def test_only_protocols_that_are_selected_are_read_or_run(small, monkeypatch):
    asked = []
    monkeypatch.setattr(
        "study.stores.plan.sweep", lambda p, *rest: asked.extend(p) or sweep(p, *rest)
    )
    load_or_run("small", loss_normalizer="dataset")
    assert [protocol.method for protocol in asked] == ["wlf_sbn", "wlf_wbn"]


@pytest.mark.parametrize(
    ("only", "message"),
    [
        ({"epochen": 1}, "no column 'epochen' .* inference, .*train_loss, and the fields of Proto"),
        ({"epoch": 3}, "epoch=3 leaves no row: epoch is one of 1, 2$"),
        ({"hidden": [5, 6]}, r"hidden=\[5, 6\] leaves no row: hidden is one of 4$"),
        ({"method": "lf_sbn", "output_norm": "none"}, "output_norm is one of 'standard'$"),
    ],
)
def test_a_selection_of_nothing_says_what_there_is(small, only, message):
    with pytest.raises(ValueError, match=message):
        load_or_run("small", **only)


def test_a_choice_that_is_no_field_is_refused(small):
    with pytest.raises(ValueError, match=r"no field .*'epoch'.* of Protocol: there are .*epochs"):
        load_or_run("small", "epoch")
