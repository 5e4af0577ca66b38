"""Weighted moments and normalization against replication, numpy and torch."""

import mpmath
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from wbn.functional import weighted_batch_norm, weighted_moments

CORRECTIONS = ("frequency", "reliability", "none")
SHAPES = {2: (6, 3), 3: (5, 3, 4), 4: (4, 2, 3, 2), 5: (3, 2, 2, 2, 2)}
ranks = pytest.mark.parametrize("rank", SHAPES)
corrections = pytest.mark.parametrize("correction", CORRECTIONS)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def positive(*shape, seed=1, dtype=torch.float64):
    return 0.7 + 2 * torch.rand(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


@st.composite
def weighted_batches(draw, weights):
    """x of shape (N, C, *positions) and weights (N,), at least two of them positive."""
    n = draw(st.integers(2, 6))
    shape = (n, draw(st.integers(1, 3)), *draw(st.lists(st.integers(1, 3), max_size=3)))
    w = draw(st.lists(weights, min_size=n, max_size=n).filter(lambda w: np.count_nonzero(w) > 1))
    return normal(*shape, seed=draw(st.integers(0, 2**31))), torch.tensor(w)


def plain_batch_norm(x, weight, bias, unbiased):
    """Batch norm written with torch.var, differentiated by autograd."""
    dims = (0, *range(2, x.dim()))
    shape = (1, -1, *(1 for _ in x.shape[2:]))
    var, mean = torch.var_mean(x, dims, correction=int(unbiased), keepdim=True)
    return (x - mean) / (var + 1e-5).sqrt() * weight.view(shape) + bias.view(shape)


@settings(deadline=None, max_examples=60)
@given(weighted_batches(st.integers(0, 4)), st.sampled_from(["frequency", "none"]))
def test_integer_weights_are_replication(batch, correction):
    x, w = batch
    weight, bias = normal(x.shape[1], seed=2), normal(x.shape[1], seed=3)
    target = normal(*x.shape, seed=4)
    leaves = [t.clone().requires_grad_() for t in (x, weight, bias) * 2]
    a, b = leaves[:3], leaves[3:]

    options = {"weight": a[1], "bias": a[2], "training": True, "correction": correction}
    y = weighted_batch_norm(a[0], w.double(), **options)
    losses = (y - target).pow(4).flatten(1).sum(1)
    (w * losses).sum().backward()

    copies = torch.arange(len(w)).repeat_interleave(w)
    replicated = plain_batch_norm(b[0][copies], b[1], b[2], unbiased=correction == "frequency")
    (replicated - target[copies]).pow(4).sum().backward()

    assert_close(y[copies], replicated)
    for ours, theirs in zip(a, b, strict=True):
        assert_close(ours.grad, theirs.grad, rtol=1e-6, atol=1e-8)


@settings(deadline=None, max_examples=60)
@given(weighted_batches(st.integers(0, 9)))
def test_frequency_is_numpy_fweights(batch):
    x, w = batch
    mean, var = weighted_moments(x, w.double(), "frequency")
    columns = x.movedim(1, -1).reshape(-1, x.shape[1]).numpy()
    repeated = np.repeat(w.numpy(), x[0, 0].numel())
    assert_close(mean, torch.tensor(np.average(columns, axis=0, weights=repeated)))
    cov = np.atleast_2d(np.cov(columns, rowvar=False, fweights=repeated))
    assert_close(var, torch.tensor(cov.diagonal().copy()))


@settings(deadline=None, max_examples=60)
@given(weighted_batches(st.floats(0.01, 9)))
def test_reliability_is_numpy_aweights(batch):
    x, w = batch
    _, var = weighted_moments(x, w.double(), "reliability")
    columns = x.movedim(1, -1).reshape(-1, x.shape[1]).numpy()
    repeated = np.repeat(w.double().numpy(), x[0, 0].numel())
    cov = np.atleast_2d(np.cov(columns, rowvar=False, aweights=repeated))
    assert_close(var, torch.tensor(cov.diagonal().copy()))


@settings(deadline=None, max_examples=40)
@given(weighted_batches(st.floats(0.5, 9)), st.floats(1e-25, 1e25))
def test_scale_of_the_weights(batch, factor):
    x, w = batch
    w = w.double()
    for correction in ("reliability", "none"):
        for a, b in zip(
            weighted_moments(x, w, correction),
            weighted_moments(x, factor * w, correction),
            strict=True,
        ):
            assert_close(a, b)
    w, z = 4 * w, 4 * w.sum().item() * x[0, 0].numel()
    c = 1 + min(factor, 1e3)
    (mean, var), (scaled_mean, scaled_var) = (
        weighted_moments(x, k * w, "frequency") for k in (1, c)
    )
    assert_close(mean, scaled_mean)
    assert_close(scaled_var / var, torch.full_like(var, c * (z - 1) / (c * z - 1)))


@corrections
@pytest.mark.parametrize("per_position", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("factor", [1e-45, 1e-42, 1e-38, 1e-30, 1e30, 1e37, 1e38])
def test_weights_at_the_ends_of_the_single_precision_range(factor, dtype, per_position, correction):
    x, w = normal(8, 3, 5, dtype=torch.float32), positive(8, 5) if per_position else positive(8)
    w = (factor * w).to(dtype)
    if correction == "frequency" and factor < 1:
        with pytest.raises(ValueError, match="larger weights"):
            weighted_moments(x, w, correction)
        return
    ordinary = w.double() / factor if correction != "frequency" else w.double()
    exact = weighted_moments(x.double(), ordinary, correction)
    for ours, truth in zip(weighted_moments(x, w, correction), exact, strict=True):
        assert_close(ours.double(), truth, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1e160, 1e300])
@pytest.mark.parametrize("correction", ["reliability", "none"])
def test_weights_at_the_ends_of_the_double_precision_range(factor, correction):
    for dtype in (torch.float32, torch.float64):
        x, w = normal(8, 3, dtype=dtype), positive(8)
        for ours, truth in zip(
            weighted_moments(x, factor * w, correction),
            weighted_moments(x, w, correction),
            strict=True,
        ):
            assert_close(ours, truth)


@pytest.mark.parametrize(("dtype", "smallest"), [(torch.float32, 1e-6), (torch.float64, 1e-14)])
@pytest.mark.parametrize("heavy", [0, 3, 7])
def test_the_reliability_correction_near_all_weight_on_one_point(dtype, smallest, heavy):
    """Against fifty digits: the denominator is a small difference of large numbers."""
    w = smallest * positive(8, dtype=dtype)
    w[heavy] = 1.0
    x = normal(8, 1, dtype=dtype)
    var = weighted_moments(x, w, "reliability")[1].item()
    stored = torch.ones(1, dtype=dtype)
    weighted_batch_norm(x, w, torch.zeros(1, dtype=dtype), stored, None, None, True, 1.0, 0, "none")
    with mpmath.workdps(50):
        weights, values = ([mpmath.mpf(t) for t in v.flatten().tolist()] for v in (w, x))
        total = mpmath.fsum(weights)
        mean = mpmath.fdot(weights, values) / total
        scatter = mpmath.fdot(weights, [(v - mean) ** 2 for v in values])
        exact = float(scatter / (total - mpmath.fdot(weights, weights) / total))
    assert var == pytest.approx(exact, rel=1e-5)
    assert stored.item() == pytest.approx(exact, rel=1e-5)


@ranks
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_without_weights_and_correction_it_is_torch(rank, dtype):
    results = []
    for ours in (True, False):
        x = normal(*SHAPES[rank], dtype=dtype).requires_grad_()
        c = x.shape[1]
        weight, bias = (normal(c, seed=s, dtype=dtype).requires_grad_() for s in (2, 3))
        mean, var = normal(c, seed=4, dtype=dtype), positive(c, dtype=dtype)
        arguments = mean, var, weight, bias, True, 0.3, 1e-2
        y = (
            weighted_batch_norm(x, None, *arguments, "none")
            if ours
            else F.batch_norm(x, *arguments)
        )
        y.pow(3).sum().backward()
        results.append([y, x.grad, weight.grad, bias.grad, mean, var])
    assert_close(*results)


@corrections
@ranks
def test_permuting_the_batch_permutes_the_output(rank, correction):
    x, w = normal(*SHAPES[rank]), positive(SHAPES[rank][0])
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(5))
    y = weighted_batch_norm(x, w, training=True, correction=correction)
    permuted = weighted_batch_norm(x[order], w[order], training=True, correction=correction)
    assert_close(permuted, y[order])


