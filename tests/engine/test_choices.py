"""Each choice of training on toys against autograd of the formulas, step by step."""

import pytest
import torch
from plain import EXPERIMENTS, Plain, toy

from study.engine.training import Trainer, squared_error

SEEDS = (3, 4)
OWN = {"statistics": "class_averages", "hidden_norm": "weighted", "inference": "class_averages"}
ADJUSTED = {
    "hidden_norm": "weighted", "output_norm": "weighted", "logit_adjustment": 1.5,
    "norm_weighting": "inverse_frequency",
}  # fmt: skip
CHOICES = [
    ("lf_sbn", {}),
    ("wlf_sbn", {}),
    ("wlf_wbn", {}),
    ("wlf_wbn", {"activation": "sigmoid"}),
    ("wlf_wbn", {"activation": "tanh", "correction": "none", "initialization": "lecun_normal"}),
    ("lf_sbn", {"optimizer": "sgd", "learning_rate": 0.3}),
    ("wlf_wbn", {"optimizer": "sgd", "learning_rate": 0.3}),
    ("lf_sbn", {"loss": "squared_error"}),
    ("wlf_wbn", {"loss": "squared_error"}),
    ("wlf_sbn", {"loss": "squared_error", "loss_normalizer": "dataset"}),
    ("lf_sbn", {"statistics": "detached"}),
    ("wlf_wbn", {"statistics": "detached", "activation": "sigmoid"}),
    ("wlf_wbn", {"statistics": "detached", "correction": "none"}),
    ("lf_sbn", ADJUSTED),
    ("lf_sbn", ADJUSTED | {"output_norm": "standard", "statistics": "detached"}),
    ("wlf_wbn", {"input_scaling": "standardized_apart"}),
    ("wlf_wbn", OWN),
    ("wlf_sbn", OWN | {"activation": "tanh"}),
    ("lf_sbn", OWN | ADJUSTED),
]


def both(protocol):
    """The engine with two seeds at once and the formulas with each, after two epochs."""
    trainer, alone = Trainer(protocol, list(SEEDS)), [Plain(protocol, seed) for seed in SEEDS]
    for _ in range(2):
        losses = trainer.train_epoch()
        expected = [plain.train_epoch() for plain in alone]
    return trainer, losses, alone, expected


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(("method", "changes"), CHOICES)
def test_two_epochs_equal_autograd_of_the_formulas(method, changes, experiment):
    trainer, losses, alone, expected = both(toy(method, experiment, **changes))
    assert len(trainer.batches) == 8 - (experiment == "toy3")
    assert losses.tolist() == pytest.approx(expected, rel=1e-8)
    for s, plain in enumerate(alone):
        for ours, theirs in zip(trainer.network.parameters, plain.leaves, strict=True):
            torch.testing.assert_close(ours[s].view_as(theirs), theirs, rtol=1e-7, atol=1e-8)


@pytest.mark.usefixtures("toys")
def test_choices_are_not_the_reference():
    found = [
        Trainer(toy(method, **changes), [3]).train_epoch().item() for method, changes in CHOICES
    ]
    assert len({round(loss, 4) for loss in found}) == len(CHOICES)


@pytest.mark.parametrize("weights", [None, [1.0, 0.5, 4.0, 0.0]])
@pytest.mark.parametrize("normalizer", ["batch", 1.6])
def test_squared_error_by_hand(weights, normalizer):
    f = [[0.5, -1.0, 2.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [3.0, 3.0, 3.0]]
    labels = [2, 0, 1, 1]
    errors = [0.25 + 1 + 1, 0.0, 1.0, 9 + 4 + 9]
    w = weights or [1.0] * 4
    divisor = sum(w) if normalizer == "batch" or weights is None else 1.6 * 4
    expected = sum(a * b for a, b in zip(w, errors, strict=True)) / divisor
    given = None if weights is None else torch.tensor(weights).double()
    found = squared_error(torch.tensor(f).double(), torch.tensor(labels), given, normalizer)
    assert found.item() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("method", "changes"),
    [("wlf_wbn", OWN), ("lf_sbn", OWN | {"norm_weighting": "inverse_frequency"})],
)
def test_class_averages_of_ten_digits_know_each_class_by_its_weight(method, changes, dtype):
    small = {"experiment": "lt200", "hidden": 3, "dtype": dtype}
    trainer = Trainer(toy(method, **changes | small), [0, 1])
    data, layer = trainer.data, trainer.network.layers[0]
    torch.testing.assert_close(layer.share, torch.full((10,), 0.1).double())
    index = torch.stack([torch.randperm(data.rows.shape[1])[:2000] for _ in range(2)])
    x, labels, w = data.batch(index)
    layer.forward(x, w)
    z = (x @ layer.linear.mT).double()
    for s in range(2):
        for k in range(10):
            members = z[s][labels[s] == k]
            total, first, second = (t[s, k] for t in layer.latest)
            assert total.tolist() == [len(members)] * 3
            torch.testing.assert_close(first, members.sum(0), rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(second, (members**2).sum(0), rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("toys")
def test_shares_are_those_of_the_loss():
    """Class-balanced weights between plain and inverse frequencies, of 20, 40 and 9 samples."""
    balanced = {"weighting": "class_balanced", "beta": 0.9, "scale": "mean_one"}
    trainer = Trainer(toy(experiment="toy3", **OWN | balanced), [0])
    weights = torch.tensor([0.1 / (1 - 0.9**n) * n for n in (20, 40, 9)]).double()
    torch.testing.assert_close(trainer.network.layers[0].share, weights / weights.sum())
