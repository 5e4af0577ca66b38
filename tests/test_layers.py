"""The layers against torch's, and a whole weighted network against replication."""

import copy
import pickle
from contextlib import nullcontext

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from wbn.context import sample_weights
from wbn.functional import weighted_batch_norm, weighted_moments
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d

CORRECTIONS = ("frequency", "reliability", "none")
LAYERS = {
    (6, 3): (WeightedBatchNorm1d, nn.BatchNorm1d),
    (6, 3, 4): (WeightedBatchNorm1d, nn.BatchNorm1d),
    (4, 3, 4, 2): (WeightedBatchNorm2d, nn.BatchNorm2d),
    (3, 3, 2, 3, 2): (WeightedBatchNorm3d, nn.BatchNorm3d),
}
OPTIONS = [
    {},
    {"eps": 1e-2, "momentum": 0.7},
    {"momentum": None},
    {"momentum": 0.0},
    {"affine": False},
    {"track_running_stats": False},
    {"affine": False, "track_running_stats": False},
]
DTYPES = [torch.float64, torch.float32, torch.bfloat16]


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def randomize(layer):
    for i, parameter in enumerate(layer.parameters()):
        parameter.data.copy_(normal(*parameter.shape, seed=10 + i))
    return layer


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_without_weights_and_correction_it_is_torch(shape, options, dtype):
    ours, theirs = (randomize(cls(3, dtype=dtype, **options)) for cls in LAYERS[shape])
    for step in range(4):
        ours.train(step < 3)
        theirs.train(step < 3)
        inputs = [normal(*shape, seed=step, dtype=dtype).requires_grad_() for _ in "ab"]
        outputs = [layer(x) for layer, x in zip((ours, theirs), inputs, strict=True)]
        assert torch.equal(*outputs)
        for y in outputs:
            y.backward(normal(*shape, seed=20 + step, dtype=dtype))
        assert_close(inputs[0].grad, inputs[1].grad)
        for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
            assert_close(a.grad, b.grad)
        assert ours.state_dict().keys() == theirs.state_dict().keys()
        for name, value in theirs.state_dict().items():
            assert_close(ours.state_dict()[name], value)


def errors(layer, x, grad, *w):
    """Of output, gradients and statistics in single precision: the root of the mean square."""
    results = []
    for dtype in (torch.float32, torch.float64):
        twin, leaf = copy.deepcopy(layer).to(dtype), x.to(dtype, copy=True).requires_grad_()
        y = twin(leaf, *w)
        y.backward(grad.to(dtype))
        tensors = (y, leaf.grad, twin.weight.grad, twin.running_mean, twin.running_var)
        results.append([t.detach().double() for t in tensors])
    return [(ours - exact).square().mean().sqrt() for ours, exact in zip(*results, strict=True)]


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("weights", ["none", "samples", "positions"])
def test_a_large_mean_costs_no_more_digits_than_in_torch(correction, weights):
    """2 is for the luck of rounding the means, which differ; without a second pass it is 50."""
    x, grad = 1e6 + normal(64, 8, 28, 28), normal(64, 8, 28, 28, seed=1)
    shape = {"none": None, "samples": (64,), "positions": (64, 28, 28)}[weights]
    w = () if shape is None else (0.5 + normal(*shape, seed=2).abs(),)
    ours = errors(WeightedBatchNorm2d(8, momentum=1.0, correction=correction), x, grad, *w)
    theirs = errors(nn.BatchNorm2d(8, momentum=1.0), x, grad)
    assert all(a <= 2 * b for a, b in zip(ours, theirs, strict=True)), (ours, theirs)


def test_half_precision_input_and_single_precision_layer():
    ours, theirs = WeightedBatchNorm2d(3), nn.BatchNorm2d(3)
    x = normal(4, 3, 5, 5, dtype=torch.bfloat16)
    assert_close(ours(x), theirs(x))
    assert_close(ours.running_var, theirs.running_var)
    assert_close(ours.eval()(x), theirs.eval()(x))


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("layer_dtype", [torch.bfloat16, torch.float32])
def test_half_precision_with_weights(correction, layer_dtype):
    x, w = normal(16, 3, 5, dtype=torch.bfloat16), torch.arange(1.0, 17)
    layer = randomize(WeightedBatchNorm1d(3, correction=correction, dtype=layer_dtype))
    exact = copy.deepcopy(layer).double()
    y, expected = layer(x, w), exact(x.double(), w)
    assert y.dtype == torch.bfloat16
    assert_close(y, expected.bfloat16())
    y.backward(torch.ones_like(y))
    expected.backward(torch.ones_like(expected))
    for ours, theirs in zip(layer.parameters(), exact.parameters(), strict=True):
        assert ours.grad.dtype == layer_dtype
        assert_close(ours.grad, theirs.grad.to(layer_dtype), rtol=1e-2, atol=1e-4)
    assert_close(layer.running_var, exact.running_var.to(layer_dtype))


