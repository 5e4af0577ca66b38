"""Class-averaged layers, against the engine's own, plain loops, autograd and torch's layers."""

import copy

import pytest
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

import wbn
from wbn.class_averages import (
    ClassAveragedBatchNorm1d,
    ClassAveragedBatchNorm2d,
    ClassAveragedBatchNorm3d,
    ClassAverages,
)

WEIGHT, COUNTS = torch.tensor([1.25, 5.0]), torch.tensor([80, 20])
CLASSES = ClassAverages(WEIGHT, COUNTS)


def batch(n=12, channels=3, positions=(), seed=0, rare=3):
    generator = torch.Generator().manual_seed(seed)
    labels = (torch.arange(n) < rare).long()
    x = torch.randn(n, channels, *positions, generator=generator, dtype=torch.float64)
    return x + 2 * labels.view(-1, *[1] * (x.dim() - 1)), WEIGHT[labels], labels


def layer_of(channels=3, kind=ClassAveragedBatchNorm1d, classes=CLASSES, **options):
    layer = kind(channels, classes, dtype=torch.float64, **options)
    with torch.no_grad():
        layer.weight.copy_(torch.linspace(0.5, 2, channels))
        layer.bias.copy_(torch.linspace(-1, 1, channels))
    return layer


def test_steps_equal_those_of_the_experiments_engine():
    """Outputs, gradients and statistics; the engine sums squares, the layer merges scatters."""
    variants = pytest.importorskip("study.engine.variants", exc_type=ImportError)
    ours = layer_of()
    eye = torch.eye(3, dtype=torch.float64)[None]
    engine = variants.ClassAveragesLayer(eye, "weighted", "none", ours.eps, None)
    engine.weight, engine.bias = ours.weight.detach()[None, None], ours.bias.detach()[None, None]
    engine.class_weight = WEIGHT.double()
    engine.share = (WEIGHT * COUNTS / (WEIGHT * COUNTS).sum()).double()
    for step, rare in enumerate((3, 0, 1, 0, 5)):  # batches without the rare class among them
        x, w, _ = batch(seed=step, rare=rare)
        x.requires_grad_()
        ours.zero_grad()
        grad = torch.randn(x.shape, generator=torch.Generator().manual_seed(9), dtype=x.dtype)
        y = ours(x, w)
        torch.testing.assert_close(
            y, engine.forward(x.detach()[None], w.double()[None, :, None])[0]
        )
        y.backward(grad)
        torch.testing.assert_close(x.grad, engine.backward(grad[None])[0])
        torch.testing.assert_close(ours.weight.grad, engine.weight.grad[0, 0])
        torch.testing.assert_close(ours.bias.grad, engine.bias.grad[0, 0])
        mean, var = engine.running()
        torch.testing.assert_close(ours.running_mean, mean[0, 0])
        torch.testing.assert_close(ours.running_var, var[0, 0])