@corrections
@pytest.mark.parametrize("rank", [3, 4, 5])
def test_a_position_has_its_own_weight(rank, correction):
    x, (n, _, *positions) = normal(*SHAPES[rank]), SHAPES[rank]
    w = positive(n, *positions)
    y = weighted_batch_norm(x, w, training=True, correction=correction)
    flat = weighted_batch_norm(
        x.movedim(1, -1).flatten(0, -2), w.flatten(), training=True, correction=correction
    )
    assert_close(y.movedim(1, -1).flatten(0, -2), flat)
    shared = w.flatten(1)[:, 0]
    assert_close(
        weighted_moments(x, shared, correction),
        weighted_moments(x, shared.view(n, *(1 for _ in positions)).expand_as(w), correction),
    )


@corrections
@ranks
def test_zero_weight_is_a_mask(rank, correction):
    x, w = normal(*SHAPES[rank]), positive(SHAPES[rank][0])
    w[1] = 0
    kept = torch.arange(len(x)) != 1
    changed = x.clone()
    changed[1] = 1e6
    leaves = [t.clone().requires_grad_() for t in (x, changed, x[kept])]
    y, other, without = (
        weighted_batch_norm(leaf, weights, training=True, correction=correction)
        for leaf, weights in zip(leaves, (w, w, w[kept]), strict=True)
    )
    for output in (y[kept], other[kept], without):
        output.pow(3).sum().backward()
        assert_close(output, without)
    for leaf in leaves[:2]:
        assert_close(leaf.grad[kept], leaves[2].grad)
        assert leaf.grad[1].abs().max() == 0