@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_standard_batch_norm_of_the_paper(shape):
    """No weights and the correction "frequency": the variance of Eq. 10, divided by n - 1."""
    x, layer = normal(*shape), LAYERS[shape][0](3, correction="frequency")
    dims = (0, *range(2, len(shape)))
    var, mean = torch.var_mean(x, dims, correction=1, keepdim=True)
    assert_close(layer(x), (x - mean) / (var + layer.eps).sqrt())
    assert_close(layer.running_var, 0.9 + 0.1 * var.flatten())


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_weights_by_argument_and_by_context(shape, correction):
    x, w = normal(*shape), torch.arange(1.0, 1 + shape[0])
    layer = randomize(LAYERS[shape][0](3, correction=correction))
    expected = weighted_batch_norm(
        x, w, weight=layer.weight, bias=layer.bias, training=True, correction=correction
    )
    assert_close(layer(x, w), expected)
    with sample_weights(w):
        assert_close(layer(x), expected)
        unit = torch.ones_like(w)
        assert not torch.allclose(layer(x, unit), expected)
    assert_close(layer(x, unit), layer(x))
    with sample_weights(unit):
        assert_close(layer(x, sample_weight=w), expected)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_eval_mode_is_affine_and_ignores_weights(correction):
    layer = randomize(WeightedBatchNorm1d(3, correction=correction))
    layer(normal(8, 3), torch.rand(8) + 1)
    layer.eval()
    x = normal(5, 3, seed=1)
    expected = F.batch_norm(x, layer.running_mean, layer.running_var, layer.weight, layer.bias)
    before = copy.deepcopy(layer.state_dict())
    with sample_weights(torch.tensor([-1.0])):
        assert torch.equal(layer(x), expected)
        assert torch.equal(layer(x, torch.zeros(7)), expected)
    assert torch.equal(layer(x[:1]), expected[:1])
    assert all(torch.equal(layer.state_dict()[name], before[name]) for name in before)


def test_without_running_statistics_eval_mode_uses_the_batch():
    layer = WeightedBatchNorm1d(3, track_running_stats=False).eval()
    x, w = normal(5, 3), torch.arange(1.0, 6)
    assert_close(layer(x, w), weighted_batch_norm(x, w, training=True))


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_no_momentum_is_the_cumulative_average(correction):
    layer = WeightedBatchNorm1d(3, momentum=None, correction=correction, dtype=torch.float64)
    stored = "reliability" if correction == "none" else correction
    batches = [normal(6, 3, seed=seed, dtype=torch.float64) for seed in range(5)]
    w = torch.arange(1.0, 7)
    for x in batches:
        layer(x, w)
    moments = [weighted_moments(x, w, stored) for x in batches]
    assert layer.num_batches_tracked == 5
    assert_close(layer.running_mean, torch.stack([m for m, _ in moments]).mean(0))
    assert_close(layer.running_var, torch.stack([v for _, v in moments]).mean(0))


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("first", [True, False])
def test_a_batch_that_is_not_finite_is_not_counted(momentum, first):
    layer, expected = (WeightedBatchNorm1d(3, momentum=momentum) for _ in "ab")
    good, bad, w = normal(4, 3), normal(4, 3), torch.arange(1.0, 5)
    bad[1, 2] = float("inf")
    for x in (bad, good, good + 1) if first else (good, bad, good + 1):
        layer(x, w)
    for x in (good, good + 1):
        expected(x, w)
    for name, value in expected.state_dict().items():
        assert torch.equal(layer.state_dict()[name], value)


def test_statistics_are_not_touched_when_they_are_not_tracked():
    layer = WeightedBatchNorm1d(3)
    layer.track_running_stats = False
    layer(normal(4, 3))
    assert layer.num_batches_tracked == 0
    assert torch.equal(layer.running_mean, torch.zeros(3))
    layer.track_running_stats, layer.running_mean, layer.running_var = True, None, None
    assert_close(layer(normal(4, 3)), WeightedBatchNorm1d(3)(normal(4, 3)))


