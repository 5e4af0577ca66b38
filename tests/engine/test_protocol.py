"""A protocol is data: resolved, hashed, refused when impossible."""

import itertools
import json
import math
from dataclasses import fields, replace
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from study.engine.protocol import (
    BY_LAYER,
    FAMILY,
    IN_BATCHES,
    METHODS,
    MIXED,
    MOVING,
    OWN_AVERAGES,
    PROBES,
    Protocol,
)

RESULTS = Path(__file__).parents[2] / "results"
APART = {"input_scaling": "standardized_apart"}
SUMS = {"statistics": "running_sums"}
WEIGHTED = {"hidden_norm": "weighted"}
OWN = {"statistics": "class_averages", "inference": "class_averages"} | WEIGHTED


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
    family = [Protocol.paper("ii", "wlf_sbn", **reading) for reading in FAMILY]
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


def test_every_stored_hash_is_still_that_of_its_protocol():
    files = [file.read_bytes() for file in RESULTS.glob("*/runs.jsonl")]
    units = [json.loads(line)["unit"] for file in files for line in file.splitlines()]
    assert len(units) > 1000
    assert {Protocol.from_dict(unit["protocol"]).hash == unit["hash"] for unit in units} == {True}


TYPES = {name: str(hint) for name, hint in get_type_hints(Protocol).items()}
NUMERIC = [name for name, kind in TYPES.items() if "int" in kind or "float" in kind]


@pytest.mark.parametrize("kind", [int, float, np.int64, np.float64])
@pytest.mark.parametrize("name", NUMERIC)
def test_one_number_has_one_hash_however_it_is_written(name, kind):
    number = {"batch_size": 2, "fold": 1, "adam_betas": 0, "output_shift_rate": 0}.get(name, 1)
    listed = {"adam_betas": [kind(number)] * 2, "eval_epochs": [kind(number)]}
    more = {"weighting": "class_balanced"} if name == "beta" else {}
    written = Protocol.paper("i", "wlf_wbn", **more, **{name: listed.get(name, kind(number))})
    default = getattr(Protocol.paper("i", "wlf_wbn"), name)
    declared = float if "float" in TYPES[name] else int
    kept = getattr(written, name)
    assert {type(v) for v in (kept if isinstance(kept, tuple) else [kept])} == {declared}
    same = {"adam_betas": (0.0, 0.0), "eval_epochs": (1,)}.get(name, declared(number))
    assert kept == same != default
    assert written.hash == Protocol.paper("i", "wlf_wbn", **more, **{name: same}).hash


def test_minus_zero_is_zero():
    assert len({Protocol.paper("i", "lf_sbn", eps=zero).hash for zero in (0, 0.0, -0.0)}) == 1


def test_lists_are_tuples():
    listed = Protocol.paper("i", "lf_sbn", eval_epochs=[1, 2], adam_betas=[0.5, 0.9])
    assert listed == Protocol.paper("i", "lf_sbn", eval_epochs=(1, 2), adam_betas=(0.5, 0.9))
    assert listed == Protocol.paper("i", "lf_sbn", eval_epochs=range(1, 3), adam_betas=(0.5, 0.9))


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


