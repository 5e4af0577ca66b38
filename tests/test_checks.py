"""Bad input is a ValueError that says what to do, and changes nothing."""

import copy

import pytest
import torch

from wbn.context import sample_weights
from wbn.functional import weighted_batch_norm, weighted_moments
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d

X = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))
NAN, INF = float("nan"), float("inf")
ONES = [1.0, 1.0, 1.0, 1.0]

BAD_WEIGHTS = {
    "too few": (torch.ones(3), r"shape \(3,\).*needs \(4,\) or \(4, 5\)"),
    "one per batch": (torch.ones(1), r"shape \(1,\)"),
    "a scalar": (torch.tensor(1.0), r"shape \(\)"),
    "a column": (torch.ones(4, 1), r"shape \(4, 1\)"),
    "wrong positions": (torch.ones(4, 3), r"shape \(4, 3\)"),
    "like the input": (torch.ones(4, 3, 5), r"shape \(4, 3, 5\)"),
    "a list": (ONES, "is a list.*torch.as_tensor"),
    "negative": (torch.tensor([1.0, -1.0, 3.0, 3.0]), "negative, NaN or infinite"),
    "NaN": (torch.tensor([1.0, NAN, 3.0, 3.0]), "negative, NaN or infinite"),
    "infinite": (torch.tensor([1.0, INF, 3.0, 3.0]), "negative, NaN or infinite"),
    "all zero": (torch.zeros(4), "all zero"),
    "complex": (torch.ones(4) + 1j, "weights are real"),
    "requires a gradient": (torch.ones(4, requires_grad=True), "detach"),
    "derived from a leaf": (2 * torch.ones(4, requires_grad=True), "detach"),
    "on another device": (torch.ones(4, device="meta"), r"on meta .* on cpu"),
}


@pytest.mark.parametrize("correction", ["frequency", "reliability", "none"])
@pytest.mark.parametrize("case", BAD_WEIGHTS)
def test_bad_weights(case, correction):
    w, message = BAD_WEIGHTS[case]
    with pytest.raises(ValueError, match=message):
        weighted_moments(X, w, correction)
    mean, var = torch.zeros(3), torch.ones(3)
    with pytest.raises(ValueError, match=message):
        weighted_batch_norm(X, w, mean, var, training=True, correction=correction)
    assert torch.equal(mean, torch.zeros(3))
    assert torch.equal(var, torch.ones(3))
    layer = WeightedBatchNorm1d(3, correction=correction)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match=message):
        layer(X, w)
    with sample_weights(w), pytest.raises(ValueError, match=message):
        layer(X)
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


@pytest.mark.parametrize("correction", ["frequency", "reliability", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weight", [0.3, 7.0, 12345.678])
def test_two_positions_need_positive_weight(correction, dtype, weight):
    x, w = X[:, :, 0].to(dtype), torch.tensor([0.0, weight, 0.0, 0.0], dtype=dtype)
    with pytest.raises(ValueError, match="at least two positions"):
        weighted_moments(x, w, correction)
    positions = torch.zeros(4, 5, dtype=dtype)
    positions[1, 2] = weight
    with pytest.raises(ValueError, match="at least two positions"):
        weighted_moments(X.to(dtype), positions, correction)
    w[2] = weight
    assert all(m.isfinite().all() for m in weighted_moments(x, 9 * w, correction))


@pytest.mark.parametrize("shape", [(1, 3), (0, 3), (1, 3, 1), (2, 3, 0)])
@pytest.mark.parametrize("weighted", [False, True])
def test_two_values_per_channel(shape, weighted):
    x, w = torch.zeros(shape), torch.ones(shape[0]) if weighted else None
    with pytest.raises(ValueError, match="at least two values per channel"):
        weighted_moments(x, w)
    if x.numel() == 0:
        assert weighted_batch_norm(x, w, training=True).shape == shape
        return
    with pytest.raises(ValueError, match="at least two values per channel"):
        weighted_batch_norm(x, w, training=True)


@pytest.mark.parametrize("total", [0.1, 1.0, 1.01, 1.99])
def test_frequency_needs_two_points_worth_of_weight(total):
    x, w = X[:, :, 0], torch.full((4,), total / 4)
    with pytest.raises(ValueError, match=r"larger batches.*correction='none' or 'reliability'"):
        weighted_moments(x, w, "frequency")
    with pytest.raises(ValueError, match="at least 2"):
        weighted_moments(X, w / 5, "frequency")
    for correction in ("reliability", "none"):
        weighted_moments(x, w, correction)
    weighted_moments(X, torch.full((4,), 0.1), "frequency")


def test_two_points_worth_of_weight_up_to_rounding():
    w = torch.ones(2).nextafter(torch.tensor(0.0))
    assert w.sum() < 2
    weighted_moments(torch.tensor([[0.0], [1.0]]), w, "frequency")


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.ones(4, 3, dtype=torch.int64), r"int64.*x\.float\(\)"),
        (torch.ones(4, 3, dtype=torch.bool), "bool"),
        (torch.ones(4, 3, dtype=torch.complex64), "complex64"),
        (torch.ones(4), r"shape \(4,\)"),
        (torch.ones(4, 0), r"shape \(4, 0\)"),
    ],
)
@pytest.mark.parametrize("training", [True, False])
def test_bad_input(x, message, training):
    with pytest.raises(ValueError, match=message):
        weighted_batch_norm(x, None, torch.zeros(3), torch.ones(3), training=training)
    if training:
        with pytest.raises(ValueError, match=message):
            weighted_moments(x)


