"""Labels, choice and criterion of the repairs, on plans and made-up rows."""

import pandas as pd
import pytest

from study.chapters.repair import comparisons as repair
from study.chapters.repair.comparisons import (
    ARMS,
    CANDIDATES,
    LOSSES,
    STANDARD,
    ahead,
    arm_of,
    earned,
    finalists,
    loss_of,
    primary,
)
from study.chapters.repair.predictions import REPAIR
from study.engine.protocol import Protocol
from study.stores.plan import RESULTS, read_plan

PREDICTIONS = {p.name.split()[0]: p for p in REPAIR}
ALL = ("i", "ii", "iii", "lt50", "lt100", "lt200")


def test_protocols_are_named_by_what_they_do():
    plain = Protocol.paper("i", "lf_sbn")
    assert (loss_of(plain), arm_of(plain)) == ("plain loss", STANDARD)
    assert loss_of(Protocol.paper("i", "lf_sbn", batch_order="balanced")) == "oversampling"
    assert loss_of(Protocol.paper("i", "lf_sbn", logit_adjustment=1)) == "logit adjustment"
    weighted = Protocol.paper("i", "wlf_wbn", output_shift_rate=0)
    assert (loss_of(weighted), arm_of(weighted)) == ("weighted loss", "weighted BN, frozen shift")


def test_validation_has_every_arm_with_every_loss_and_both_normalizers():
    protocols, _ = read_plan(RESULTS / "repair_folds" / "plan.toml")
    found = {(loss_of(p), arm_of(p), p.loss_normalizer, p.experiment, p.fold) for p in protocols}
    expected = {
        (loss, arm, normalizer, experiment, fold)
        for loss, normalizers in zip(LOSSES, (("batch", "dataset"), ("batch",)), strict=True)
        for normalizer in normalizers
        for arm in ARMS
        for experiment in ALL[:3]
        for fold in range(5)
    }
    assert found == expected
    assert len(protocols) == len(expected)
    assert all(p.evaluate_on == "validation" for p in protocols)


def made_up(means, losses=LOSSES, experiments=("i", "ii"), seeds=4):
    """Rows in which an arm's balanced accuracy is `means[arm]`, the same for every loss."""
    keys = [
        {"loss": loss, "arm": arm, "experiment": experiment, "seed": seed}
        | {"accuracy_balanced": mean + 0.001 * seed}
        for loss in losses
        for arm, mean in means.items()
        for experiment in experiments
        for seed in range(seeds)
    ]
    same = {"epoch": 20, "inference": "batch_average", "loss_normalizer": "batch"}
    return pd.DataFrame(keys).assign(**same, evaluated_on="test", protocol="")


def test_the_primary_endpoint_is_one_epoch_one_kind_and_one_normalizer():
    rows = made_up({STANDARD: 0.9})
    assert len(primary(rows)) == len(rows)
    for other in ({"epoch": 5}, {"inference": "pooled"}, {"loss_normalizer": "dataset"}):
        assert primary(rows.assign(**other)).empty
    assert len(primary(rows.assign(inference="class_averages"))) == len(rows)


def test_the_two_best_candidates_of_each_loss_are_the_finalists(monkeypatch):
    means = dict.fromkeys(ARMS, 0.5) | {STANDARD: 0.99, "weighted BN": 0.98}
    means |= {"class averages": 0.8, "weighted output": 0.9}
    rows = made_up(means)
    elsewhere = made_up(dict.fromkeys(ARMS, 0.5) | {CANDIDATES[0]: 1.0})
    rows = pd.concat([rows, elsewhere.assign(epoch=5), elsewhere.assign(inference="pooled")])
    monkeypatch.setattr(repair, "labeled", lambda store: rows)
    assert finalists() == {loss: ["weighted output", "class averages"] for loss in LOSSES}


def test_a_lead_is_paired_with_standard_bn_of_the_same_loss():
    rows = made_up({STANDARD: 0.9, "class averages": 0.92})
    own = rows.arm == "class averages"
    rows.loc[own, "inference"] = "class_averages"
    rows.loc[rows.loss == "weighted loss", "accuracy_balanced"] -= 0.3
    lead = ahead(rows, "logit adjustment", "class averages")
    assert lead["mean"].tolist() == pytest.approx([0.02, 0.02])
    assert lead.n.tolist() == [4, 4]


