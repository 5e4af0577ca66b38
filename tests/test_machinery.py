"""The layers in the hands of torch: tracing, checkpoints, other derivatives, threads."""

import copy
import subprocess
import sys
from contextlib import nullcontext

import pytest
import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.func import vmap
from torch.testing import assert_close
from torch.utils.checkpoint import checkpoint

from wbn.context import sample_weights
from wbn.conversion import convert, register, revert
from wbn.functional import weighted_batch_norm
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d

CORRECTIONS = ("frequency", "reliability", "none")
corrections = pytest.mark.parametrize("correction", CORRECTIONS)
no_jit_warning = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")


def normal(*shape, seed=0, dtype=torch.float32):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def weights(n, seed=1):
    return 1 + torch.rand(n, generator=torch.Generator().manual_seed(seed))


def model():
    torch.manual_seed(0)
    layers = nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 4), nn.BatchNorm1d(4)
    return convert(nn.Sequential(*layers))


def gradients(module):
    return [p.grad for p in module.parameters()]


# Activation checkpointing ---------------------------------------------------------------


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_checkpoint_computes_with_the_weights_of_the_forward_pass(reentrant, inside, weighted):
    """Also where the backward pass is outside of the context, and after batches with weights."""
    found = []
    for checkpointed in (False, True):
        net, x, w = model(), normal(6, 3).requires_grad_(), weights(6)
        for n in (6, 5):  # of another batch, and of another size
            with sample_weights(weights(n, seed=5)):
                net(normal(n, 3, seed=5))
        with sample_weights(w if weighted else None):
            y = checkpoint(net, x, use_reentrant=reentrant) if checkpointed else net(x)
            if inside:
                y.pow(3).sum().backward()
        if not inside:
            y.pow(3).sum().backward()
        found.append([x.grad, *gradients(net)])
    assert_close(*found, rtol=0, atol=0)


@pytest.mark.parametrize("reentrant", [True, False])
@pytest.mark.parametrize("later", ["other weights", "other data", "more data", "no weights"])
def test_a_checkpoint_that_lost_its_weights_is_an_error(reentrant, later):
    net, x, w = model(), normal(6, 3).requires_grad_(), weights(6)
    with sample_weights(w):
        y = checkpoint(net, x, use_reentrant=reentrant)
    others = {"other weights": weights(6, 9), "no weights": None}
    with sample_weights(others.get(later, w)):
        net(normal(6, 3, seed=3) if later in ("other data", "more data") else x)
        if later == "more data":
            net(normal(6, 3, seed=4))
    with pytest.raises(ValueError, match=r"WeightedBatchNorm1d '\d': a checkpoint.*context_fn"):
        y.pow(3).sum().backward()


def test_a_checkpoint_is_told_the_weights():
    """What the error advises works for two batches, and the weights of arguments always do."""
    found = []
    for checkpointed in (False, True):
        net, layer = model(), WeightedBatchNorm1d(4)
        losses = []
        for seed in range(2):
            x, w = normal(6, 3, seed=seed), weights(6, seed)
            told = {"context_fn": lambda w=w: (nullcontext(), sample_weights(w))}
            with sample_weights(w):
                if checkpointed:
                    y = checkpoint(net, x, use_reentrant=False, **told)
                    y = checkpoint(layer, y, w, use_reentrant=False)
                else:
                    y = layer(net(x), w)
            losses.append(y.pow(3).sum())
        sum(losses).backward()
        found.append(gradients(net) + gradients(layer))
    assert_close(*found)


def test_a_forward_pass_inside_a_backward_pass_is_left_alone_without_weights():
    net, x = model(), normal(6, 3)

    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            net(normal(5, 3, seed=7))
            return grad

    Inner.apply(x.requires_grad_()).sum().backward()
    assert net[1].num_batches_tracked == 1


def test_densenet_that_saves_memory():
    densenet = pytest.importorskip("torchvision").models.densenet.DenseNet
    found = []
    for saving in (False, True):
        torch.manual_seed(0)
        net = convert(densenet(4, (2, 2), 8, num_classes=2, memory_efficient=saving))
        with sample_weights(weights(4)):
            y = net(normal(4, 3, 32, 32))
        y.pow(3).sum().backward()
        found.append(gradients(net))
    assert_close(*found)


