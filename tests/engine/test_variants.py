"""Layers normalized with something else than their batch, against plain loops and autograd."""

import pytest
import torch
from plain import ACTIVATIONS as BY_HAND

from study.engine.layer import ACTIVATIONS, Layer
from study.engine.variants import (
    ClassAveragesLayer,
    CrossFittedLayer,
    DetachedLayer,
    RunningSumsLayer,
)

EPS = 1e-3
DIVISORS = {
    "frequency": lambda w: w.sum() - 1,
    "reliability": lambda w: w.sum() - (w * w).sum() / w.sum(),
    "none": lambda w: w.sum(),
}
BOTH = pytest.mark.parametrize("kind", [CrossFittedLayer, RunningSumsLayer])
NORMS = pytest.mark.parametrize("norm", ["weighted", "standard"])


def make(kind, norm="weighted", correction="frequency", activation=None, replicas=3, seed=0):
    """A layer of 5 inputs and 4 outputs in double precision, gamma and b drawn too."""
    generator = torch.Generator().manual_seed(seed)
    draw = {"generator": generator, "dtype": torch.float64}
    layer = kind(torch.randn(replicas, 4, 5, **draw), norm, correction, EPS, activation)
    layer.weight, layer.bias = (torch.randn(replicas, 1, 4, **draw) for _ in range(2))
    return layer


def batch(n=11, replicas=3, seed=1):
    """Inputs, weights, a few of them heavy, and a gradient for the output."""
    generator = torch.Generator().manual_seed(seed)
    draw = {"generator": generator, "dtype": torch.float64}
    w = 1.0 + 20.0 * (torch.rand(replicas, n, 1, **draw) > 0.7).double()
    return torch.randn(replicas, n, 5, **draw) + 1, w, torch.randn(replicas, n, 4, **draw)


def step(layer, seed):
    z, w, grad = batch(seed=seed)
    layer.forward(z, w)
    layer.backward(grad)


def by_hand(x, w, divisor):
    """Weighted mean and variance of one column."""
    mean = (w * x).sum() / w.sum()
    return mean, (w * (x - mean) ** 2).sum() / divisor(w)


def cross_fitted(x, w, gamma, b, divisor):
    """One replica and one sample after the other, (N, C)."""
    rows = []
    for i in range(len(x)):
        others = list(range(1 - i % 2, len(x), 2))
        stats = [by_hand(column, w[others], divisor) for column in x[others].T]
        mean, var = (torch.stack(list(values)) for values in zip(*stats, strict=True))
        rows.append(gamma * (x[i] - mean) / (var + EPS).sqrt() + b)
    return torch.stack(rows)


def renormalized(x, mean, var, gamma, b):
    """Batch renormalization of one replica: values by M and V, the gradient by m and v."""
    m, v = x.mean(0), x.var(0, correction=0)
    r = ((v + EPS) / (var + EPS)).sqrt().detach()
    d = ((m - mean) / (var + EPS).sqrt()).detach()
    return gamma * ((x - m) / (v + EPS).sqrt() * r + d) + b


def check_gradients(layer, z, grad, expected, activation=None):
    """The layer's outputs and gradients, and those of `expected(replica, x, gamma, b)`."""
    returned = layer.backward(grad)
    for s in range(len(z)):
        leaves = [p[s].clone().requires_grad_() for p in layer.parameters]
        x = z[s] @ leaves[0].T
        x.retain_grad()
        y = expected(s, x, leaves[1][0], leaves[2][0])
        y = BY_HAND[activation](y) if activation else y
        y.backward(grad[s])
        torch.testing.assert_close(layer.saved[2][s], y.detach())
        torch.testing.assert_close(returned[s], x.grad)
        for ours, theirs in zip(layer.parameters, leaves, strict=True):
            torch.testing.assert_close(ours.grad[s], theirs.grad)


@NORMS
@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
@pytest.mark.parametrize("correction", DIVISORS)
def test_cross_fitted_halves_equal_a_loop_over_samples(norm, activation, correction):
    layer = make(CrossFittedLayer, norm, correction, activation)
    z, w, grad = batch()
    layer.forward(z, w)
    counted = w if norm == "weighted" else torch.ones_like(w)

    def expected(s, x, gamma, b):
        return cross_fitted(x, counted[s, :, 0], gamma, b, DIVISORS[correction])

    check_gradients(layer, z, grad, expected, activation)


