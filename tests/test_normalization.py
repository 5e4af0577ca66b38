"""No sequence of inputs corrupts the state, and no weight of zero lets a value through."""

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import functional_call, vmap
from torch.testing import assert_close

from wbn.functional import weighted_batch_norm, weighted_moments
from wbn.layers import WeightedBatchNorm1d

NAN, INF = float("nan"), float("inf")
CORRECTIONS = ("frequency", "reliability", "none")
X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))
W = torch.tensor([1.0, 2.0, 3.0, 4.0])
VALUES = {
    "ordinary": X,
    "constant": torch.ones_like(X),
    "NaN": X.index_fill(0, torch.tensor(1), NAN),
    "infinite": X.index_fill(0, torch.tensor(1), -INF),
    "huge": 1e38 * X.sign(),
    "of huge squares": 1e30 * X,
    "tiny": 1e-40 * X,
    "shifted": 1e6 + X,
    "channel of NaN": X.index_fill(1, torch.tensor(1), NAN),
}
WEIGHTS = {
    "none": None,
    "ordinary": W,
    "light": 0.01 * W,
    "tiny": 1e-40 * W,
    "huge": 1e37 * W,
    "zero": 0 * W,
    "masking": torch.tensor([1.0, 0.0, 2.0, 3.0]),
    "on one": torch.tensor([0.0, 0.0, 9.0, 0.0]),
    "almost on one": torch.tensor([1e-4, 0.0, 9.0, 0.0]),
    "negative": -W,
    "partly negative": torch.tensor([1.0, -1.0, 3.0, 3.0]),
    "NaN": torch.tensor([1.0, NAN, 3.0, 3.0]),
    "infinite": torch.tensor([1.0, INF, 3.0, 3.0]),
}
UNUSABLE = ("zero", "on one", "negative", "partly negative", "NaN", "infinite")
LIGHT = ("light", "tiny")
batches = st.tuples(st.sampled_from(sorted(VALUES)), st.sampled_from(sorted(WEIGHTS)))
sequences = st.lists(batches, min_size=1, max_size=6)
corrections = st.sampled_from(CORRECTIONS)
every_correction = pytest.mark.parametrize("correction", CORRECTIONS)


def usable(weights, correction):
    return weights not in UNUSABLE and not (correction == "frequency" and weights in LIGHT)


def assert_sound(mean, var):
    assert mean.isfinite().all()
    assert var.isfinite().all()
    assert (var >= 0).all()


def state(layer):
    return {name: buffer.clone() for name, buffer in layer.named_buffers()}


def assert_same(layer, before):
    assert all(torch.equal(buffer, before[name]) for name, buffer in layer.named_buffers())


@settings(deadline=None, max_examples=150)
@given(
    sequences,
    corrections,
    st.sampled_from([0.1, 1.0, None]),
    st.sampled_from([torch.float32, torch.float16, torch.float64]),
)
def test_any_sequence_in_eager_mode(sequence, correction, momentum, dtype):
    layer = WeightedBatchNorm1d(3, correction=correction, momentum=momentum, dtype=dtype)
    for values, weights in sequence:
        before = state(layer)
        x = VALUES[values].to(dtype, copy=True).requires_grad_()
        if not usable(weights, correction):
            with pytest.raises(ValueError, match="weight"):
                layer(x, WEIGHTS[weights])
            assert_same(layer, before)
        else:
            layer(x, WEIGHTS[weights]).sum().backward()
        assert_sound(layer.running_mean, layer.running_var)
    assert layer.eval()(X.to(dtype)).isfinite().all()


def check_unread(layer, function, values, weights):
    """One batch where weights can't be read: what the documentation of the module says."""
    before, x = state(layer), VALUES[values].clone().requires_grad_()
    layer.zero_grad()
    y = function(x, WEIGHTS[weights])
    y.pow(2).sum().backward()
    assert_sound(layer.running_mean, layer.running_var)
    if usable(weights, layer.correction):
        return
    assert_same(layer, before)
    for gradient in (x.grad, layer.weight.grad, layer.bias.grad):
        assert (gradient == 0).all()
    if weights == "zero" or values not in ("NaN", "infinite", "channel of NaN"):
        assert torch.equal(y, layer.bias.expand(4, 3))


@settings(deadline=None, max_examples=40)
@given(sequences, corrections)
def test_any_sequence_compiled(sequence, correction):
    layer = compiled_layers[correction]
    layer.reset_running_stats()
    for values, weights in sequence:
        check_unread(layer, functions[correction], values, weights)