@pytest.mark.parametrize("name", ["running_mean", "running_var", "weight", "bias"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("wrong", [torch.ones(4), torch.ones(1), torch.ones(3, 1)])
def test_parameters_fit_the_channels(name, training, wrong):
    given = {"running_mean": torch.zeros(3), "running_var": torch.ones(3), name: wrong}
    with pytest.raises(ValueError, match=f"3 channels.*but {name} has shape"):
        weighted_batch_norm(X, training=training, **given)


@pytest.mark.parametrize("training", [True, False])
def test_running_statistics_come_together(training):
    with pytest.raises(ValueError, match="both"):
        weighted_batch_norm(X, running_mean=torch.zeros(3), training=training)
    with pytest.raises(ValueError, match="both"):
        weighted_batch_norm(X, running_var=torch.ones(3), training=training)


def test_inference_needs_statistics():
    with pytest.raises(ValueError, match="training=True"):
        weighted_batch_norm(X)


def test_unknown_correction():
    for call in (
        lambda: weighted_moments(X, None, "unbiased"),
        lambda: weighted_batch_norm(X, training=True, correction="unbiased"),
        lambda: WeightedBatchNorm1d(3, correction="unbiased"),
    ):
        with pytest.raises(ValueError, match=r"'unbiased'; choose one of .*reliability"):
            call()


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [{}, {"affine": False, "track_running_stats": False}])
def test_layers_refuse_input_that_does_not_fit(training, options):
    layer = WeightedBatchNorm2d(3, **options).train(training)
    before = copy.deepcopy(layer.state_dict())
    for shape, message in (((4, 2, 5, 5), "2 channels .* the layer has 3"), ((4, 3, 5), "4D")):
        with pytest.raises(ValueError, match=message):
            layer(torch.ones(shape))
    with pytest.raises(ValueError, match="floating point"):
        layer(torch.ones(4, 3, 5, 5, dtype=torch.int64))
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_context_weight_of_another_batch():
    with sample_weights(torch.ones(5)), pytest.raises(ValueError, match="sample_weights"):
        WeightedBatchNorm1d(3)(X)


def test_shapes_are_checked_where_values_are_not():
    x, w = torch.randn(2, 6, 3), torch.rand(2, 6)
    with pytest.raises(ValueError, match="sample_weight"):
        torch.func.vmap(lambda x, w: weighted_batch_norm(x, w[:4], training=True))(x, w)
    negative = torch.func.vmap(lambda x, w: weighted_batch_norm(x, -w, training=True))(x, w)
    assert negative.shape == x.shape


def test_values_are_checked_under_grad():
    def loss(x):
        return weighted_batch_norm(x, torch.tensor([-1.0, 2, 2, 2]), training=True).sum()

    with pytest.raises(ValueError, match="negative"):
        torch.func.grad(loss)(X)


def test_a_gradient_for_the_weights_is_refused_under_torch_func():
    with pytest.raises(ValueError, match="detach"):
        torch.func.grad(lambda w: weighted_batch_norm(X, w, training=True).sum())(torch.ones(4))