@pytest.mark.parametrize("shape", LAYERS, ids=str)
def test_state_dicts_load_both_ways(shape):
    ours, theirs = (cls(3) for cls in LAYERS[shape])
    x = normal(*shape)
    randomize(ours)(x)
    theirs.load_state_dict(ours.state_dict())
    assert torch.equal(theirs.eval()(x), ours.eval()(x))
    fresh = LAYERS[shape][0](3)
    fresh.load_state_dict(theirs.state_dict())
    assert torch.equal(fresh.eval()(x), ours(x))


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_repr_shows_the_correction(correction):
    layer = WeightedBatchNorm2d(3, eps=0.5, correction=correction)
    assert repr(layer).startswith("WeightedBatchNorm2d(3, eps=0.5")
    assert f"correction={correction!r}" in repr(layer)
    assert "correction='none'" in repr(WeightedBatchNorm1d(3))


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_keep_the_correction(clone):
    layer = WeightedBatchNorm1d(3, correction="reliability")
    assert clone(layer).correction == "reliability"


def test_they_are_kinds_of_torch_batch_norm():
    for ours, theirs in LAYERS.values():
        assert isinstance(ours(3), theirs)


@pytest.mark.parametrize("momentum", [0.1, None])
@pytest.mark.parametrize("correction", ["frequency", "none"])
def test_a_model_in_a_context_compiles_to_one_graph(momentum, correction):
    torch.manual_seed(0)
    norm = WeightedBatchNorm1d(3, momentum=momentum, correction=correction)
    model = nn.Sequential(nn.Linear(4, 3), norm).double()  # the first bias has a gradient of zero
    twin = copy.deepcopy(model)
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for seed, weighted in enumerate((True, True, False)):
        x, w = normal(6, 4, seed=seed, dtype=torch.float64), torch.rand(6) + seed + 1
        outputs = []
        for function in (model, compiled):
            with sample_weights(w if weighted else None):
                outputs.append(function(x))
            outputs[-1].pow(3).sum().backward()
        assert_close(*outputs)
    torch._dynamo.reset()
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert_close(a.grad, b.grad)
    for a, b in zip(model.buffers(), twin.buffers(), strict=True):
        assert_close(a, b)


def test_stateless_vmap_over_layers():
    layer, x = WeightedBatchNorm1d(3, track_running_stats=False), normal(2, 6, 3)
    weights = normal(2, 3, seed=1)
    for correction in CORRECTIONS:
        layer.correction = correction
        together = torch.func.vmap(
            lambda x, weight: torch.func.functional_call(layer, {"weight": weight}, (x,))
        )(x, weights)
        for s in range(2):
            layer.weight.data.copy_(weights[s])
            assert_close(together[s], layer(x[s]))


def test_activation_checkpointing_is_told_the_weights():
    x, w = normal(6, 3), torch.arange(1.0, 7)
    gradients = []
    for checkpointed in (False, True):
        layer, leaf = WeightedBatchNorm1d(3), x.clone().requires_grad_()
        with sample_weights(w):
            y = (
                checkpoint(
                    layer,
                    leaf,
                    use_reentrant=False,
                    context_fn=lambda: (nullcontext(), sample_weights(w)),
                )
                if checkpointed
                else layer(leaf)
            )
        y.pow(3).sum().backward()
        gradients.append(leaf.grad)
    assert_close(*gradients)


def network(norm):
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Conv1d(1, 4, 3, bias=False),
        norm(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16, 5, bias=False),
        norm(5),
        nn.ReLU(),
        nn.Linear(5, 3, bias=False),
        norm(3),
    ).double()


def step(model, x, target, w):
    """One step of SGD on the weighted loss of Eq. 2, with the mini-batch's own Z."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = F.cross_entropy(model(x), target, reduction="none")
    ((w * losses).sum() / w.sum()).backward()
    optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def test_a_weighted_step_is_a_plain_step_on_the_replicated_batch():
    """The size-mismatch argument: weights act as copies in the loss and in batch norm alike."""
    x = normal(12, 1, 6, dtype=torch.float64)
    target = torch.arange(12) % 3
    w = torch.tensor([1, 4, 2] * 4).double()
    copies = torch.arange(12).repeat_interleave(w.long())
    ones = torch.ones(len(copies), dtype=torch.float64)

    plain = step(network(WeightedBatchNorm1d), x[copies], target[copies], ones)
    weighted = network(WeightedBatchNorm1d)
    with sample_weights(w):
        assert_close(step(weighted, x, target, w), plain)

    mismatched = step(network(WeightedBatchNorm1d), x, target, w)
    start = torch.cat([p.detach().flatten() for p in network(WeightedBatchNorm1d).parameters()])
    assert (mismatched - plain).norm() > 0.1 * (plain - start).norm()