@corrections
@ranks
@pytest.mark.parametrize("weights", ["none", "samples", "positions"])
def test_gradcheck(rank, correction, weights):
    shape = SHAPES[rank]
    w = {
        "none": None,
        "samples": positive(shape[0]),
        "positions": positive(shape[0], *shape[2:]),
    }[weights]
    inputs = [normal(*shape), normal(shape[1], seed=2), normal(shape[1], seed=3)]

    def function(x, weight, bias):
        return weighted_batch_norm(
            x, w, weight=weight, bias=bias, training=True, correction=correction
        )

    inputs = [t.requires_grad_() for t in inputs]
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


@corrections
def test_moments_are_differentiable(correction):
    x, w = normal(5, 2, 3).requires_grad_(), positive(5)

    def function(x):
        return weighted_moments(x, w, correction)

    assert torch.autograd.gradcheck(function, x)
    assert torch.autograd.gradgradcheck(function, x)


@corrections
@pytest.mark.parametrize("needed", [(True, False, False), (False, True, False), (False,) * 3])
def test_gradients_only_where_needed(correction, needed):
    inputs = [
        t.requires_grad_(need)
        for t, need in zip((normal(5, 2), normal(2), normal(2)), needed, strict=True)
    ]
    x, weight, bias = inputs
    y = weighted_batch_norm(
        x, positive(5), weight=weight, bias=bias, training=True, correction=correction
    )
    assert y.requires_grad == any(needed)
    if y.requires_grad:
        y.pow(2).sum().backward()
    assert [t.grad is not None for t in inputs] == list(needed)


@corrections
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_to_one_graph(correction, dynamic):
    def step(x, w, weight, mean, var):
        return weighted_batch_norm(
            x, w, mean, var, weight, None, training=True, correction=correction
        )

    compiled = torch.compile(step, fullgraph=True, dynamic=dynamic, backend="aot_eager")
    results = []
    for function in (step, compiled):
        x, weight = normal(6, 3, 4).requires_grad_(), normal(3, seed=2).requires_grad_()
        mean, var = torch.zeros(3, dtype=torch.float64), torch.ones(3, dtype=torch.float64)
        y = function(x, positive(6), weight, mean, var)
        y.pow(3).sum().backward()
        results.append([y, x.grad, weight.grad, mean, var])
    torch._dynamo.reset()
    assert_close(results[1], results[0])