@NORMS
@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
def test_running_sums_equal_batch_renormalization(norm, activation):
    layer = make(RunningSumsLayer, norm, activation=activation)
    step(layer, seed=2)
    mean, var = layer.running()
    z, w, grad = batch(seed=3)
    torch.testing.assert_close(layer.forward(z, w), layer.infer(z, (mean, var)))
    check_gradients(
        layer,
        z,
        grad,
        lambda s, x, gamma, b: renormalized(x, mean[s], var[s], gamma, b),
        activation,
    )


@NORMS
def test_running_sums_over_three_batches_by_hand(norm):
    layer, sums = make(RunningSumsLayer, norm), None
    for seed in (4, 5, 6):
        z, w, grad = batch(n=seed, seed=seed)  # batches of different sizes
        layer.forward(z, w)
        layer.backward(grad)
        x, w = z @ layer.linear.mT, w if norm == "weighted" else torch.ones_like(w)
        latest = torch.stack([(w * power).sum(1, keepdim=True) for power in (x**0, x, x**2)])
        sums = latest if sums is None else 0.98 * sums + 0.02 * latest
        mean, second = sums[1:] / sums[0]
        torch.testing.assert_close(layer.running(), (mean, second - mean**2))


@NORMS
def test_the_first_batch_of_running_sums_is_normalized_with_its_own_moments(norm):
    layer, own = make(RunningSumsLayer, norm), make(Layer, norm, "none")
    z, w, _ = batch()
    torch.testing.assert_close(layer.forward(z, w), own.forward(z, w))


def test_running_sums_change_by_a_step_only():
    layer = make(RunningSumsLayer)
    step(layer, seed=2)
    before = [t.clone() for t in layer.running()]
    for seed in range(3):
        z, w, _ = batch(n=20, seed=seed)
        with torch.no_grad():
            layer.forward(z, w)
        layer.forward(z, None)
        layer.infer(z, layer.running())
    assert all(map(torch.equal, layer.running(), before))
    step(layer, seed=7)
    assert not any(map(torch.equal, layer.running(), before))


@BOTH
def test_the_weight_of_a_sample_moves_the_other_half_or_nothing(kind):
    layer = make(kind)
    step(layer, seed=2)
    z, w, _ = batch()
    heavier = w.clone()
    heavier[:, 4] *= 50
    first, second = layer.forward(z, w), layer.forward(z, heavier)
    moved = (first != second).any(-1).any(0)
    odd = torch.arange(11) % 2 == 1
    assert torch.equal(moved, odd if kind is CrossFittedLayer else torch.zeros_like(odd))


@BOTH
def test_replicas_do_not_depend_on_each_other(kind):
    together = make(kind)
    z, w, grad = batch()
    for seed in (2, 3):
        step(together, seed)
    y, dx = together.forward(z, w), together.backward(grad)
    for s in range(3):
        alone = make(kind)
        for name in ("linear", "weight", "bias"):
            setattr(alone, name, getattr(alone, name)[s : s + 1])
        for seed in (2, 3, 1):
            own = [t[s : s + 1] for t in batch(seed=seed)]
            first = alone.forward(*own[:2])
            last = alone.backward(own[2])
        torch.testing.assert_close(first[0], y[s])
        torch.testing.assert_close(last[0], dx[s])
        for a, b in zip(alone.parameters, together.parameters, strict=True):
            torch.testing.assert_close(a.grad[0], b.grad[s])


@BOTH
@NORMS
def test_what_is_kept_for_inference_is_the_whole_batch(kind, norm):
    layer, plain = make(kind, norm), make(Layer, norm)
    z, w, _ = batch()
    layer.forward(z, w)
    plain.forward(z, w)
    assert all(map(torch.equal, layer.statistics(), plain.statistics()))


def test_a_half_of_one_sample_is_refused():
    z, w, _ = batch(n=3)
    for norm in ("weighted", "standard"):
        with pytest.raises(ValueError, match="all the weight lies on one position"):
            make(CrossFittedLayer, norm).forward(z, w)


