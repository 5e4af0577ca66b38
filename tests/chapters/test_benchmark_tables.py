"""The stored benchmarks, and what is computed from them."""

import pandas as pd
import pytest

from study.chapters.benchmarks import tables as benchmarks
from study.chapters.benchmarks.tables import geometric_mean, slope, table


def test_ratios_are_a_table_of_shapes_and_threads(monkeypatch):
    rows = [
        {"use": use, "shape": shape, "threads": threads, "candidate": candidate, "ratio": ratio}
        for use, shape, threads, candidate, ratio in [
            ("training", "9 x 9", 1, "weights", 2.0),
            ("training", "3 x 3", 1, "weights", 1.0),
            ("training", "9 x 9", 2, "weights", 4.0),
            ("training", "3 x 3", 2, "weights", 3.0),
            ("training", "9 x 9", 1, "nn.BatchNorm", 1.0),
            ("inference", "9 x 9", 1, "weights", 7.0),
        ]
    ]
    monkeypatch.setattr(benchmarks, "table", lambda name: pd.DataFrame(rows))
    found = benchmarks.ratios("training", "weights")
    assert list(found.index) == ["9 x 9", "3 x 3"]
    assert found[1].tolist() == [2.0, 1.0]
    assert found[2].tolist() == [4.0, 3.0]
    assert geometric_mean(found[2]) == pytest.approx(12**0.5)


def test_a_compiled_layer_is_compared_with_both_kinds_of_torchs():
    found = benchmarks.other_uses().xs("compiled, to the eager one").stack()
    rows = table("layers").query("use == 'compiled'")
    times = rows.pivot(index=["shape", "threads"], columns="candidate", values="microseconds")
    expected = times["compiled"] / times["eager"]
    assert len(found) == len(expected)
    ratios = found / expected
    assert ratios.between(0.5, 2).all()  # medians of ratios, ratios of medians


def test_slopes_of_powers():
    rows = pd.DataFrame({"size": [1, 2, 4, 8], "time": [3.0, 6.0, 12.0, 24.0]})
    assert slope(rows, "time") == pytest.approx(1)
    assert slope(rows.assign(time=5.0), "time") == pytest.approx(0)


def test_every_ratio_lies_between_its_quartiles():
    for name in ("layers", "models", "engine"):
        rows = table(name)
        assert (rows["low"] <= rows["ratio"]).all()
        assert (rows["ratio"] <= rows["high"]).all()
        assert (rows["rounds"] >= 3).all()


def test_our_layer_has_every_behavior():
    rows = table("conformance")
    assert rows[rows["alternative"] == "wbn"]["passes"].all()
    assert rows.groupby("alternative")["behavior"].nunique().nunique() == 1


def test_tables_for_readers_name_shapes_and_threads():
    found = benchmarks.side_by_side("training", ours="weights", none="no weights")
    assert list(found) == [
        "ours, 1 thread", "ours, 2 threads", "none, 1 thread", "none, 2 threads"
    ]  # fmt: skip
    ratios = benchmarks.ratios("training", "weights")
    assert found.loc["100 × 2", "ours, 2 threads"] == round(ratios.loc["100 x 2", 2], 2)
    uses = benchmarks.shown(benchmarks.other_uses())
    assert list(uses) == ["1 thread", "2 threads"]
    assert ("bfloat16", "256 × 1024") in uses.index