def test_what_a_layer_remembers_is_not_saved():
    layer = WeightedBatchNorm1d(3)
    with sample_weights(weights(4)):
        layer(normal(4, 3))
    assert len(layer._calls) == 1
    assert copy.deepcopy(layer)._calls == ()
    assert "_calls" not in vars(revert(layer))


# Other derivatives, fake tensors and tracing --------------------------------------------


@no_jit_warning
@corrections
@pytest.mark.parametrize("weighted", [True, False])
def test_forward_mode_is_reverse_mode(correction, weighted):
    x, tangent = (normal(5, 2, 3, seed=s, dtype=torch.float64) for s in (0, 1))
    weight, bias = (normal(2, seed=s, dtype=torch.float64) for s in (2, 3))
    w = weights(5).double() if weighted else None

    def function(x, weight, bias):
        return weighted_batch_norm(
            x, w, weight=weight, bias=bias, training=True, correction=correction
        )

    directions = tangent, weight + 1, bias - 1
    y, forward = torch.func.jvp(function, (x, weight, bias), directions)
    jacobians = torch.autograd.functional.jacobian(function, (x, weight, bias))
    products = [
        torch.tensordot(j, d, dims=d.dim()) for j, d in zip(jacobians, directions, strict=True)
    ]
    assert_close(forward, sum(products))
    assert_close(y, function(x, weight, bias))

    def loss(x):
        return function(x, weight, bias).pow(3).sum()

    hessian = torch.func.jacfwd(torch.func.jacrev(loss))(x)
    assert_close(hessian, torch.autograd.functional.hessian(loss, x))


@no_jit_warning
def test_forward_mode_leaves_no_tangent_in_the_statistics():
    layer = WeightedBatchNorm1d(3)
    with forward_ad.dual_level():
        y = layer(forward_ad.make_dual(normal(4, 3), normal(4, 3, seed=1)), weights(4))
        assert forward_ad.unpack_dual(y).tangent is not None
        assert forward_ad.unpack_dual(layer.running_mean).tangent is None


@corrections
@pytest.mark.parametrize("weighted", [True, False])
def test_fake_tensors(correction, weighted):
    with FakeTensorMode():
        layer = WeightedBatchNorm2d(3, correction=correction)
        x = torch.randn(4, 3, 5, 5, requires_grad=True)
        y = layer(x, torch.rand(4, 5, 5) if weighted else None)
        y.sum().backward()
    assert y.shape == x.grad.shape == x.shape


@pytest.mark.parametrize("training", [True, False])
def test_traced_by_fx(training):
    net = model().train(training)
    traced = torch.fx.symbolic_trace(net)
    assert [node.op for node in traced.graph.nodes].count("call_module") == len(net)
    x, twin = normal(6, 3), copy.deepcopy(net)
    with sample_weights(weights(6)):
        assert_close(traced(x), twin(x))
    assert_close(list(net.buffers()), list(twin.buffers()))


class NormDouble(nn.BatchNorm1d):
    """Not idempotent, to see how often it is done."""

    def forward(self, x):
        return 2 * super().forward(x)


def test_traced_by_fx_with_what_comes_after():
    register(NormDouble, lambda layer, y: 2 * y)
    net = convert(nn.Sequential(nn.Linear(3, 4), NormDouble(4)))
    traced, x = torch.fx.symbolic_trace(net), normal(6, 3)
    assert_close(traced(x), copy.deepcopy(net)(x))


def test_traced_by_fx_with_weights_as_an_argument():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = WeightedBatchNorm1d(3)

        def forward(self, x, w):
            return self.norm(x, w)

    net, x, w = Net(), normal(6, 3), weights(6)
    assert_close(torch.fx.symbolic_trace(net)(x, w), WeightedBatchNorm1d(3)(x, w))


@pytest.mark.parametrize("training", [True, False])
def test_features_are_extracted(training):
    pytest.importorskip("torchvision")
    from torchvision.models import resnet18
    from torchvision.models.feature_extraction import create_feature_extractor

    net = convert(resnet18(num_classes=2)).train(training)
    features = create_feature_extractor(net, ["layer1.0.bn1", "fc"]).train(training)
    x, twin = normal(2, 3, 32, 32), copy.deepcopy(net)
    with sample_weights(weights(2)):
        assert_close(features(x)["fc"], twin(x), rtol=1e-4, atol=1e-4)
    assert features(x)["layer1.0.bn1"].shape == (2, 64, 8, 8)


