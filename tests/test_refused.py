"""What eager mode refuses, tried again where values can't be read: it must not reach the state.

What shapes and types tell is refused everywhere. What only values tell is refused in eager mode;
under torch.compile and torch.vmap it leaves the running statistics as they were.
"""

import copy

import pytest
import torch
from torch.func import functional_call, vmap

from wbn.layers import WeightedBatchNorm1d

NAN, INF = float("nan"), float("inf")
X = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(0))
W = torch.tensor([1.0, 2.0, 3.0, 4.0])
CORRECTIONS = ("frequency", "reliability", "none")

SHAPES_AND_TYPES = {
    "weights for fewer samples": (X, W[:3], "has shape"),
    "a weight for the batch": (X, W.sum(), "has shape"),
    "a column of weights": (X, W[:, None], "has shape"),
    "weights for other positions": (X, W[:, None].expand(4, 3), "has shape"),
    "weights for channels": (X, X.abs(), "has shape"),
    "a list of weights": (X, [1.0, 2.0, 3.0, 4.0], "torch.as_tensor"),
    "complex weights": (X, W + 1j, "weights are real"),
    "labels for weights": (X, W.long(), "int64, as labels are"),
    "weights to be learned": (X, W.clone().requires_grad_(), "detach"),
    "weights on another device": (X, "elsewhere", "move the"),
    "other channels": (X[:, :2], W, "2 channels"),
    "one value per channel": (X[:1, :, :1], W[:1], "at least two values"),
    "weights without a sample": (X[:0], W, "has shape"),
    "no channel": (X[:, :0], W, "C at least 1"),
    "one dimension": (X[:, 0, 0], W, "1D"),
    "four dimensions": (X[..., None], W, "4D"),
    "integers": (X.long(), W, "floating point"),
    "truth values": (X > 0, W, "floating point"),
    "complex numbers": (X + 1j, W, "floating point"),
}
on_one_position = torch.zeros(4, 5)
on_one_position[2, 3] = 9.0
WEIGHTS = {
    "negative": torch.tensor([1.0, -1.0, 3.0, 3.0]),
    "all negative": -W,
    "NaN": torch.tensor([1.0, NAN, 3.0, 3.0]),
    "infinite": torch.tensor([1.0, INF, 3.0, 3.0]),
    "all infinite": INF * W,
    "all zero": 0 * W,
    "on one position": on_one_position,
}
LIGHT = {"less than one point": 0.01 * W, "less than two points": 0.03 * W, "tiny": 1e-41 * W}
ACTIVATIONS = {
    "NaN": X.index_fill(2, torch.tensor(1), NAN),
    "infinite": X.index_fill(2, torch.tensor(1), INF),
    "minus infinity": X.index_fill(2, torch.tensor(1), -INF),
    "beyond the range of squares": 1e30 * X,
}
refused = pytest.mark.parametrize("name", SHAPES_AND_TYPES)
corrections = pytest.mark.parametrize("correction", CORRECTIONS)


def bad_batches(correction):
    """Batches that must not reach the state, and whether eager mode refuses them."""
    weights = WEIGHTS | (LIGHT if correction == "frequency" else {})
    for w in weights.values():
        yield X, w, True
    for x in ACTIVATIONS.values():
        yield x, W, False
        yield x, None, False


def compiled(correction, backend):
    torch._dynamo.reset()  # else what other tests compiled counts against its limit
    layer = WeightedBatchNorm1d(3, correction=correction)
    return layer, torch.compile(layer, fullgraph=True, backend=backend)


def assert_state(layer, before, changed=False):
    for name, value in layer.state_dict().items():
        assert torch.equal(value, before[name]) != (changed and name not in ("weight", "bias"))


def elsewhere(w, device):
    return W.to(device) if isinstance(w, str) else w


@refused
def test_shapes_and_types_in_eager_mode(name):
    x, w, message = SHAPES_AND_TYPES[name]
    layer = WeightedBatchNorm1d(3)
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match=message):
        layer(x, elsewhere(w, "meta"))
    assert_state(layer, before)


@refused
def test_shapes_and_types_compiled(name):
    x, w, message = SHAPES_AND_TYPES[name]
    layer, function = compiled("frequency", "eager")
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(Exception, match=message):
        function(x, elsewhere(w, "meta"))
    assert_state(layer, before)


@refused
def test_shapes_and_types_under_vmap(name):
    x, w, message = SHAPES_AND_TYPES[name]
    layer, w = WeightedBatchNorm1d(3), elsewhere(w, "meta")
    before = copy.deepcopy(layer.state_dict())
    with pytest.raises(ValueError, match=message):
        vmap(lambda x: layer(x, w))(torch.stack([x, x]))
    assert_state(layer, before)


@refused
def test_shapes_and_types_on_the_meta_device(name):
    x, w, message = SHAPES_AND_TYPES[name]
    layer = WeightedBatchNorm1d(3, device="meta")
    w = w.to("meta") if isinstance(w, torch.Tensor) else elsewhere(w, "cpu")
    with pytest.raises(ValueError, match=message):
        layer(x.to("meta"), w)


@corrections
def test_values_in_eager_mode(correction):
    layer = WeightedBatchNorm1d(3, correction=correction)
    before = copy.deepcopy(layer.state_dict())
    for x, w, is_refused in bad_batches(correction):
        if is_refused:
            with pytest.raises(ValueError, match="weight"):
                layer(x, w)
        else:
            layer(x, w)
        assert_state(layer, before)
    layer(X, W)
    assert_state(layer, before, changed=True)


def require_cxx():
    """Inductor compiles what it writes when a function is called first."""
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler:
        pytest.skip("a C++ compiler, which torch.compile needs, is missing")


@pytest.mark.parametrize(
    ("correction", "backend"), [*((c, "eager") for c in CORRECTIONS), ("frequency", "inductor")]
)
def test_values_compiled(correction, backend):
    if backend == "inductor":
        require_cxx()
    layer, function = compiled(correction, backend)
    before = copy.deepcopy(layer.state_dict())
    for x, w, _ in bad_batches(correction):
        if backend == "inductor" and (w is None or w.shape != W.shape):
            continue  # it takes long over each kind; "eager" has them all
        function(x, w)
        assert_state(layer, before)
    function(X, W)
    assert_state(layer, before, changed=True)


@pytest.mark.filterwarnings("ignore:There is a performance drop")  # of torch's lerp_
@corrections
def test_values_under_vmap(correction):
    """Each replica has its state: a bad batch of one leaves its own alone, and only that."""
    layer = WeightedBatchNorm1d(3, correction=correction)
    for x, w, _ in bad_batches(correction):
        state = {name: torch.stack([value] * 2) for name, value in layer.state_dict().items()}
        before = copy.deepcopy(state)
        if w is None:
            vmap(lambda state, x: functional_call(layer, state, (x,)))(state, torch.stack([x, X]))
        else:
            good = torch.ones_like(w)
            vmap(lambda state, x, w: functional_call(layer, state, (x, w)))(
                state, torch.stack([x, X]), torch.stack([w, good])
            )
        for name in ("running_mean", "running_var", "num_batches_tracked"):
            assert torch.equal(state[name][0], before[name][0])
            assert not torch.equal(state[name][1], before[name][1])


@corrections
def test_values_on_the_meta_device_are_not_read(correction):
    layer = WeightedBatchNorm1d(3, correction=correction, device="meta")
    for x, w, _ in bad_batches(correction):
        y = layer(x.to("meta"), None if w is None else w.to("meta"))
        assert y.shape == x.shape
        assert all(value.is_meta for value in layer.state_dict().values())
