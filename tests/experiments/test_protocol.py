"""A protocol is data: resolved, hashed, refused when impossible."""

import itertools
import json
from dataclasses import fields, replace

import pytest

from wbn.experiments.protocol import METHODS, Protocol


def test_reference_reading_is_the_paper():
    p = Protocol.paper("iii", "wlf_wbn").resolved()
    stated = (p.hidden, p.batch_size, p.eps, p.correction, p.weighting, p.scale, p.inference)
    assert stated == (200, 100, 1e-8, "frequency", "inverse_frequency", "paper", ("batch_average",))
    assert p.eval_epochs == tuple(range(1, 21))


@pytest.mark.parametrize(
    ("method", "norm", "weighting"),
    [
        ("lf_sbn", "standard", "uniform"),
        ("wlf_sbn", "standard", "inverse_frequency"),
        ("wlf_wbn", "weighted", "inverse_frequency"),
    ],
)
def test_method_decides_norms_and_weighting(method, norm, weighting):
    p = Protocol.paper("i", method).resolved()
    assert (p.hidden_norm, p.output_norm, p.weighting) == (norm, norm, weighting)


def test_changing_the_method_changes_what_follows_from_it():
    changed = replace(Protocol.paper("i", "lf_sbn"), method="wlf_wbn")
    assert changed == Protocol.paper("i", "wlf_wbn")
    assert changed.resolved().hidden_norm == "weighted"


def test_every_field_is_documented():
    assert all(field.name in Protocol.__doc__ for field in fields(Protocol))


def test_family_is_the_declared_one():
    family = Protocol.family("ii", "wlf_sbn")
    assert family[0] == Protocol.paper("ii", "wlf_sbn")
    varied = {(p.loss_normalizer, p.batch_order, p.learning_rate) for p in family}
    assert varied == set(
        itertools.product(("batch", "dataset"), ("reshuffle", "fixed"), (1e-3, 1e-2))
    )
    assert len({p.hash for p in family}) == 8


def test_hash_of_the_reference_reading_does_not_change():
    """Stored results carry these; a change would orphan them."""
    assert {m: Protocol.paper("i", m).hash for m in METHODS} == {
        "lf_sbn": "8a17faf76dfc",
        "wlf_sbn": "ed4478ccb810",
        "wlf_wbn": "d057253188ec",
    }
    changed = Protocol.paper("iii", "wlf_wbn", learning_rate=1e-2, eval_epochs=(5, 20))
    assert changed.hash == "23e80c52a3a0"


def test_hash_sees_what_is_beyond_the_paper():
    changes = ({}, {"network": "conv"}, {"logit_adjustment": 1.0}, {"experiment": "lt10"})
    protocols = [Protocol.paper(**{"experiment": "i", "method": "lf_sbn"} | c) for c in changes]
    assert len({p.hash for p in protocols}) == 4
    assert [p.differences for p in protocols] == [{}, *changes[1:3], {}]


def test_whole_numbers_leave_the_hash_alone():
    for name, more in (("beta", {"weighting": "class_balanced"}), ("logit_adjustment", {})):
        one, same = (Protocol.paper("i", "wlf_wbn", **more, **{name: v}) for v in (1, 1.0))
        assert one.hash == same.hash


def test_hash_covers_differences_only():
    assert Protocol.paper("i", "lf_sbn").differences == {}
    assert Protocol.paper("i", "lf_sbn", eps=1e-5).differences == {"eps": 1e-5}


def test_hash_sees_resolved_values():
    plain = Protocol.paper("i", "wlf_wbn")
    spelled = Protocol.paper(
        "i",
        "wlf_wbn",
        output_norm="weighted",
        weighting="inverse_frequency",
        inference="batch_average",
    )
    assert plain.hash == spelled.hash
    assert plain.hash != Protocol.paper("i", "wlf_wbn", output_norm="standard").hash


def test_what_means_nothing_without_weights_leaves_the_hash_alone():
    plain = Protocol.paper("i", "lf_sbn", loss_normalizer="dataset", scale="classes")
    assert plain.hash == Protocol.paper("i", "lf_sbn").hash
    weighted = Protocol.paper("i", "wlf_sbn", loss_normalizer="dataset")
    assert weighted.hash != Protocol.paper("i", "wlf_sbn").hash


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"inference": ["pooled", "last_epoch"], "eval_epochs": [1, 5]},
        {"weighting": "class_balanced", "beta": 0.99},
        {"experiment": "lt50", "network": "conv", "logit_adjustment": 1.0},
    ],
)
def test_dict_round_trip_through_json(changes):
    protocol = Protocol.paper(**{"experiment": "ii", "method": "wlf_wbn"} | changes)
    again = Protocol.from_dict(json.loads(json.dumps(protocol.to_dict())))
    assert again == protocol.resolved()
    assert again.hash == protocol.hash


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"experiment": "iv"}, "experiment is 'iv'; choose one of i, ii, iii"),
        ({"method": "wbn"}, "lf_sbn"),
        ({"hidden_norm": "batch"}, "standard, weighted, none"),
        ({"correction": "biased"}, "frequency, reliability, none"),
        ({"batch_order": "random"}, "reshuffle"),
        ({"inference": "average"}, "inference"),
        ({"inference": ()}, "inference"),
        ({"batch_size": 1}, "batch_size is 1"),
        ({"epochs": 0}, "epochs is 0"),
        ({"eval_epochs": (21,)}, "eval_epochs"),
        ({"eval_epochs": ()}, "eval_epochs"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"momentum": 0.0}, "momentum"),
        ({"fold": 5}, "fold is 5"),
        ({"weighting": "class_balanced"}, "needs a beta"),
        ({"weighting": ["uniform"]}, "choose one of uniform, inverse_frequency, class_balanced"),
        ({"beta": 0.9}, "take none"),
        ({"weighting": "class_balanced", "beta": 1.5}, "beta is 1.5"),
        ({"network": "cnn"}, "network is 'cnn'; choose one of mlp, conv"),
        ({"network": "conv", "hidden": 100}, "hidden is 100: its sizes are fixed"),
        ({"logit_adjustment": -1.0}, "logit_adjustment is -1.0"),
        ({"logit_adjustment": float("nan")}, "logit_adjustment is nan"),
        ({"method": "lf_sbn", "weighting": "inverse_frequency"}, "plain loss"),
    ],
)
def test_impossible_values_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Protocol.paper(**{"experiment": "i", "method": "wlf_wbn", **changes})


def test_unknown_choice_is_refused():
    with pytest.raises(ValueError, match="no such choice: learning_rat"):
        Protocol.from_dict({"experiment": "i", "method": "lf_sbn", "learning_rat": 1.0})
    with pytest.raises(ValueError, match="needs experiment and method"):
        Protocol.from_dict({})