@pytest.fixture(autouse=True, scope="module")
def _compile():
    torch._dynamo.reset()
    for correction in CORRECTIONS:
        layer = WeightedBatchNorm1d(3, correction=correction)
        layer.bias.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
        compiled_layers[correction] = layer
        functions[correction] = torch.compile(layer, fullgraph=True, backend="aot_eager")
    yield
    torch._dynamo.reset()


compiled_layers, functions = {}, {}


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@settings(deadline=None, max_examples=60)
@given(sequences, corrections)
def test_any_sequence_under_vmap(sequence, correction):
    layer = WeightedBatchNorm1d(3, correction=correction)
    states = {name: torch.stack([value] * 2) for name, value in layer.state_dict().items()}
    for values, weights in sequence:
        before = copy.deepcopy(states)
        w = W if WEIGHTS[weights] is None else WEIGHTS[weights]
        y = vmap(lambda state, x, w: functional_call(layer, state, (x, w)))(
            states, torch.stack([VALUES[values], X]), torch.stack([w, W])
        )
        assert_sound(states["running_mean"], states["running_var"])
        assert y[1].isfinite().all()
        assert not torch.equal(states["running_mean"][1], before["running_mean"][1])
        if not usable(weights, correction):
            assert all(torch.equal(states[name][0], before[name][0]) for name in states)


@every_correction
@pytest.mark.parametrize(
    ("how", "bad"), [*(("eager", bad) for bad in (NAN, INF, -INF, 1e38, 1e25)), ("compiled", NAN)]
)
@pytest.mark.parametrize("positions", [(), (5,)])
def test_what_is_masked_may_be_anything(correction, bad, how, positions):
    """Outputs, gradients and statistics are those without the masked samples or positions."""
    torch._dynamo.reset()
    x = torch.randn(6, 3, *positions, generator=torch.Generator().manual_seed(1))
    w = torch.rand(6, *positions, generator=torch.Generator().manual_seed(2)) + 1
    masked = torch.zeros(6, *positions, dtype=torch.bool)
    masked[1] = masked[2] = True
    if positions:
        masked[3, 2] = True
    results = []
    for value in (0.5, bad):
        layer = WeightedBatchNorm1d(3, correction=correction)
        function = torch.compile(layer, backend="aot_eager") if how == "compiled" else layer
        leaf = x.movedim(1, -1).clone()
        leaf[masked] = value
        leaf = leaf.movedim(-1, 1).contiguous().requires_grad_()
        y = function(leaf, w.masked_fill(masked, 0)).movedim(1, -1)
        y[~masked].pow(3).sum().backward()
        assert (leaf.grad.movedim(1, -1)[masked] == 0).all()
        assert y.isfinite().all()
        parameters = layer.weight.grad, layer.bias.grad, *layer.buffers()
        results.append((y[~masked], leaf.grad, *parameters))
    assert_close(results[1], results[0])


def test_masked_values_that_are_ordinary_keep_output_and_gradient():
    x, w = X.double().requires_grad_(), torch.tensor([1.0, 0.0, 2.0, 3.0])
    mean, var = weighted_moments(x.detach(), w)
    y = weighted_batch_norm(x, w, training=True, eps=0.0)
    assert_close(y[1].detach(), (x[1].detach() - mean) / var.sqrt())
    y[1].sum().backward()
    assert_close(x.grad[1], var.rsqrt())


@every_correction
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", [(0, 3), (2, 3, 0), (0, 3, 4)])
def test_an_empty_batch_passes_as_in_torch(shape, weighted, correction):
    ours, theirs = WeightedBatchNorm1d(3, correction=correction), torch.nn.BatchNorm1d(3)
    w = torch.ones(shape[0]) if weighted else None
    for layer, arguments in ((ours, (w,)), (theirs, ())):
        x = torch.ones(shape, requires_grad=True)
        y = layer(x, *arguments)
        y.sum().backward()
        assert y.shape == x.grad.shape == shape
        assert torch.equal(layer.weight.grad, torch.zeros(3))
        assert torch.equal(layer.bias.grad, torch.zeros(3))
        assert torch.equal(layer.running_mean, torch.zeros(3))
        assert torch.equal(layer.running_var, torch.ones(3))
    assert ours.num_batches_tracked == 0
