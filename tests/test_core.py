"""The core against finite differences and against itself, replica by replica."""

import functools

import pytest
import torch
from torch.testing import assert_close

from wbn.core import Sums, merge, moments, normalize, normalize_backward

CORRECTIONS = ("frequency", "reliability", "none")
EPS = 1e-3


def tensors(*shapes, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def output(x, w, weight, bias, dims, correction):
    m = moments(x, w, dims, correction)
    return normalize(m.centered, m.var, weight, bias, EPS)


def finite_difference(function, argument, step=1e-6):
    """Gradient of a scalar function by central differences."""
    gradient = torch.zeros_like(argument)
    for i in range(argument.numel()):
        ends = []
        for sign in (1, -1):
            moved = argument.clone()
            moved.view(-1)[i] += sign * step
            ends.append(function(moved))
        gradient.view(-1)[i] = (ends[0] - ends[1]) / (2 * step)
    return gradient


CASES = {
    "samples": ((5, 3), (5, 1), (0,), (1, 3)),
    "images": ((3, 2, 2, 2), (3, 1, 1, 1), (0, 2, 3), (1, 2, 1, 1)),
    "positions": ((3, 2, 2, 2), (3, 1, 2, 2), (0, 2, 3), (1, 2, 1, 1)),
    "replicas": ((2, 4, 3), (2, 4, 1), (1,), (2, 1, 3)),
    "shared weights": ((2, 4, 3), (1, 4, 1), (1,), (2, 1, 3)),
}


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weighted", [True, False])
def test_backward_is_the_derivative_by_finite_differences(case, correction, weighted):
    shape, weight_shape, dims, channel_shape = CASES[case]
    x, g, u, weight, bias = tensors(shape, shape, weight_shape, channel_shape, channel_shape)
    w = 1 + u.abs() if weighted else None
    m = moments(x, w, dims, correction)
    gradients = normalize_backward(g, m, w, weight, EPS, dims)

    def loss(x=x, weight=weight, bias=bias):
        return (g * output(x, w, weight, bias, dims, correction)).sum()

    arguments = {"x": x, "weight": weight, "bias": bias}
    for (name, value), gradient in zip(arguments.items(), gradients, strict=True):
        expected = finite_difference(lambda moved, name=name: loss(**{name: moved}), value)
        assert_close(gradient, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_replicas_at_once_are_replicas_alone(correction):
    x, g, u, weight, bias = tensors((4, 6, 3), (4, 6, 3), (4, 6, 1), (4, 1, 3), (4, 1, 3))
    w = 1 + u.abs()
    together = moments(x, w, (1,), correction)
    y = normalize(together.centered, together.var, weight, bias, EPS)
    gradients = normalize_backward(g, together, w, weight, EPS, (1,))
    for s in range(4):
        alone = moments(x[s], w[s], (0,), correction)
        for a, b in zip(alone, together, strict=True):
            assert_close(a, b[s])
        assert_close(normalize(alone.centered, alone.var, weight[s], bias[s], EPS), y[s])
        for a, b in zip(
            normalize_backward(g[s], alone, w[s], weight[s], EPS, (0,)), gradients, strict=True
        ):
            assert_close(a, b[s])


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("case", ["samples", "images", "replicas"])
def test_no_weights_are_weights_of_one(case, correction):
    shape, weight_shape, dims, channel_shape = CASES[case]
    x, g, weight = tensors(shape, shape, channel_shape)
    ones = torch.ones(weight_shape, dtype=torch.float64)
    without, with_ones = moments(x, None, dims, correction), moments(x, ones, dims, correction)
    for a, b in zip(without, with_ones, strict=True):
        assert_close(a.expand_as(b), b)
    for a, b in zip(
        normalize_backward(g, without, None, weight, EPS, dims),
        normalize_backward(g, with_ones, ones, weight, EPS, dims),
        strict=True,
    ):
        assert_close(a, b)


def test_sums_run_over_the_positions_that_weights_are_shared_by():
    (x,) = tensors((3, 2, 4, 5))
    w = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64).view(3, 1, 1, 1)
    m = moments(x, w, (0, 2, 3), "none")
    assert m.total.item() == 6 * 20
    assert m.concentration.item() == pytest.approx(14 * 20 / 120**2)
    for a, b in zip(m, moments(x, w.expand(3, 1, 4, 5), (0, 2, 3), "none"), strict=True):
        assert_close(a, b)


def test_absent_scale_and_shift():
    (x,) = tensors((5, 3))
    m = moments(x, None, (0,), "none")
    one, zero = torch.ones(1, 3, dtype=torch.float64), torch.zeros(1, 3, dtype=torch.float64)
    expected = normalize(m.centered, m.var, one, zero, EPS)
    for weight in (None, one):
        for bias in (None, zero):
            assert_close(normalize(m.centered, m.var, weight, bias, EPS), expected)


def sums(x, w, dims):
    """The sums of a batch by their definitions."""
    w = torch.ones_like(x) if w is None else w.expand_as(x)
    total = w.sum(dims, keepdim=True)
    mean = (w * x).sum(dims, keepdim=True) / total
    scatter = (w * (x - mean).square()).sum(dims, keepdim=True)
    return Sums(total, mean, scatter, total.square() - w.square().sum(dims, keepdim=True))


def parts(case, cuts=(1, 2)):
    """A batch with weights, some of them 0, and the same cut along its samples."""
    shape, weight_shape, dims, _ = CASES[case]
    x, u = tensors(shape, weight_shape)
    w, samples = u.relu() + 0.1 * (u > -0.5), dims[0]
    whole = sums(5 + x, w, dims)
    cut = [torch.tensor_split(t, cuts, dim=samples) for t in (5 + x, w)]
    return whole, [sums(*part, dims) for part in zip(*cut, strict=True)]


def assert_sums_close(a, b):
    for ours, theirs in zip(a, b, strict=True):
        assert_close(ours.expand_as(theirs), theirs)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("cuts", [(1, 2), (2,), ()])
def test_merged_parts_of_a_batch_are_the_batch(case, cuts):
    whole, cut = parts(case, cuts)
    assert_sums_close(functools.reduce(merge, cut), whole)


@pytest.mark.parametrize("case", CASES)
def test_parts_merge_in_any_order(case):
    whole, (a, b, c) = parts(case)
    for merged in (merge(a, merge(b, c)), merge(merge(b, a), c), merge(c, merge(a, b))):
        assert_sums_close(merged, whole)


@pytest.mark.parametrize("case", CASES)
def test_a_part_without_weight_changes_nothing(case):
    shape, weight_shape, dims, _ = CASES[case]
    empty = sums(torch.ones(shape).double(), torch.zeros(weight_shape).double(), dims)
    assert empty.mean.isnan().all()
    whole, _ = parts(case)
    for merged in (merge(whole, empty), merge(empty, whole)):
        for ours, theirs in zip(merged, whole, strict=True):
            assert torch.equal(ours, theirs)
    assert (merge(empty, empty).total == 0).all()


def test_a_replica_without_weight_leaves_the_others_alone():
    x, u = tensors((2, 4, 3), (2, 4, 1))
    w = u.abs()
    w[1] = 0
    first, second = sums(x, w, (1,)), sums(x + 1, u.abs(), (1,))
    merged = merge(first, second)
    both = sums(torch.cat([x, x + 1], 1), torch.cat([w, u.abs()], 1), (1,))
    assert_sums_close(merged, both)


def test_merging_loses_no_digits_to_a_large_mean():
    x = 1e8 + torch.arange(10.0, dtype=torch.float64)[:, None]
    merged = functools.reduce(merge, [sums(part, None, (0,)) for part in x.split(3)])
    assert merged.scatter.item() == pytest.approx(82.5, rel=1e-9)


def test_sums_of_moments_are_those_by_definition():
    x, u = tensors((6, 2), (6, 1))
    m = moments(x, u.abs(), (0,), "none")
    own = Sums(m.total, m.mean, m.total * m.var, m.total * m.unbiased)
    for a, b in zip(own, sums(x, u.abs(), (0,)), strict=True):
        assert_close(a.expand_as(b), b)