@pytest.mark.parametrize(
    ("kind", "positions"),
    [
        (ClassAveragedBatchNorm1d, (4,)),
        (ClassAveragedBatchNorm2d, (2, 3)),
        (ClassAveragedBatchNorm3d, (2, 1, 2)),
    ],
)
def test_positions_count_as_samples_of_their_class(kind, positions):
    images, flat = layer_of(kind=kind), layer_of()
    for step in range(3):
        x, w, _ = batch(positions=positions, seed=step)
        y = images(x, w)
        rows = x.movedim(1, -1).reshape(-1, 3)
        expected = flat(rows, w.repeat_interleave(rows.shape[0] // len(w)))
        torch.testing.assert_close(y.movedim(1, -1).reshape(-1, 3), expected)
    torch.testing.assert_close(images.running_var, flat.running_var)


def test_moments_are_a_balanced_mixture_however_rare_a_class_is():
    layer = layer_of(affine=True)
    for step in range(400):
        x, w, _ = batch(n=200, seed=step, rare=2 * (step % 5 == 0))
        layer(x, w)
    torch.testing.assert_close(layer.running_mean, torch.ones(3).double(), atol=0.15, rtol=0)
    torch.testing.assert_close(layer.running_var, 2 * torch.ones(3).double(), atol=0.3, rtol=0)


def test_after_the_first_batch_training_and_inference_agree():
    layer = layer_of()
    for step in range(3):
        before = copy.deepcopy(layer).eval()
        x, w, _ = batch(seed=step)
        y = layer(x, w)
        if step:
            torch.testing.assert_close(y, before(x))


def test_a_class_that_was_not_seen_is_left_out():
    layer = layer_of()
    x, w, _ = batch(rare=0)
    layer(x, w)
    torch.testing.assert_close(layer.running_mean, x.mean(0))
    torch.testing.assert_close(layer.running_var, x.var(0, correction=0))


def test_classes_of_equal_weight_are_one():
    three = ClassAverages(torch.tensor([2.0, 1.0, 2.0]), torch.tensor([10, 30, 5]))
    levels, shares = three.shares()
    assert levels.tolist() == [1, 2]
    assert shares.tolist() == pytest.approx([0.5, 0.5])


def test_gradients_are_those_of_constants_r_and_d():
    layer = layer_of()
    layer(*batch(seed=1)[:2])
    frozen = copy.deepcopy(layer)
    x, w, _ = batch()
    x.requires_grad_()
    m, v = x.mean(0), x.var(0, correction=0)
    r = ((v + layer.eps) / (frozen.running_var + layer.eps)).sqrt().detach()
    d = ((m - frozen.running_mean) * (frozen.running_var + layer.eps).rsqrt()).detach()
    expected = layer.weight * ((x - m) / (v + layer.eps).sqrt() * r + d) + layer.bias
    y = layer(x, w)
    torch.testing.assert_close(y, expected)
    grad = torch.randn_like(y)
    ours, theirs = (torch.autograd.grad(out, x, grad)[0] for out in (y, expected))
    torch.testing.assert_close(ours, theirs)


def model():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(),
                         nn.Linear(144, 2), nn.BatchNorm1d(2))  # fmt: skip


def test_a_converted_model_trains_saves_loads_and_reverts():
    torch.manual_seed(0)
    net = wbn.convert(model(), exclude="5", statistics=CLASSES)
    assert type(net[1]) is ClassAveragedBatchNorm2d
    assert type(net[5]) is nn.BatchNorm1d
    images, labels = torch.randn(10, 1, 8, 8), torch.tensor([0] * 8 + [1] * 2)
    for _ in range(3):
        with wbn.sample_weights(WEIGHT[labels]):
            wbn.weighted_cross_entropy(net(images), labels).backward()
    again = wbn.convert(model(), exclude="5", statistics=CLASSES)
    again.load_state_dict(net.state_dict())
    torch.testing.assert_close(again[1].class_mean, net[1].class_mean)
    expected = net.eval()(images)
    deployed = wbn.revert(copy.deepcopy(net))
    assert type(deployed[1]) is nn.BatchNorm2d
    torch.testing.assert_close(deployed(images), expected, rtol=0, atol=0)
    plain = model().eval()
    plain.load_state_dict(deployed.state_dict())
    torch.testing.assert_close(plain(images), expected, rtol=0, atol=0)
    assert vars(deployed[1]).keys() == vars(plain[1]).keys()


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (None, "classes are known by their weights, and there are none"),
        (torch.full((12,), 3.0), "the weight 3 is that of no class"),
        (torch.ones(12, 4), "class averages need one weight a sample"),
        (torch.ones(11), "needs"),
    ],
)
def test_weights_that_tell_no_class_are_refused_and_change_nothing(weight, message):
    layer = layer_of()
    x = batch(positions=(4,))[0]
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match=message):
        layer(x, weight)
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        (ClassAverages(torch.ones(2), torch.ones(3)), "a weight and a count of each class"),
        (ClassAverages(torch.tensor([0.0, 1.0]), COUNTS), "above zero"),
        (ClassAverages(WEIGHT, torch.tensor([0, 3])), "above zero"),
        (ClassAverages(WEIGHT, COUNTS, momentum=0.0), "momentum is 0.0"),
    ],
)
def test_impossible_classes_are_refused_before_anything_changes(classes, message):
    net = model()
    with pytest.raises(ValueError, match=message):
        wbn.convert(net, statistics=classes)
    assert type(net[1]) is nn.BatchNorm2d


def test_layers_without_running_statistics_are_refused_before_anything_changes():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.BatchNorm1d(2, track_running_stats=False))
    with pytest.raises(ValueError, match="'1' does not track running statistics"):
        wbn.convert(net, statistics=CLASSES)
    assert type(net[0]) is nn.BatchNorm1d


def test_a_batch_that_is_not_finite_leaves_the_averages_alone():
    layer = layer_of()
    layer(*batch()[:2])
    before = copy.deepcopy(layer.state_dict())
    x, w, _ = batch(seed=1)
    layer(torch.where(torch.arange(12)[:, None] == 3, torch.inf, x), w)
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())


def test_a_batch_of_one_is_refused_and_changes_nothing():
    layer = layer_of()
    layer(*batch()[:2])
    before = copy.deepcopy(layer.state_dict())
    x, w, _ = batch(n=1)
    with pytest.raises(ValueError, match="at least two values per channel"):
        layer(x, w)
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())


def test_an_empty_batch_passes_and_changes_nothing():
    layer = layer_of()
    before = copy.deepcopy(layer.state_dict())
    x, w, _ = batch(n=0)
    assert layer(x, w).shape == (0, 3)
    assert all(torch.equal(before[name], value) for name, value in layer.state_dict().items())


@pytest.mark.parametrize("mode", ["batch_average", "weight_average", "pooled"])
def test_population_statistics_leave_the_averages_of_training(mode):
    """They are those of other layers, behind class averages as they are at inference."""
    net = nn.Sequential(layer_of(), nn.BatchNorm1d(3, dtype=torch.float64))
    batches = [batch(seed=seed)[:2] for seed in range(3)]
    for x, w in batches:
        with wbn.sample_weights(w):
            net(x)
    before = copy.deepcopy(net[0].state_dict())
    wbn.population_statistics(net, batches, mode, unpack=lambda pair: pair)
    after = net[0].state_dict()
    assert all(torch.equal(before[name], value) for name, value in after.items())
    seen = torch.cat([net[0].eval()(x) for x, _ in batches])
    torch.testing.assert_close(net[1].running_mean, seen.mean(0))


def test_checkpointing_is_refused():
    layer, (x, w, _) = layer_of(), batch()
    with wbn.sample_weights(w):
        y = checkpoint(layer, x.requires_grad_(), use_reentrant=False)
        with pytest.raises(ValueError, match="keep class-averaged layers out"):
            y.sum().backward()