ODD = {
    "a bool": True,
    "text": "1",
    "nothing": None,
    "an empty list": [],
    "a list of lists": [[1]],
    "a table": {},
    "nan": math.nan,
    "infinity": math.inf,
    "beyond floats": 10**400,
    "beyond printing": 16**5000,
    "a complex number": 1j,
    "bytes": b"i",
    "an object": object(),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("field", fields(Protocol), ids=lambda field: field.name)
def test_a_value_of_the_wrong_type_is_refused_in_one_line_with_its_name(field, odd):
    values = {"experiment": "i", "method": "wlf_wbn", "weighting": "class_balanced", "beta": 0.9}
    if ODD[odd] is None is field.default:
        del values["weighting"], values["beta"]
        assert Protocol.from_dict(values | {field.name: None}) == Protocol.from_dict(values)
        return
    refused = rf"^(an entry of )?{field.name} is .*; (give|choose) "
    with pytest.raises(ValueError, match=refused) as error:
        Protocol.from_dict(values | {field.name: ODD[odd]})
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"adam_betas": [0.9]}, r"adam_betas is \[0.9\]; give a list of 2 values"),
        ({"adam_betas": (0.9, 1.0)}, r"an entry of adam_betas is 1.0; give a number in \[0, 1\)"),
        ({"adam_betas": (-0.1, 0.9)}, r"an entry of adam_betas is -0.1"),
        ({"adam_eps": 0.0}, r"adam_eps is 0.0; give a number in \(0, 1e\+38\]"),
        ({"batch_size": 2.5}, "batch_size is 2.5; give a whole number from 2 to 1000000"),
        ({"batch_size": 10**9}, "batch_size is 1000000000; .* to 1000000"),
        ({"hidden": 10**6}, "hidden is 1000000; give a whole number from 1 to 10000"),
        ({"epochs": 10**9}, "epochs is 1000000000; give a whole number from 1 to 1000000"),
        ({"learning_rate": 1e300}, r"learning_rate is 1e\+300"),
        ({"inference": ["pooled", "pooled"]}, "name each kind once"),
        ({"inference": ["pooled", 3]}, "an entry of inference is 3; choose one of batch_average"),
        ({"eval_epochs": 5}, "eval_epochs is 5; give a list"),
        ({"eval_epochs": [0]}, "an entry of eval_epochs is 0"),
        ({"eval_epochs": [1, 30]}, r"eval_epochs is \(1, 30\); there are 20 epochs"),
        ({"method": "a" * 500}, r"method is 'a{79}\.\.\.; choose"),
        ({"statistics": "cross"}, "statistics is 'cross'; choose one of batch, cross_fitted, "),
        ({"output_shift_rate": -1}, "output_shift_rate is -1; give a number in"),
        ({"diagnosis": "all"}, "diagnosis is 'all'; choose one of none, threshold"),
        ({"network": "conv", "statistics": "cross_fitted"}, "choose 'mlp' for statistics$"),
        ({"network": "conv", "output_shift_start": 1}, "choose 'mlp' for output_shift_start$"),
        ({"network": "conv", "output_shift_rate": 0}, "choose 'mlp' for output_shift_rate$"),
        ({"network": "conv", "diagnosis": "threshold"}, "choose 'mlp' for diagnosis$"),
        (
            {"network": "conv", "inference": ["pooled", *BY_LAYER]},
            "choose 'mlp' for pooled_hidden, pooled_output, averaged_output$",
        ),
        ({"experiment": "lt10", "output_shift_start": -1}, "experiment is 'lt10': .* two classes$"),
        ({"experiment": "lt10", "diagnosis": "threshold"}, "experiment is 'lt10': .* two classes$"),
        ({"inference": "running_sums"}, r"inference is .*; running_sums need statistics of that"),
        ({"diagnosis": "threshold", "inference": PROBES}, "have no statistics to diagnose"),
        ({"diagnosis": "threshold", "inference": "validated_threshold"}, "no statistics to diag"),
        ({"diagnosis": "threshold", "inference": ["pooled", "weighted_test"]}, "no statistics to"),
        ({"statistics": "running_sums", "inference": "test_batches_50"}, "need those of the batch"),
        ({"statistics": "cross_fitted", "inference": "weighted_test"}, "need those of the batch"),
        ({"output_norm": "none", "inference": "test_ov"}, "need both layers normalized"),
        ({"inference": ["validated_threshold"]} | APART, "a validated threshold needs 'unit'"),
        ({"evaluate_on": "validation"} | APART, "evaluate_on is 'validation': .* the test set$"),
        *(
            ({"evaluate_on": "validation", "inference": kind}, "evaluate_on is 'validation': ")
            for kind in ("validated_threshold", MIXED[0], *IN_BATCHES)
        ),
        (
            {"experiment": "lt10", "inference": ["pooled", "validated_threshold"]},
            r"inference is \('pooled', 'validated_threshold'\); a threshold is between two classes",
        ),
        (
            {"inference": "class_averages"},
            "inference .*; class_averages need statistics of that",
        ),
        ({"inference": "class_averages_pooled"} | SUMS, "class_averages need statistics of that"),
        (OWN | {"inference": "batch_average"}, "'class_averages' allow class_.* and pooled$"),
        (OWN | {"inference": ["pooled", "validated_threshold"]}, "allow class_.* and pooled$"),
        (OWN | {"hidden_norm": "none"}, "need hidden_norm 'standard', or 'weighted' with weights"),
        (OWN | {"weighting": "uniform"}, "with weights of the loss or norm_weighting$"),
        (OWN | {"method": "lf_sbn"}, "with weights of the loss or norm_weighting$"),
        ({"norm_weighting": "inverse_frequency"}, "norm_weighting is .*; it is for a loss without"),
        ({"norm_weighting": "uniform"}, "choose one of inverse_frequency$"),
        ({"network": "conv", "activation": "tanh"}, "choose 'mlp' for activation$"),
        ({"network": "conv", "statistics": "detached"}, "choose 'mlp' for statistics$"),
        ({"network": "conv", "inference": ["pooled", "test_hm"]}, "choose 'mlp' for test_hm$"),
        ({"activation": "gelu"}, "activation is 'gelu'; choose one of relu, sigmoid, tanh$"),
        ({"loss": "hinge"}, "loss is 'hinge'; choose one of cross_entropy, squared_error$"),
        ({"optimizer": "adamw"}, "optimizer is 'adamw'; choose one of adam, sgd$"),
        ({"input_scaling": "raw"}, "choose one of unit, standardized_apart$"),
        ({"inference": "test_hv_hm"}, r"'test_hv_hm'; choose one of test_\w+, .* or \d+ others$"),
        (
            {"inference": [16**5000]},
            r"more than 4000 digits; choose one of batch_average, .* others",
        ),
    ],
)
def test_what_would_fail_in_training_is_refused_before(changes, message):
    with pytest.raises(ValueError, match=message) as error:
        Protocol.paper(**{"experiment": "i", "method": "wlf_wbn"} | changes)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 350