@pytest.mark.parametrize(("kind", "each"), [(CrossFittedLayer, 0.6), (RunningSumsLayer, 0.4)])
def test_four_samples_of_too_little_weight_are_refused(kind, each):
    """Halves of 1.2 or a batch of 1.6, where the frequency correction divides by Z - 1."""
    z, w, _ = batch(n=4)
    with pytest.raises(ValueError, match="they must sum to at least 2"):
        make(kind).forward(z, torch.full_like(w, each))
    make(kind, correction="reliability").forward(z, torch.full_like(w, each))


@pytest.mark.parametrize("activation", BY_HAND)
@pytest.mark.parametrize("norm", ["weighted", "standard", "none"])
def test_activations_of_a_layer_equal_autograd(norm, activation):
    assert set(ACTIVATIONS) == set(BY_HAND)
    layer = make(Layer, norm, activation=activation)
    layer.weight = None if norm == "none" else layer.weight
    z, w, grad = batch()
    y = layer.forward(z, w)
    returned = layer.backward(grad)
    for s in range(3):
        x = (z[s] @ layer.linear[s].T).requires_grad_()
        out = x + layer.bias[s]
        if norm != "none":
            own = w[s] if norm == "weighted" else torch.ones_like(w[s])
            mean = (own * x).sum(0) / own.sum()
            var = (own * (x - mean) ** 2).sum(0) / (own.sum() - 1)
            out = layer.weight[s] * (x - mean) / (var + EPS).sqrt() + layer.bias[s]
        out = BY_HAND[activation](out)
        torch.testing.assert_close(y[s], out.detach())
        (expected,) = torch.autograd.grad(out, x, grad[s])
        torch.testing.assert_close(returned[s], expected)
    statistics = layer.statistics()
    torch.testing.assert_close(layer.infer(z, statistics), y)


def test_relu_is_what_it_was():
    y = torch.tensor([-1.0, -0.0, 0.0, 1e-30, 2.5, float("nan")])
    activated = ACTIVATIONS["relu"].apply(y.clone())
    torch.testing.assert_close(activated, y.relu(), rtol=0, atol=0, equal_nan=True)
    assert ACTIVATIONS["relu"].slope(activated).tolist() == [0, 0, 0, 1, 1, 0]


@NORMS
@pytest.mark.parametrize("activation", [None, *BY_HAND])
@pytest.mark.parametrize("correction", DIVISORS)
def test_no_gradient_goes_through_detached_moments(norm, activation, correction):
    layer = make(DetachedLayer, norm, correction, activation)
    plain = make(Layer, norm, correction, activation)
    z, w, grad = batch()
    torch.testing.assert_close(layer.forward(z, w), plain.forward(z, w))
    assert all(map(torch.equal, layer.statistics(), plain.statistics()))
    counted = w if norm == "weighted" else torch.ones_like(w)

    def expected(s, x, gamma, b):
        fixed = [by_hand(column, counted[s, :, 0], DIVISORS[correction]) for column in x.T]
        mean, var = (torch.stack(m).detach() for m in zip(*fixed, strict=True))
        return gamma * (x - mean) / (var + EPS).sqrt() + b

    check_gradients(layer, z, grad, expected, activation)
    assert not torch.allclose(plain.backward(grad).mT @ z, layer.linear.grad)


CLASS_WEIGHT = torch.tensor([1.25, 4.0, 10.0], dtype=torch.float64)
SHARE = torch.tensor([0.5, 0.3, 0.2], dtype=torch.float64)


def make_averages(activation=None, replicas=slice(None)):
    layer = make(ClassAveragesLayer, activation=activation)
    for name in ("linear", "weight", "bias"):
        setattr(layer, name, getattr(layer, name)[replicas])
    layer.class_weight, layer.share = CLASS_WEIGHT, SHARE
    return layer


def of_classes(labels, seed):
    """A mini-batch with a row of labels for each replica."""
    labels = torch.tensor(labels)
    z, _, grad = batch(n=labels.shape[1], replicas=len(labels), seed=seed)
    return z, CLASS_WEIGHT[labels][..., None], grad, labels


# The last class comes late, and never to the last replica.
FOUR = [
    [[0, 0, 1, 0], [0, 0, 0, 0], [0, 1, 1, 1]],
    [[0, 0, 0, 0, 0], [0, 1, 0, 1, 0], [0, 0, 0, 0, 0]],
    [[2, 0, 1], [0, 0, 1], [1, 1, 1]],
    [[0, 2, 0, 1, 0, 2], [2, 0, 0, 0, 0, 0], [0, 1, 0, 1, 1, 0]],
]