@corrections
@pytest.mark.parametrize("positions", [(), (4,)])
def test_vmap_and_grad_are_a_loop(correction, positions):
    x, w = normal(3, 6, 2, *positions), positive(3, 6)
    weight, bias = normal(3, 2, seed=2), normal(3, 2, seed=3)

    def loss(x, w, weight, bias):
        y = weighted_batch_norm(
            x, w, weight=weight, bias=bias, training=True, correction=correction
        )
        return y.pow(3).sum()

    gradients = torch.func.grad(loss, argnums=(0, 2, 3))
    together = torch.func.vmap(gradients)(x, w, weight, bias)
    for s in range(3):
        leaves = [t[s].clone().requires_grad_() for t in (x, weight, bias)]
        loss(leaves[0], w[s], *leaves[1:]).backward()
        for batched, leaf in zip(together, leaves, strict=True):
            assert_close(batched[s], leaf.grad)


@pytest.mark.parametrize("batched", ["x", "w", "weight", "bias"])
def test_vmap_over_one_argument(batched):
    arguments = {
        "x": normal(6, 2),
        "w": positive(6),
        "weight": normal(2, seed=2),
        "bias": normal(2, seed=3),
    }
    arguments[batched] = torch.stack([arguments[batched], 2 * arguments[batched] + 1])
    cotangent = normal(6, 2, seed=4)

    def function(x, w, weight, bias):
        y, vjp = torch.func.vjp(
            lambda x, weight, bias: weighted_batch_norm(
                x, w, weight=weight, bias=bias, training=True
            ),
            x,
            weight,
            bias,
        )
        return y, *vjp(cotangent)

    in_dims = tuple(0 if name == batched else None for name in arguments)
    results = torch.func.vmap(function, in_dims)(*arguments.values())
    for s in range(2):
        alone = function(*(t[s] if name == batched else t for name, t in arguments.items()))
        for together, single in zip(results, alone, strict=True):
            assert_close(together[s], single)


