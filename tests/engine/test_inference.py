"""Calibration and statistics by layer, against cases done by hand and definitions."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain import EXPERIMENTS, Plain, moments, toy

from study.engine.inference import calibration_error, evaluate
from study.engine.protocol import BY_LAYER, MIXED, MOVING, Protocol
from study.engine.training import Trainer


def test_calibration_error_by_hand():
    """Top probabilities .95 (right), .95 (wrong), .5 (right), .9 (wrong): bins 15, 15, 8, 14."""
    p = torch.tensor([
        [0.95, 0.03, 0.02], [0.95, 0.03, 0.02], [0.25, 0.50, 0.25], [0.05, 0.05, 0.90]
    ]).double()[None]  # fmt: skip
    labels = torch.tensor([[0, 1, 1, 0]])
    expected = 2 / 4 * abs(1 / 2 - 0.95) + 1 / 4 * abs(1 - 0.5) + 1 / 4 * abs(0 - 0.9)
    assert calibration_error(p, labels).item() == pytest.approx(expected)


def test_certain_and_right_is_calibrated_and_certain_and_wrong_is_not():
    p = torch.tensor([[[1.0, 0.0, 0.0]] * 5] * 2)
    assert calibration_error(p, torch.tensor([[0] * 5, [2] * 5])).tolist() == [0, 1]


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 2)), min_size=1, max_size=40))
def test_calibration_error_equals_its_definition(samples):
    p = torch.tensor([[k, 100 - k, 50] for k, _ in samples]).double()
    p, labels = p / p.sum(1, keepdim=True), torch.tensor([label for _, label in samples])
    top, right = p.max(1).values.numpy(), (p.argmax(1) == labels).numpy()
    expected = 0.0
    for b in range(15):
        inside = (b / 15 < top) & (top <= (b + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(right[inside].mean() - top[inside].mean())
    both = calibration_error(torch.stack([p, p]), torch.stack([labels, labels]))
    assert both.tolist() == pytest.approx([expected] * 2)


def test_scores_of_three_classes():
    p = torch.tensor([[[0.7, 0.2, 0.1], [0.1, 0.1, 0.8], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]]])
    labels = torch.tensor([[0, 0, 2, 1]])
    data = SimpleNamespace(eval_labels=labels, classes=3, minority=2)
    scores = evaluate(p.log() + 5, data)  # a constant does not change probabilities
    assert {name: value.item() for name, value in scores.items()} == pytest.approx({
        "accuracy_0": 0.5, "accuracy_1": 1.0, "accuracy_2": 1.0,
        "accuracy_overall": 0.75, "accuracy_balanced": 2.5 / 3,
        "calibration_error": (0.3 + 0.8 + 0.4 + 0.6) / 4,
        "nll": -np.log([0.7, 0.1, 0.6, 0.4]).mean(),
    }, abs=1e-6)  # fmt: skip


def step_twice(**changes):
    """A tiny network of two seeds after two steps of 100 samples, 5 of them of the minority."""
    changes = {"hidden": 6, "inference": BY_LAYER, "dtype": "float64"} | changes
    trainer = Trainer(Protocol.paper("i", "wlf_wbn", **changes).resolved(), [0, 1])
    data = trainer.data
    some = torch.cat([torch.arange(190), torch.arange(5930, 5940)])
    data.rows, data.labels, data.weights = (
        t[:, some] for t in (data.rows, data.labels, data.weights)
    )
    trainer.batches = [torch.arange(start, 200, 2).expand(2, -1) for start in (0, 1)]
    trainer.statistics.start_epoch()
    for index in trainer.batches:
        trainer.step(index)
    return trainer


def moments_by_hand(x, w):
    """Of one replica, (N, C): Eqs. 11 and 12 with the divisor Z - 1."""
    mean = (w * x).sum(0) / w.sum()
    return torch.stack([mean, (w * (x - mean) ** 2).sum(0) / (w.sum() - 1)])


@pytest.mark.parametrize("s", [0, 1])
def test_statistics_by_layer_equal_those_by_hand(s):
    trainer = step_twice()
    data, (first, last) = trainer.data, trainer.network.layers
    images, weights = data.pool[data.rows[s]], data.weights[s]
    whole = [(images, weights)]
    batches = [(images[index[s]], weights[index[s]]) for index in trainer.batches]

    def of_hidden(parts):
        return [moments_by_hand(x @ first.linear[s].T, w) for x, w in parts]

    def of_output(parts, statistics):
        found = []
        for (x, w), (mean, var) in zip(parts, statistics, strict=True):
            z = (x @ first.linear[s].T - mean) / (var + 1e-8).sqrt()
            z = (z * first.weight[s] + first.bias[s]).relu()
            found.append(moments_by_hand(z @ last.linear[s].T, w))
        return sum(found) / len(found)

    averaged, pooled = sum(of_hidden(batches)) / 2, of_hidden(whole)[0]
    expected = {
        "pooled_hidden": (pooled, of_output(batches, of_hidden(batches))),
        "pooled_output": (averaged, of_output(whole, [averaged])),
        "averaged_output": (pooled, of_output(batches, [pooled] * 2)),
    }
    for kind, layers in expected.items():
        statistics = trainer.statistics.get(kind, data, trainer.batches)
        for found, by_hand in zip(statistics, layers, strict=True):
            torch.testing.assert_close(torch.cat([m[s] for m in found]), by_hand)


@pytest.mark.parametrize("kind", ["batch_average", "pooled", *BY_LAYER])
def test_statistics_are_known_until_the_next_step(kind):
    trainer = step_twice(inference=[kind])
    arguments = (kind, trainer.data, trainer.batches)
    before = trainer.statistics.get(*arguments)
    assert trainer.statistics.get(*arguments) is before
    trainer.step(trainer.batches[0])
    after = trainer.statistics.get(*arguments)
    assert not torch.equal(after[0][0], before[0][0])
    assert not torch.equal(after[1][1], before[1][1])


def test_running_sums_at_inference_are_those_of_training():
    trainer = step_twice(statistics="running_sums", inference=["pooled", "running_sums"])
    expected = [layer.running() for layer in trainer.network.layers]
    for kind in trainer.protocol.inference:  # a pass over all data changes nothing
        found = trainer.statistics.get(kind, trainer.data, trainer.batches)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def compare(protocol, expected):
    """Logits of the engine after two epochs, and those of `expected(plain, kind)`."""
    trainer = Trainer(protocol, [3, 4])
    alone = [Plain(protocol, seed) for seed in (3, 4)]
    for each in (trainer, *alone):
        each.train_epoch()
        each.train_epoch()
    for kind in reversed(protocol.inference):
        logits = trainer.logits(kind)
        for s, plain in enumerate(alone):
            by_hand = plain.infer(plain.test_x, expected(plain, kind)).detach()
            torch.testing.assert_close(logits[s], by_hand, rtol=1e-8, atol=1e-9)


CHANGES = [
    ("lf_sbn", {}),
    ("wlf_sbn", {"input_scaling": "standardized_apart"}),
    ("wlf_wbn", {}),
    ("wlf_wbn", {"correction": "none", "activation": "sigmoid"}),
    ("wlf_wbn", {"statistics": "detached"}),
    ("wlf_wbn", {"output_norm": "standard", "momentum": 0.3}),
]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(("method", "changes"), CHANGES)
def test_logits_with_moments_of_the_test_set_by_hand(method, changes, experiment):
    protocol = toy(method, experiment, inference=(*MIXED, "batch_average"), **changes)

    def expected(plain, kind):
        chosen = kind.split("_")[1:] if kind in MIXED else ()
        return plain.mixed(chosen)

    compare(protocol, expected)


def test_moments_of_the_test_set_are_all_but_none_and_all_four():
    assert len(MIXED) == len({frozenset(kind.split("_")[1:]) for kind in MIXED}) == 2**4 - 2
    assert {name for kind in MIXED for name in kind.split("_")} == {"test", "hm", "hv", "om", "ov"}


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("method", ["lf_sbn", "wlf_wbn"])
def test_all_four_moments_are_the_evaluation_set_and_none_is_the_batch_average(method):
    trainer = Trainer(toy(method, inference=("evaluation_set", "batch_average")), [3, 4])
    trainer.train_epoch()
    for kind, chosen in (("evaluation_set", "test_hm_hv_om_ov"), ("batch_average", "test_")):
        mixed = trainer.statistics._mixed(chosen, trainer.data, trainer.batches)
        own = trainer.statistics.get(kind, trainer.data, trainer.batches)
        torch.testing.assert_close(mixed, [tuple(layer) for layer in own])


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(("method", "changes"), CHANGES)
def test_moving_averages_of_three_momenta_by_hand(method, changes):
    kinds = ("moving_average", *MOVING, "never_updated")
    momenta = {"moving_average": changes.get("momentum", 0.1), "never_updated": 0.0}
    momenta |= {"moving_average_0.01": 0.01, "moving_average_0.001": 0.001}
    protocol = toy(method, inference=kinds, **changes)
    compare(protocol, lambda plain, kind: plain.moving(momenta[kind]))


@pytest.mark.usefixtures("toys")
def test_a_moving_average_does_not_depend_on_the_others():
    together = Trainer(toy(inference=("moving_average_0.01", "moving_average", "pooled")), [3])
    alone = Trainer(toy(inference="moving_average_0.01"), [3])
    for trainer in (together, alone):
        trainer.train_epoch()
        for kind in trainer.protocol.inference:
            trainer.logits(kind)
        trainer.train_epoch()
    assert torch.equal(*(trainer.logits("moving_average_0.01") for trainer in (together, alone)))


@pytest.mark.usefixtures("toys")
def test_networks_without_bn_have_nothing_to_update():
    protocol = toy(hidden_norm="none", inference=("never_updated", *MOVING))
    trainer = Trainer(protocol, [3])
    trainer.train_epoch()
    for kind in protocol.inference:
        hidden, (mean, var) = trainer.statistics.get(kind, trainer.data, trainer.batches)
        assert hidden is None
        assert mean.shape == var.shape == (1, 1, 2)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("wlf_wbn", {}),
        ("wlf_sbn", {"activation": "tanh", "correction": "none"}),
        ("lf_sbn", {"output_norm": "weighted", "norm_weighting": "inverse_frequency"}),
    ],
)
def test_class_averages_at_inference_by_hand(method, changes, experiment):
    own = {"statistics": "class_averages", "hidden_norm": "weighted"}
    kinds = ("class_averages", "class_averages_pooled", "pooled")
    protocol = toy(method, experiment, inference=kinds, **own | changes)

    def expected(plain, kind):
        hidden, whole = plain.class_moments(None), [torch.arange(len(plain.y))]
        if kind == "pooled":
            hidden = moments(plain.x @ plain.w1.T, plain.norm_weight(plain.y, 0), plain.kept)
        return plain.averaged_behind(hidden, plain.batches if kind == "class_averages" else whole)

    compare(protocol, expected)
