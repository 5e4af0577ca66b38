"""Ordinary tensors on the CPU, by compiled code and by the core's formulas: as NumPy, and exact."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from wbn import kernels
from wbn.core import moments, normalize, reduced
from wbn.functional import weighted_batch_norm
from wbn.kernels import is_ordinary
from wbn.layers import WeightedBatchNorm1d
from wbn.normalization import normalize_batch

# Rows of channels, with few positions too, and channels by themselves.
SHAPES = [(37, 5), (37, 5, 1), (300, 2), (9, 4, 7), (5, 3, 4, 6), (4, 2, 3, 2, 5)]
LAYOUTS = ["first", "last"]
UNCOMPILED = "the compiled part (it needs a C++ compiler when wbn is installed) is missing"
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


@pytest.fixture(params=["compiled", "formulas"])
def by(request, monkeypatch):
    if request.param == "formulas":
        monkeypatch.setattr(kernels, "native", None)
    elif kernels.native is None:
        pytest.skip(UNCOMPILED)


def moments_of(x, w):
    """Mean and variance, the latter with the correction for reliability weights."""
    _, mean, var = normalize_batch(x, w, None, None, 1e-5, "reliability")
    return mean.double(), var.double()


def expected_moments(x, w):
    columns = x.movedim(1, -1).reshape(-1, x.shape[1]).double().numpy()
    each = w.reshape(-1).repeat_interleave(len(columns) // w.numel()).double().numpy()
    cov = np.cov(columns.T, aweights=each).reshape(len(columns.T), -1)
    return torch.tensor(np.average(columns, axis=0, weights=each)), torch.tensor(cov.diagonal())


@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_moments_are_those_of_numpy(shape, layout, per_position, by):
    x, w = laid_out(normal(*shape), layout), weights(shape, per_position)
    (mean, var), expected = moments_of(x, w), expected_moments(x, w)
    assert_close(mean, expected[0], rtol=1e-5, atol=1e-6)
    assert_close(var, expected[1], rtol=1e-5, atol=0)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients_are_those_of_autograd_through_the_core(shape, layout, correction, dtype, by):
    x, grad = (laid_out(normal(*shape, seed=s, dtype=dtype), layout) for s in (0, 2))
    weight, w = normal(shape[1], seed=3).double(), weights(shape, per_position=True)
    leaves = [t.double().clone().requires_grad_() for t in (x, weight, weight - 1)]
    like = (1, -1, *(1 for _ in shape[2:]))
    m = moments(leaves[0], w.double().unsqueeze(1), reduced(x), correction)
    y = normalize(m.centered, m.var, *(leaf.view(like) for leaf in leaves[1:]), 1e-3)
    y.backward(grad.double())

    ours = [t.clone().requires_grad_() for t in (x, weight, weight - 1)]
    options = {"training": True, "eps": 1e-3, "correction": correction}
    found = weighted_batch_norm(ours[0], w, weight=ours[1], bias=ours[2], **options)
    found.backward(grad)
    close = {} if dtype == torch.float64 else {"rtol": 1e-2, "atol": 1e-2}
    assert_close(found.double(), y, **close)
    for leaf, expected in zip(ours, leaves, strict=True):
        assert_close(leaf.grad.double(), expected.grad, **close)


@pytest.mark.parametrize("shape", [(500, 3), (50, 3, 10)])
def test_a_large_mean_leaves_the_variance_right(shape, by):
    x, w = 1e5 + normal(*shape), torch.ones(shape[0])
    x, (_, var) = x.movedim(1, -1).flatten(0, -2), moments_of(x, w)
    assert_close(var, x.double().var(0), rtol=1e-5, atol=0)


@pytest.mark.parametrize("shape", [(500, 3), (50, 3, 40), (50, 3, 2)])
def test_first_values_far_off_cost_no_digits(shape, by):
    x, w = normal(*shape), torch.ones(shape[0])
    x[:20] *= 1e-3
    x[:20] += 1e4
    w[:20] = 1e-12
    (mean, var), expected = moments_of(x, w), expected_moments(x, w)
    assert_close(mean, expected[0], rtol=1e-5, atol=1e-6)
    assert_close(var, expected[1], rtol=1e-5, atol=0)


@pytest.fixture
def threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.mark.skipif(kernels.native is None, reason=UNCOMPILED)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(700, 100), (20, 16, 16, 16)], ids=str)
def test_results_do_not_depend_on_the_number_of_threads(shape, layout, dtype, threads):
    w, found = weights(shape, per_position=False), []
    for number in (1, 2, 3):
        threads(number)
        x = laid_out(normal(*shape, dtype=dtype), layout).requires_grad_()
        y = weighted_batch_norm(x, w, training=True)
        y.backward(laid_out(normal(*shape, seed=1, dtype=dtype), layout))
        found.append((y.detach(), x.grad))
    for y, grad in found[1:]:
        assert torch.equal(y, found[0][0])
        assert torch.equal(grad, found[0][1])


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, 1e38])
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [*SHAPES, (600, 3)], ids=str)
def test_what_is_masked_counts_as_zero_and_has_no_gradient(shape, layout, per_position, bad, by):
    x, w = normal(*shape), weights(shape, per_position)
    w[: len(w) // 2] = 0  # whole parts, too
    masked = (w == 0).view(shape[0], 1, *(shape[2:] if per_position else (1 for _ in shape[2:])))
    masked = masked.expand(shape)
    leaves = [
        laid_out(x.masked_fill(masked, value), layout).requires_grad_() for value in (bad, 0.0)
    ]
    found = [weighted_batch_norm(leaf, w, training=True) for leaf in leaves]
    for y in found:
        y.backward(laid_out(normal(*shape, seed=1), layout))
    assert_close(*found)
    grad, expected = (leaf.grad for leaf in leaves)
    assert_close(grad, expected.masked_fill(masked, 0))


@pytest.mark.parametrize("value", [0.1, 1e6, -3e-7])
def test_the_variance_of_equal_values_is_not_negative(value, by):
    x = torch.full((97, 4), value)
    _, var = moments_of(x, weights((97, 4), False))
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
    assert is_ordinary(x)
    assert is_ordinary(torch.nn.Parameter(x))
    assert not is_ordinary(x.to("meta"))
    assert not torch.func.vmap(lambda row: torch.tensor(is_ordinary(row)))(x).any()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_batch_is_read_and_not_written(shape, per_position, layout, by):
    x, w = laid_out(normal(*shape), layout), weights(shape, per_position)
    grad, before = laid_out(normal(*shape, seed=1), layout), (x.clone(), w.clone())
    leaf = x.requires_grad_()
    y = weighted_batch_norm(leaf, w, training=True)
    kept = y.detach().clone()
    y.backward(grad)
    assert torch.equal(leaf.detach(), before[0])
    assert torch.equal(w, before[1])
    assert torch.equal(y.detach(), kept)
    assert torch.equal(grad, laid_out(normal(*shape, seed=1), layout))


def test_what_overflows_is_told_by_no_warning(by, recwarn):
    x = torch.tensor([[3e38, 1.0], [-3e38, torch.inf], [1.0, 2.0]], requires_grad=True)
    y = weighted_batch_norm(x, torch.ones(3), training=True)
    y.backward(torch.full_like(y, 3e38))
    assert not y.isfinite().all()
    assert not recwarn.list


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_output_may_be_overwritten(shape, layout, by):
    """As nn.ReLU(inplace=True) does, which torch refuses for views."""
    x, w = laid_out(normal(*shape), layout), weights(shape, per_position=False)
    found = []
    for relu in (torch.relu, torch.relu_):
        leaf = x.clone(memory_format=torch.preserve_format).requires_grad_()
        relu(weighted_batch_norm(leaf, w, training=True)).square().sum().backward()
        found.append(leaf.grad)
    assert_close(*found)


@pytest.mark.parametrize("shape", [(1, 3, 2), (3, 2, 2)])
def test_one_sample_may_have_all_the_weight_if_it_has_two_positions(shape, by):
    for seed in range(20):
        x, w = normal(*shape), torch.zeros(shape[0])
        w[0] = 0.5 + torch.rand(1, generator=torch.Generator().manual_seed(seed))
        assert_close(moments_of(x, w)[1], x[0].double().var(1), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("per_position", [False, True])
def test_autocast_is_for_products_and_not_for_moments(per_position, dtype, by):
    shape = (5, 3, 20)
    x, w = 1e3 + normal(*shape), weights(shape, per_position)
    expected = weighted_batch_norm(x, w, training=True)
    with torch.autocast("cpu", dtype=dtype):
        assert_close(weighted_batch_norm(x, w, training=True), expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_dimension_of_one_may_have_any_stride(axis, by):
    array = normal(8, 40).numpy()
    x = torch.from_numpy(array[None] if axis == 0 else array[:, None]).requires_grad_()
    plain = x.detach().clone(memory_format=torch.contiguous_format).requires_grad_()
    for leaf in (x, plain):
        weighted_batch_norm(leaf, torch.ones(len(leaf)), training=True).pow(3).sum().backward()
    assert_close(x.grad, plain.grad)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_batch_of_gradients_is_one_gradient_after_the_other(shape, by):
    x, w = normal(*shape).requires_grad_(), weights(shape, per_position=False)
    weight = normal(shape[1], seed=1).requires_grad_()
    y = weighted_batch_norm(x, w, weight=weight, training=True)
    grads = normal(4, *shape, seed=2)
    together = torch.autograd.grad(y, (x, weight), grads, is_grads_batched=True, retain_graph=True)
    single = [torch.autograd.grad(y, (x, weight), g, retain_graph=True) for g in grads]
    assert_close(together, tuple(torch.stack(each) for each in zip(*single, strict=True)))


def test_a_hook_may_save_the_input_in_another_layout(by):
    x, w, grad = normal(5, 3, 4).requires_grad_(), torch.ones(5), normal(5, 3, 4, seed=1)
    (expected,) = torch.autograd.grad(weighted_batch_norm(x, w, training=True), x, grad)
    turned = (lambda t: t.detach().transpose(0, -1).contiguous(), lambda t: t.transpose(0, -1))
    with torch.autograd.graph.saved_tensors_hooks(*turned):
        y = weighted_batch_norm(x, w, training=True)
    assert_close(torch.autograd.grad(y, x, grad)[0], expected)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_eps_may_be_a_number_of_numpy(shape, by):
    x, w = normal(*shape).requires_grad_(), torch.ones(shape[0])
    y = weighted_batch_norm(x, w, training=True, eps=np.float64(1e-5))
    y.sum().backward()
    assert y.dtype == x.grad.dtype == torch.float32


def test_a_share_that_is_zero_in_single_precision_is_a_mask(by):
    x, w = normal(4, 2), torch.tensor([1e-300, 1.0, 2.0, 3.0], dtype=torch.float64)
    x[0] = torch.nan
    assert weighted_batch_norm(x, w, training=True)[1:].isfinite().all()


@pytest.mark.filterwarnings("ignore")
def test_what_traces_sees_operators_of_torch():
    x, other, w = normal(5, 3), normal(5, 3, seed=1), torch.rand(5) + 1
    traced = torch.jit.trace(lambda x, w: weighted_batch_norm(x, w, training=True), (x, w))
    assert_close(traced(other, w), weighted_batch_norm(other, w, training=True))
    with FlopCounterMode(display=False):
        assert not is_ordinary(x)
    assert is_ordinary(x)


def test_the_default_device_is_not_asked(by):
    x, w = normal(6, 4), torch.rand(6) + 1
    expected = weighted_batch_norm(x, w, training=True)
    with torch.device("meta"):
        assert_close(weighted_batch_norm(x, w, training=True), expected)


ODD = {
    "on another device": lambda t: t.to("meta"),
    "zeros without memory": lambda t: torch._efficientzerotensor(t.shape),
    "too short": lambda t: t[:2],
}


@pytest.mark.parametrize("name", ["weight", "bias", "running_mean", "running_var"])
@pytest.mark.parametrize("kind", ODD)
def test_memory_that_is_not_there_is_not_read(kind, name, by):
    layer, x, w = WeightedBatchNorm1d(4), normal(6, 4), torch.rand(6) + 1
    expected = layer(x, w)
    odd = ODD[kind](getattr(layer, name).detach())
    setattr(layer, name, torch.nn.Parameter(odd) if name in ("weight", "bias") else odd)
    try:
        found = layer(x, w)
    except RuntimeError:
        return  # of torch, which says what is wrong
    assert kind == "zeros without memory"
    assert_close(found, torch.zeros_like(found) if name == "weight" else expected)


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 20)])
def test_a_gradient_without_memory_is_zero(shape, by):
    x, w = normal(*shape).requires_grad_(), torch.rand(6) + 1
    y = weighted_batch_norm(x, w, training=True)
    (grad,) = torch.autograd.grad(y, x, torch._efficientzerotensor(shape))
    assert torch.equal(grad, torch.zeros(shape))


@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 20)])
@pytest.mark.parametrize(("dtype", "other"), [
    (torch.float32, torch.float64), (torch.float32, torch.bfloat16),
    (torch.float64, torch.float32), (torch.float32, torch.float16),
])  # fmt: skip
def test_a_hook_may_save_the_input_in_another_precision(shape, dtype, other, by):
    x, w, grad = normal(*shape, dtype=dtype), torch.rand(6) + 1, normal(*shape, seed=1, dtype=dtype)
    x.requires_grad_()
    (expected,) = torch.autograd.grad(weighted_batch_norm(x, w, training=True), x, grad)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t.to(other)):
        y = weighted_batch_norm(x, w, training=True)
    (found,) = torch.autograd.grad(y, x, grad)
    assert_close(found, expected, rtol=0.1, atol=0.05)


def test_a_hook_that_saves_too_little_is_refused(by):
    x, w = normal(6, 4).requires_grad_(), torch.rand(6) + 1
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t[:2]):
        y = weighted_batch_norm(x, w, weight=normal(4), training=True)
    with pytest.raises(RuntimeError):
        y.sum().backward()


@pytest.mark.parametrize("bad", [torch.nan, 1e38])
@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 20)])
def test_second_derivatives_leave_out_what_is_masked(shape, bad, by):
    x, w, grad = normal(*shape), torch.rand(6) + 1, normal(*shape, seed=1)
    w[2] = 0
    derivatives = []
    for value in (bad, 0.0):
        leaf = x.clone()
        leaf[2] = value
        leaf.requires_grad_()
        y = weighted_batch_norm(leaf, w, training=True)
        (first,) = torch.autograd.grad(y, leaf, grad, create_graph=True)
        kept = torch.arange(6) != 2
        (second,) = torch.autograd.grad(first[kept].square().sum(), leaf)
        derivatives.append((first.detach(), second))
    assert not derivatives[0][0][2].any()
    assert not derivatives[0][1][2].any()
    for found, expected in zip(*derivatives, strict=True):
        assert_close(found[kept], expected[kept])


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_a_parameter_may_be_the_negative_of_its_memory(name, by):
    x, w, parameter = normal(6, 4), torch.rand(6) + 1, normal(4)
    expected = weighted_batch_norm(x, w, training=True, **{name: -parameter})
    negative = {name: torch._neg_view(parameter)}
    assert_close(weighted_batch_norm(x, w, training=True, **negative), expected)


def test_gradients_may_be_mapped(by):
    x, w, grads = normal(6, 4).requires_grad_(), torch.rand(6) + 1, normal(3, 6, 4, seed=1)
    y = weighted_batch_norm(x, w, training=True)
    mapped = torch.vmap(lambda g: torch.autograd.grad(y, x, g, retain_graph=True)[0])(grads)
    single = [torch.autograd.grad(y, x, g, retain_graph=True)[0] for g in grads]
    assert_close(mapped, torch.stack(single))


@pytest.mark.parametrize("mean", [1e3, 1e5, 1e6])
@pytest.mark.parametrize("shape", [(64, 50), (16, 5, 40)])
def test_a_large_mean_costs_the_output_no_digits(shape, mean, by):
    x, w = normal(*shape) + mean, torch.rand(shape[0]) + 1
    exact = weighted_batch_norm(x.double(), w, training=True)
    assert_close(weighted_batch_norm(x, w, training=True).double(), exact, rtol=0, atol=3e-6)


@pytest.mark.skipif(kernels.native is None, reason=UNCOMPILED)
@pytest.mark.parametrize("mean", [1e3, 1e5])
@pytest.mark.parametrize("shape", [(64, 50), (16, 5, 40)])
def test_a_large_mean_costs_the_gradients_no_digits(shape, mean):
    x, w, grads = normal(*shape) + mean, torch.rand(shape[0]) + 1, []
    for dtype in (torch.float32, torch.float64):
        leaves = [
            t.detach().to(dtype, copy=True).requires_grad_() for t in (x, torch.ones(shape[1]))
        ]
        y = weighted_batch_norm(leaves[0], w, weight=leaves[1], training=True)
        y.backward(normal(*shape, seed=1).to(dtype))
        grads.append([leaf.grad.double() for leaf in leaves])
    for found, exact in zip(*grads, strict=True):
        assert_close(found, exact, rtol=0, atol=3e-6 * exact.abs().max().item())