def test_a_compiled_function_with_the_context_inside_compiles_to_one_graph():
    # In double precision, since gradients that are zero are compared.
    net, twin, x, w = (t.double() for t in (model(), model(), normal(6, 3), weights(6)))

    def function(net, x, w):
        with sample_weights(w):
            return net(x)

    torch._dynamo.reset()
    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    outputs = compiled(net, x, w), function(twin, x, w)
    torch._dynamo.reset()
    assert_close(*outputs)
    for y in outputs:
        y.pow(3).sum().backward()
    assert_close(gradients(net), gradients(twin), rtol=1e-7, atol=1e-12)
    assert_close(list(net.buffers()), list(twin.buffers()))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # which opcheck asks for
@pytest.mark.parametrize("of", [None, (4,), (4, 5)], ids=["no weights", "samples", "positions"])
@corrections
def test_the_operator_that_compiled_code_holds_is_one_that_torch_can_work_with(of, correction):
    """Torch's own test of operators: no hidden changes, gradients, fake tensors, any shape."""
    x, weight, bias = normal(4, 3, 5), normal(3), normal(3)
    tensors = [t.double().requires_grad_() for t in (x, weight, bias)]
    w = None if of is None else normal(*of, seed=1).abs().double() + 1
    arguments = tensors[0], w, *tensors[1:], 1e-5, correction
    torch.library.opcheck(torch.ops.wbn.normalize_batch, arguments)


@pytest.mark.filterwarnings("ignore:Dynamo does not know how to trace")  # and leaves to Python
def test_no_gradient_is_lost_where_torch_compile_gave_up_on_the_callers():
    """As it does with vmap: it then looks into functions that they call, one by one."""
    layer, x, w = WeightedBatchNorm1d(3), normal(6, 3).requires_grad_(), weights(6)
    torch._dynamo.reset()
    mapped = vmap(WeightedBatchNorm1d(3, track_running_stats=False))
    torch.compile(mapped, backend="aot_eager")(normal(2, 6, 3), torch.stack([w, w]))
    y = torch.compile(layer, backend="aot_eager")(x, w)
    torch._dynamo.reset()
    assert_close(y, layer(x, w))
    found = torch.autograd.grad(y.pow(3).sum(), x)
    assert_close(found, torch.autograd.grad(layer(x, w).pow(3).sum(), x))


def test_a_module_that_is_loaded_again_registers_what_compiled_code_calls():
    program = """
import importlib
import torch
from wbn import layers, normalization
for module in (normalization, layers):
    importlib.reload(module)
layer = layers.WeightedBatchNorm1d(2)
torch.compile(layer, fullgraph=True, backend="aot_eager")(torch.rand(4, 2), torch.rand(4))
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# Threads --------------------------------------------------------------------------------


def test_data_parallel_is_refused_where_it_would_lose_the_weights():
    """Its threads are started on GPUs only; before, it asks each layer for a replica."""
    net = model()
    with (
        sample_weights(weights(4)),
        pytest.raises(ValueError, match="DistributedDataParallel"),
    ):
        net[1]._replicate_for_data_parallel()
    assert net[1]._replicate_for_data_parallel()._is_replica
    with sample_weights(weights(4)):
        net.eval()[1]._replicate_for_data_parallel()


# Messages -------------------------------------------------------------------------------


def test_messages_name_the_layer():
    net, w = convert(nn.ModuleDict({"head": nn.BatchNorm1d(3)}), "frequency"), torch.full((4,), 0.1)
    with pytest.raises(ValueError, match=r"^WeightedBatchNorm1d 'head': the weights of this batch"):
        net["head"](normal(4, 3), w)
    with pytest.raises(ValueError, match=r"^WeightedBatchNorm1d\(3\): .* has 2 channels"):
        WeightedBatchNorm1d(3)(normal(4, 2))


def test_a_world_of_one_process():
    x = normal(4, 2)
    shared = WeightedBatchNorm1d(2, process_group="world")
    assert torch.equal(shared(x), WeightedBatchNorm1d(2)(x))
    assert copy.deepcopy(shared).process_group == "world"
