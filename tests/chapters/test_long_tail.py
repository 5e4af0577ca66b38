"""Variants are told apart and compared."""

import numpy as np
import pandas as pd
import pytest

from study.chapters.long_tail.comparisons import (
    CHOICES,
    VARIANTS,
    compared,
    gains,
    gaps,
    variant_means,
    wbn_minus_sbn,
)
from study.stores.plan import RESULTS, read_plan

ACCURACIES = {f"accuracy_{k}": 0.1 * k for k in range(10)}


@pytest.mark.parametrize("store", ["long_tail", "bare_output", "convolution"])
def test_every_protocol_of_the_plans_is_one_variant(store):
    protocols, _ = read_plan(RESULTS / store / "plan.toml")
    settings = ("experiment", "output_norm", "loss_normalizer")
    chosen = [
        ACCURACIES | {name: getattr(p.resolved(), name) for name in (*CHOICES, *settings)}
        for p in protocols
    ]
    named = compared(pd.DataFrame(chosen))
    assert not named.duplicated(["method", *settings]).any()
    assert set(named.method) == set(VARIANTS)


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({"method": "lf_sbn"}, "Plain + BN"),
        ({"method": "lf_sbn", "batch_order": "balanced"}, "Sampler + BN"),
        ({"method": "lf_sbn", "logit_adjustment": 1.0}, "Adjusted + BN"),
        ({"method": "wlf_sbn", "beta": 0.999}, "CB-weighted + BN"),
        ({"method": "wlf_wbn", "beta": 1.0}, "IF-weighted + WBN"),
    ],
)
def test_a_variant_has_the_name_of_what_it_does(choices, name):
    reference = {"beta": np.nan, "batch_order": "reshuffle", "logit_adjustment": 0.0}
    assert compared(pd.DataFrame([ACCURACIES | reference | choices])).method.tolist() == [name]


def test_accuracies_of_classes_are_taken_together():
    table = pd.DataFrame([ACCURACIES | dict(zip(CHOICES, VARIANTS["Plain + BN"], strict=True))])
    thirds = compared(table)[["accuracy_largest", "accuracy_middle", "accuracy_smallest"]]
    assert thirds.to_numpy()[0] == pytest.approx([0.1, 0.45, 0.8])
    assert table.method.tolist() == ["lf_sbn"]  # what was given is left as it was


def test_a_variant_that_is_not_compared_is_refused():
    other = dict(zip(CHOICES, ("wlf_sbn", 0.99, "reshuffle", 0.0), strict=True))
    with pytest.raises(ValueError, match=r"no variant has .*0\.99"):
        compared(pd.DataFrame([ACCURACIES | other]))


def test_gains_are_paired():
    keys = {"experiment": "lt10", "inference": "pooled", "evaluated_on": "test", "epoch": 20}
    score = {
        "Plain + BN": (0.50, 0.70),
        "Sampler + BN": (0.53, 0.75),
        "Adjusted + BN": (0.49, 0.69),
    }
    table = pd.DataFrame(
        keys
        | {"protocol": variant, "method": variant, "seed": seed}
        | {"accuracy_balanced": value, "accuracy_overall": 0.5}
        for variant, values in score.items()
        for seed, value in enumerate(values)
    )
    rows = gains(table, ["Sampler + BN", "Adjusted + BN"], "Plain + BN").set_index("method")
    assert rows["mean"].to_dict() == pytest.approx({"Sampler + BN": 0.04, "Adjusted + BN": -0.01})
    assert (gains(table, ["Sampler + BN"], "Plain + BN", "accuracy_overall")["mean"] == 0).all()


def test_weighted_minus_standard_compares_equal_weights():
    keys = {"experiment": "lt10", "inference": "pooled", "evaluated_on": "test", "epoch": 20}
    score = {
        "CB-weighted + BN": 0.9,
        "CB-weighted + WBN": 0.8,
        "IF-weighted + BN": 0.7,
        "IF-weighted + WBN": 0.75,
        "Plain + BN": 0.1,
    }
    table = pd.DataFrame(
        keys | {"protocol": variant, "method": variant, "seed": seed, "accuracy_balanced": value}
        for variant, value in score.items()
        for seed in range(2)
    )
    rows = wbn_minus_sbn(table).set_index("weights")
    assert rows["mean"].to_dict() == pytest.approx({"CB-weighted": -0.1, "IF-weighted": 0.05})


def test_gaps_say_which_network_and_which_statistics():
    keys = {"experiment": "lt10", "evaluated_on": "test", "epoch": 20}
    kinds = {"output BN": "batch_average", "output BN, pooled": "pooled"}
    higher = "pooled", "CB-weighted + WBN"
    tables = {
        setting: pd.DataFrame(
            keys | {"inference": kind, "protocol": variant, "method": variant, "seed": seed}
            | {"accuracy_balanced": 0.6 if (kind, variant) == higher else 0.5}
            for variant in VARIANTS
            for seed in range(2)
        )
        for setting, kind in kinds.items()
    }  # fmt: skip
    rows = gaps(tables)
    assert rows.setting.tolist() == ["output BN"] * 2 + ["output BN, pooled"] * 2
    assert set(rows.output) == {"with output BN"}
    assert rows.inference.tolist() == ["batch_average"] * 2 + ["pooled"] * 2
    assert rows["mean"].tolist() == pytest.approx([0, 0, 0.1, 0])


def test_means_of_variants_stand_in_the_order_of_variants_settings_and_ratios():
    score = {"second": 0.5, "first": 0.1}
    rows = {
        setting: pd.DataFrame(
            {"experiment": e, "method": variant, "accuracy_balanced": value + place / 100 + seed}
            for e in ("lt50", "lt100")
            for place, variant in reversed(list(enumerate(VARIANTS)))
            for seed in (-0.01, 0.01)
        )
        for setting, value in score.items()
    }
    rows["first"] = rows["first"][rows["first"].method != "Plain + BN"]
    means = variant_means(rows)
    assert means.index.tolist() == list(VARIANTS)
    assert means.columns.tolist() == [(s, e) for s in score for e in ("lt50", "lt100")]
    expected = 0.5 + np.arange(len(VARIANTS)) / 100
    assert means["second", "lt100"].to_numpy() == pytest.approx(expected)
    assert means["first", "lt50"].to_numpy()[1:] == pytest.approx(expected[1:] - 0.4)
    assert means["first"].loc["Plain + BN"].isna().all()
