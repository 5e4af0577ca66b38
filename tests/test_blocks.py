"""Batches in blocks: the same as in one, and as the core in double precision."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from wbn import blocks
from wbn.blocks import gradients_in_blocks, moments_in_blocks, shares, works_in_blocks
from wbn.core import moments, normalize, reduced
from wbn.functional import weighted_batch_norm

SHAPES = [(37, 5), (9, 4, 7), (5, 3, 4, 6), (4, 2, 3, 2, 5)]
LAYOUTS = ["first", "last"]
CORRECTIONS = ("frequency", "reliability", "none")


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def weights(shape, per_position):
    size = (shape[0], *shape[2:]) if per_position else shape[:1]
    w = 1 + torch.rand(size, generator=torch.Generator().manual_seed(1))
    w.view(-1)[::5] = 0
    return w


def laid_out(x, layout):
    return x if layout == "first" else x.movedim(1, -1).contiguous().movedim(-1, 1)


@pytest.fixture(params=[8, 40, 2**18], ids="block of {}".format)
def block(request, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", request.param)


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments_are_those_of_numpy(shape, layout, per_position, block):
    x, w = laid_out(normal(*shape), layout), weights(shape, per_position)
    mean, var = moments_in_blocks(x, shares(x, w, "none").of)
    columns = x.movedim(1, -1).reshape(-1, shape[1]).double().numpy()
    each = w.view(-1) if per_position else w.repeat_interleave(x[0, 0].numel())
    expected = np.average(columns, axis=0, weights=each.double().numpy())
    squares = (columns - expected) ** 2
    assert_close(mean.double(), torch.tensor(expected), rtol=1e-5, atol=1e-6)
    expected = np.average(squares, axis=0, weights=each.double().numpy())
    assert_close(var.double(), torch.tensor(expected), rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_those_of_autograd_through_the_core(shape, layout, correction, dtype, block):
    x, grad = (laid_out(normal(*shape, seed=s, dtype=dtype), layout) for s in (0, 2))
    weight, w = normal(shape[1], seed=3).double(), weights(shape, per_position=True)
    leaves = [t.double().clone().requires_grad_() for t in (x, weight, weight - 1)]
    like = (1, -1, *(1 for _ in shape[2:]))
    m = moments(leaves[0], w.double().unsqueeze(1), reduced(x), correction)
    y = normalize(m.centered, m.var, *(leaf.view(like) for leaf in leaves[1:]), 1e-3)
    y.backward(grad.double())

    share = shares(x, w, correction)
    mean, var = moments_in_blocks(x, share.of)
    var = var * share.corrected
    found = gradients_in_blocks(
        grad, x, weight.to(mean.dtype), share.of, mean, var, share.corrected, 1e-3
    )
    close = {} if dtype == torch.float64 else {"rtol": 1e-2, "atol": 1e-2}
    for ours, leaf in zip(found, leaves, strict=True):
        assert_close(ours.double(), leaf.grad, **close)


def test_a_large_mean_leaves_the_variance_right_over_many_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    x, w = 1e5 + normal(500, 3), torch.ones(500)
    _, var = moments_in_blocks(x, shares(x, w, "none").of)
    assert_close(var.double(), x.double().var(0, correction=0), rtol=1e-5, atol=0)


@pytest.mark.parametrize("value", [0.1, 1e6, -3e-7])
def test_the_variance_of_equal_values_is_not_negative(value):
    x = torch.full((97, 4), value)
    _, var = moments_in_blocks(x, shares(x, weights((97, 4), False), "none").of)
    assert (var >= 0).all()
    assert (var <= (1e-6 * value) ** 2).all()


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_an_input_with_gaps_is_normalized_as_its_copy(correction):
    wide, w = normal(12, 8, 6), weights((12, 4, 3), per_position=True)
    x = wide[:, ::2, 1::2].transpose(0, 1).contiguous().transpose(0, 1)
    assert not x.is_contiguous()
    options = {"training": True, "correction": correction}
    ours, copied = (weighted_batch_norm(t, w, **options) for t in (x, x.contiguous()))
    assert_close(ours, copied)


def test_where_they_are_used():
    x = normal(4, 3)
    assert works_in_blocks(x)
    assert works_in_blocks(torch.nn.Parameter(x))
    assert not works_in_blocks(x.to("meta"))
    assert not torch.func.vmap(lambda row: torch.tensor(works_in_blocks(row)))(x).any()