def averages_by_hand(layer, batches):
    """M and V of each replica: a dictionary of classes, a number at a time."""
    mean, var = torch.zeros(3, 1, 4).double(), torch.zeros(3, 1, 4).double()
    for s in range(3):
        for c in range(4):
            running = None
            for z, _, _, labels in batches:
                latest = {}
                for row, label in zip(z[s], labels[s].tolist(), strict=True):
                    x = (row @ layer.linear[s, c]).item()
                    n, first, second = latest.get(label, (0, 0, 0))
                    latest[label] = (n + 1, first + x, second + x * x)
                if running is None:
                    running = latest
                    continue
                running = {
                    k: [
                        0.98 * a + 0.02 * b
                        for a, b in zip(
                            running.get(k, (0, 0, 0)), latest.get(k, (0, 0, 0)), strict=True
                        )
                    ]
                    for k in {*running, *latest}
                }
            share = {k: SHARE[k].item() for k in running}
            whole = sum(share.values())
            mean[s, 0, c] = sum(share[k] / whole * m / n for k, (n, m, _) in running.items())
            square = sum(share[k] / whole * q / n for k, (n, _, q) in running.items())
            var[s, 0, c] = square - mean[s, 0, c] ** 2
    return mean, var


@pytest.mark.parametrize("activation", [None, "relu", "tanh"])
def test_class_averages_over_four_batches_by_hand(activation):
    layer, seen = make_averages(activation), []
    for seed, labels in enumerate(FOUR):
        z, w, grad, labels = of_classes(labels, seed)
        seen.append((z, w, grad, labels))
        mean, var = averages_by_hand(layer, seen[:-1] or seen)  # of those before, if there are
        y = layer.forward(z, w)
        torch.testing.assert_close(layer.running(), (mean, var))
        torch.testing.assert_close(y, layer.infer(z, (mean, var)))
        check_gradients(
            layer,
            z,
            grad,
            lambda s, x, gamma, b, m=mean, v=var: renormalized(x, m[s], v[s], gamma, b),
            activation,
        )
    torch.testing.assert_close(layer.running(), averages_by_hand(layer, seen))


def test_replicas_of_class_averages_do_not_depend_on_each_other():
    together, alone = make_averages(), [make_averages(replicas=[s]) for s in range(3)]
    for seed, labels in enumerate(FOUR):
        z, w, grad, _ = of_classes(labels, seed)
        y, dx = together.forward(z, w), together.backward(grad)
        for s, layer in enumerate(alone):
            torch.testing.assert_close(layer.forward(z[[s]], w[[s]])[0], y[s])
            torch.testing.assert_close(layer.backward(grad[[s]])[0], dx[s])


def test_class_averages_equal_running_sums_of_batches_with_the_shares_of_the_data():
    """Five, three and two samples of equal weight are the shares; others are not."""
    labels = [[0, 1, 0, 2, 0, 1, 0, 1, 2, 0]] * 3
    layer, sums = make_averages(), make(RunningSumsLayer)
    weight = SHARE / torch.tensor([5, 3, 2])
    for seed in range(3):
        z, w, grad, places = of_classes(labels, seed)
        for each, weights in ((layer, w), (sums, 20 * weight[places][..., None])):
            each.forward(z, weights)
            each.backward(grad)
        torch.testing.assert_close(layer.running(), sums.running())
    z, w, grad, places = of_classes([[0, 0, 0, 1, 2]] * 3, 4)
    for each, weights in ((layer, w), (sums, 20 * weight[places][..., None])):
        each.forward(z, weights)
        each.backward(grad)
    assert not torch.allclose(layer.running()[0], sums.running()[0], rtol=1e-6)


def test_the_class_of_a_sample_moves_nothing_in_its_own_batch():
    layer = make_averages()
    for seed, labels in enumerate(FOUR[:3]):
        z, w, grad, _ = of_classes(labels, seed)
        layer.forward(z, w)
        layer.backward(grad)
    z, w, grad, _ = of_classes(FOUR[3], 3)
    first = layer.forward(z, w)
    other = w.clone()
    other[:, 0] = CLASS_WEIGHT[1]
    assert torch.equal(layer.forward(z, other), first)
    before = [m.clone() for m in layer.running()]
    layer.backward(grad)
    assert not any(map(torch.equal, layer.running(), before))
