"""Arms are told apart and compared."""

import numpy as np
import pandas as pd
import pytest

from wbn.analysis.long_tail import (
    ARMS,
    CHOICES,
    arm_means,
    compared,
    gains,
    wbn_minus_sbn,
)
from wbn.experiments.plan import RESULTS, read_plan

ACCURACIES = {f"accuracy_{k}": 0.1 * k for k in range(10)}


@pytest.mark.parametrize("store", ["long_tail", "bare_output", "convolution"])
def test_every_protocol_of_the_plans_is_one_arm(store):
    protocols, _ = read_plan(RESULTS / store / "plan.toml")
    settings = ("experiment", "output_norm", "loss_normalizer")
    chosen = [
        ACCURACIES | {name: getattr(p.resolved(), name) for name in (*CHOICES, *settings)}
        for p in protocols
    ]
    named = compared(pd.DataFrame(chosen))
    assert not named.duplicated(["method", *settings]).any()
    assert set(named.method) == set(ARMS)


@pytest.mark.parametrize(
    ("choices", "name"),
    [
        ({"method": "lf_sbn"}, "plain"),
        ({"method": "lf_sbn", "batch_order": "balanced"}, "sampler"),
        ({"method": "lf_sbn", "logit_adjustment": 1.0}, "logit adj."),
        ({"method": "wlf_sbn", "beta": 0.999}, "CB + sBN"),
        ({"method": "wlf_wbn", "beta": 1.0}, "IF + WBN"),
    ],
)
def test_an_arm_has_the_name_of_what_it_does(choices, name):
    reference = {"beta": np.nan, "batch_order": "reshuffle", "logit_adjustment": 0.0}
    assert compared(pd.DataFrame([ACCURACIES | reference | choices])).method.tolist() == [name]


def test_accuracies_of_classes_are_taken_together():
    table = pd.DataFrame([ACCURACIES | dict(zip(CHOICES, ARMS["plain"], strict=True))])
    thirds = compared(table)[["accuracy_largest", "accuracy_middle", "accuracy_smallest"]]
    assert thirds.to_numpy()[0] == pytest.approx([0.1, 0.45, 0.8])
    assert table.method.tolist() == ["lf_sbn"]  # what was given is left as it was


def test_an_arm_that_is_not_compared_is_refused():
    other = dict(zip(CHOICES, ("wlf_sbn", 0.99, "reshuffle", 0.0), strict=True))
    with pytest.raises(ValueError, match=r"no arm has .*0\.99"):
        compared(pd.DataFrame([ACCURACIES | other]))


def test_gains_are_paired():
    keys = {"experiment": "lt10", "inference": "pooled", "evaluated_on": "test", "epoch": 20}
    score = {"plain": (0.50, 0.70), "sampler": (0.53, 0.75), "logit adj.": (0.49, 0.69)}
    table = pd.DataFrame(
        keys
        | {"protocol": arm, "method": arm, "seed": seed}
        | {"accuracy_balanced": value, "accuracy_overall": 0.5}
        for arm, values in score.items()
        for seed, value in enumerate(values)
    )
    rows = gains(table, ["sampler", "logit adj."], "plain").set_index("method")
    assert rows["mean"].to_dict() == pytest.approx({"sampler": 0.04, "logit adj.": -0.01})
    assert (gains(table, ["sampler"], "plain", "accuracy_overall")["mean"] == 0).all()


def test_weighted_minus_standard_compares_equal_weights():
    keys = {"experiment": "lt10", "inference": "pooled", "evaluated_on": "test", "epoch": 20}
    score = {"CB + sBN": 0.9, "CB + WBN": 0.8, "IF + sBN": 0.7, "IF + WBN": 0.75, "plain": 0.1}
    table = pd.DataFrame(
        keys | {"protocol": arm, "method": arm, "seed": seed, "accuracy_balanced": value}
        for arm, value in score.items()
        for seed in range(2)
    )
    rows = wbn_minus_sbn(table).set_index("weights")
    assert rows["mean"].to_dict() == pytest.approx({"CB": -0.1, "IF": 0.05})


def test_means_of_arms_stand_in_the_order_of_arms_settings_and_ratios():
    score = {"second": 0.5, "first": 0.1}
    rows = {
        setting: pd.DataFrame(
            {"experiment": e, "method": arm, "accuracy_balanced": value + place / 100 + seed}
            for e in ("lt50", "lt100")
            for place, arm in reversed(list(enumerate(ARMS)))
            for seed in (-0.01, 0.01)
        )
        for setting, value in score.items()
    }
    rows["first"] = rows["first"][rows["first"].method != "plain"]
    means = arm_means(rows)
    assert means.index.tolist() == list(ARMS)
    assert means.columns.tolist() == [(s, e) for s in score for e in ("lt50", "lt100")]
    expected = 0.5 + np.arange(len(ARMS)) / 100
    assert means["second", "lt100"].to_numpy() == pytest.approx(expected)
    assert means["first", "lt50"].to_numpy()[1:] == pytest.approx(expected[1:] - 0.4)
    assert means["first"].loc["plain"].isna().all()