def test_secondary_endpoints_differ_from_the_primary_one_in_one_thing(monkeypatch):
    arms = {STANDARD: 0.9, "class averages": 0.92}
    rows = made_up(arms, experiments=("i",))
    columns = ("accuracy_best_threshold", "accuracy_minority", "accuracy_majority")
    rows = rows.assign(**dict.fromkeys(columns, rows.accuracy_balanced))
    own = rows.arm == "class averages"
    changes = {
        "pooled statistics": {"inference": "pooled"},
        "epoch 5": {"epoch": 5},
        "loss normalized by the data set": {"loss_normalizer": "dataset"},
    }
    parts = [rows]
    for number, (_, change) in enumerate(changes.items(), start=1):
        extra = 0.01 * number * own
        parts.append(rows.assign(accuracy_balanced=rows.accuracy_balanced + extra, **change))
    rows.loc[own, "accuracy_minority"] += 0.05
    monkeypatch.setattr(repair, "labeled", lambda store: pd.concat(parts))
    found = repair.secondary("weighted loss", "class averages").set_index("setting")["mean"]
    expected = {"primary endpoint": 0.02, "best threshold": 0.02, "minority accuracy": 0.07}
    expected |= {"majority accuracy": 0.02, "pooled statistics": 0.03, "epoch 5": 0.04}
    assert found.to_dict() == pytest.approx(expected | {"loss normalized by the data set": 0.05})
    found = repair.secondary("logit adjustment", "class averages")
    assert "loss normalized by the data set" not in set(found.setting)


def leads(means, halves):
    table = pd.DataFrame({"experiment": ALL, "mean": means})
    return table.assign(low=table["mean"] - halves, high=table["mean"] + halves)


@pytest.mark.parametrize(
    ("means", "outcome"),
    [
        ([0.01, 0.01, 0.0, 0.0, 0.0, 0.0], True),
        ([0.01, 0.0, 0.0, 0.01, 0.01, 0.01], False),  # long tails don't count as experiments
        ([0.01, 0.01, 0.01, 0.0, 0.0, -0.006], False),
        ([0.01, 0.01, -0.004, 0.0, -0.004, 0.0], True),
        ([0.004, 0.004, 0.004, 0.0, 0.0, 0.0], False),  # not beyond doubt
    ],
)
def test_a_place_is_earned_by_two_clear_leads_and_no_loss(means, outcome):
    assert earned(leads(means, 0.005)) is outcome


def test_criteria_of_the_predictions_can_fail():
    good, bad = leads([0.01] * 6, 0.005), leads([-0.01] * 6, 0.005)
    both = pd.concat([good.assign(loss="weighted loss"), bad.assign(loss="logit adjustment")])
    both = both.assign(arm="class averages")
    assert not PREDICTIONS["11.1"].judge(both)
    assert PREDICTIONS["11.2"].judge(both)
    assert PREDICTIONS["11.7"].judge(both)
    second = good.assign(loss=LOSSES[1], arm="other")
    assert not PREDICTIONS["11.7"].judge(pd.concat([both, second]))
    level = leads([0.01, 0, 0, 0, 0, 0], 0.005).head(3)
    halves = [level.assign(loss=loss) for loss in LOSSES]
    assert PREDICTIONS["11.8"].judge(pd.concat(halves))
    assert not PREDICTIONS["11.8"].judge(pd.concat([halves[0], second.head(3)]))
    for number, holds, fails in (
        ("11.3", leads([-0.01, -0.01, 0.0, 0, 0, 0], 0.005), leads([-0.01, 0, 0, 0, 0, 0], 0.005)),
        ("11.4", leads([0, 0, -0.01, 0, 0, 0], 0.005), leads([-0.01, 0, -0.001, 0, 0, 0], 0.005)),
        ("11.5", leads([0.009, -0.009, 0, 0, 0, 0], 0.5), leads([0.011, 0, 0, 0, 0, 0], 0.001)),
    ):
        assert PREDICTIONS[number].judge(holds)
        assert not PREDICTIONS[number].judge(fails)