def test_jacobian_and_hessian():
    x, w = normal(4, 2), positive(4)

    def function(x):
        return weighted_batch_norm(x, w, training=True).pow(3)

    jacobian = torch.func.jacrev(function)(x)
    assert_close(jacobian, torch.autograd.functional.jacobian(function, x))
    hessian = torch.func.jacrev(torch.func.jacrev(lambda x: function(x).sum()))(x)
    expected = torch.autograd.functional.hessian(lambda x: function(x).sum(), x)
    assert_close(hessian, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@corrections
def test_half_precision_has_single_precision_statistics(dtype, correction):
    x, w = 100 + normal(64, 3, 5, dtype=dtype), positive(64, dtype=dtype)
    leaf, exact = x.clone().requires_grad_(), x.float().requires_grad_()
    mean, var = torch.zeros(3), torch.ones(3)
    y = weighted_batch_norm(leaf, w, mean, var, training=True, momentum=1, correction=correction)
    expected = weighted_batch_norm(exact, w.float(), training=True, correction=correction)
    assert y.dtype == dtype
    assert_close(y, expected.to(dtype))
    assert_close(mean, weighted_moments(x.float(), w.float())[0])
    moments = weighted_moments(x, w, correction)
    assert {m.dtype for m in moments} == {torch.float32}
    assert_close(moments, weighted_moments(x.float(), w.float(), correction))
    y.backward(torch.ones_like(y) + x.square() / 1e5)
    expected.backward((torch.ones_like(y) + x.square() / 1e5).float())
    assert leaf.grad.dtype == dtype
    assert_close(leaf.grad, exact.grad.to(dtype))


def test_autocast():
    x, w, weight = normal(32, 8, dtype=torch.float32), positive(32), torch.ones(8)
    linear = torch.nn.Linear(8, 8)
    with torch.autocast("cpu", torch.bfloat16):
        inputs = linear(x)
        y = weighted_batch_norm(inputs, w, weight=weight, training=True)
    assert inputs.dtype == y.dtype == torch.bfloat16
    expected = weighted_batch_norm(inputs.float(), w, weight=weight, training=True)
    assert_close(y, expected.bfloat16())
    y.float().pow(2).sum().backward()
    assert linear.weight.grad.isfinite().all()


@corrections
@pytest.mark.parametrize("weights", [None, positive(4), positive(4, 6, 5)], ids=["1", "N", "NHW"])
def test_channels_last_stays(correction, weights):
    x, grad = normal(4, 3, 6, 5), normal(4, 3, 6, 5, seed=2)
    results = []
    for layout in (torch.contiguous_format, torch.channels_last):
        leaf = x.clone(memory_format=layout).requires_grad_()
        y = weighted_batch_norm(
            leaf, weights, weight=normal(3), bias=normal(3), training=True, correction=correction
        )
        y.backward(grad.to(memory_format=layout))
        assert y.is_contiguous(memory_format=layout)
        assert leaf.grad.is_contiguous(memory_format=layout)
        results.append((y, leaf.grad))
    assert_close(results[1], results[0])


@corrections
@pytest.mark.parametrize("shape", [(1000, 4), (16, 4, 28, 28)])
@pytest.mark.parametrize("per_position", [False, True])
def test_a_large_mean_leaves_the_variance_right(shape, correction, per_position):
    x = (1e4 + normal(*shape)).float()
    w = positive(shape[0], *shape[2:]) if per_position else positive(shape[0])
    mean, var = weighted_moments(x, w, correction)
    exact_mean, exact_var = weighted_moments(x.double(), w, correction)
    assert_close(var, exact_var.float(), rtol=1e-3, atol=0)
    assert_close(mean, exact_mean.float(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("dtype", [torch.bool, torch.float16, torch.float32, torch.float64])
def test_any_type_of_weights(dtype):
    x, w = normal(4, 3, dtype=torch.float32), torch.tensor([1, 0, 1, 1]).to(dtype)
    y = weighted_batch_norm(x, w, training=True)
    assert y.dtype == torch.float32
    assert_close(y[w.bool()], weighted_batch_norm(x[w.bool()], training=True))


@corrections
def test_running_statistics(correction):
    x, w = normal(5, 3, 2), positive(5)
    mean, var = torch.full((3,), 2.0).double(), torch.full((3,), 5.0).double()
    weighted_batch_norm(x, w, mean, var, training=True, momentum=0.3, correction=correction)
    batch_mean, _ = weighted_moments(x, w)
    stored = "reliability" if correction == "none" else correction
    assert_close(mean, 0.7 * 2 + 0.3 * batch_mean)
    assert_close(var, 0.7 * 5 + 0.3 * weighted_moments(x, w, stored)[1])


@corrections
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_moments_that_are_not_finite_are_not_stored(correction, bad):
    x, w = normal(5, 3), positive(5)
    x[2, 1] = bad
    mean, var = normal(3), positive(3)
    before = mean.clone(), var.clone()
    y = weighted_batch_norm(x, w, mean, var, training=True, correction=correction)
    assert not y[:, 1].isfinite().any()
    assert torch.equal(mean, before[0])
    assert torch.equal(var, before[1])


@ranks
def test_inference_is_torch_whatever_the_weights(rank):
    x = normal(*SHAPES[rank])
    c = x.shape[1]
    parameters = normal(c), positive(c), normal(c, seed=2), normal(c, seed=3)
    before = [p.clone() for p in parameters]
    y = weighted_batch_norm(x, torch.tensor([-1.0]), *parameters)
    assert torch.equal(y, F.batch_norm(x, *parameters))
    assert all(torch.equal(p, b) for p, b in zip(parameters, before, strict=True))


def test_values_are_not_read_on_other_devices():
    x, w = torch.empty(4, 3, 2, device="meta", requires_grad=True), torch.empty(4, device="meta")
    y = weighted_batch_norm(x, w, training=True)
    y.sum().backward()
    assert y.shape == x.grad.shape == x.shape