@pytest.mark.parametrize(
    "changes",
    [
        {"statistics": "running_sums", "inference": ["running_sums", *BY_LAYER]},
        {"experiment": "lt10", "statistics": "cross_fitted", "output_shift_rate": 0},
        {"diagnosis": "threshold", "output_shift_start": -1.5, "output_shift_rate": 3},
        {"statistics": "detached", "activation": "tanh", "inference": [*IN_BATCHES, *MIXED]},
        {"initialization": "he_normal", "optimizer": "sgd", "loss": "squared_error"},
        {"inference": ["validated_threshold", "never_updated", *MOVING]},
        APART | {"inference": ["batch_average", *IN_BATCHES, *MIXED]},
        {"weighting": "uniform", "norm_weighting": "inverse_frequency", "logit_adjustment": 1.0},
        {"statistics": "class_averages", "inference": [*OWN_AVERAGES, "pooled"]} | WEIGHTED,
    ],
)
def test_interventions_are_allowed_and_seen_by_the_hash(changes):
    protocol = Protocol.paper(**{"experiment": "i", "method": "wlf_wbn"} | changes)
    named = {key for key in changes if key not in ("experiment", "hidden_norm")}
    assert set(protocol.differences) == named
    assert Protocol.from_dict(json.loads(json.dumps(protocol.to_dict()))).hash == protocol.hash


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("learning_rat", "no such choice: 'learning_rat'; did you mean 'learning_rate'"),
        ("epoch", "did you mean 'epochs'"),
        ("zzz", "no such choice: 'zzz'; there are experiment, method, "),
        ("a\nb", r"no such choice: 'a\\nb'"),
        (3, "no such choice: 3"),
    ],
)
def test_an_unknown_choice_is_refused_with_the_nearest_one(name, message):
    with pytest.raises(ValueError, match=message):
        Protocol.from_dict({"experiment": "i", "method": "lf_sbn", name: 1.0})


@pytest.mark.parametrize("values", [None, [], "i", 3])
def test_what_is_no_table_is_no_protocol(values):
    with pytest.raises(ValueError, match=r"the protocol is .*; give a table of choices"):
        Protocol.from_dict(values)


def test_experiment_and_method_are_needed():
    with pytest.raises(ValueError, match="needs experiment and method"):
        Protocol.from_dict({})
