"""Both networks have the one interface that training and evaluation use."""

import inspect

import pytest
import torch

from study.engine.data import stream
from study.engine.layer import Layer
from study.engine.network import INITIALIZATIONS, LayeredNetwork, ReplicaNetwork, initial_weights
from study.engine.protocol import ALLOWED, STATISTICS, Protocol
from study.engine.training import NETWORKS
from study.engine.variants import (
    ClassAveragesLayer,
    CrossFittedLayer,
    DetachedLayer,
    RunningSumsLayer,
)

MEMBERS = ("parameters", "forward", "backward", "statistics", "infer")
SHAPE, CLASSES = (16, 18), 3


def hints(kind, member):
    value = getattr(kind, member)
    return inspect.signature(value.fget if isinstance(value, property) else value)


def test_the_members_are_those_of_the_interface():
    assert {name for name in vars(ReplicaNetwork) if name in MEMBERS} == set(MEMBERS)
    assert not isinstance(torch.nn.Linear(1, 1), ReplicaNetwork)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("output_norm", ["weighted", "none"])
def test_a_network_does_what_the_interface_says(name, output_norm):
    options = {"network": name, "output_norm": output_norm, "correction": "none"}
    protocol = Protocol.paper("i", "wlf_wbn", **options).resolved()
    network = NETWORKS[name](protocol, [0, 1], SHAPE, CLASSES)
    assert isinstance(network, ReplicaNetwork)
    for member in MEMBERS:
        assert hints(type(network), member) == hints(ReplicaNetwork, member)
    x, w = torch.rand(2, 7, SHAPE[0] * SHAPE[1]), torch.rand(2, 7, 1)
    logits = network.forward(x, w)
    assert logits.shape == (2, 7, CLASSES)
    network.backward(torch.ones_like(logits))
    assert all(p.grad.shape == p.shape for p in network.parameters)
    statistics = network.statistics()
    assert [layer is None for layer in statistics][-1] == (output_norm == "none")
    assert network.infer(x[:, :5], statistics).shape == (2, 5, CLASSES)


def test_only_the_paper_s_network_has_what_interventions_ask():
    layered = {
        name: isinstance(
            network(Protocol.paper("i", "wlf_wbn", network=name).resolved(), [0], SHAPE, CLASSES),
            LayeredNetwork,
        )
        for name, network in NETWORKS.items()
    }
    assert layered == {"mlp": True, "conv": False}
    for member in ("running", "output_statistics"):
        assert hints(NETWORKS["mlp"], member) == hints(LayeredNetwork, member)


def standard_deviation(name, outputs, inputs):
    """By their papers: Glorot and Bengio (2010), He et al. (2015), LeCun et al. (1998)."""
    variance = {
        "xavier_uniform": 2 / (inputs + outputs),
        "xavier_normal": 2 / (inputs + outputs),
        "he_normal": 2 / inputs,
        "lecun_normal": 1 / inputs,
        "torch_uniform": 1 / (3 * inputs),
    }
    return variance[name] ** 0.5


@pytest.mark.parametrize("name", INITIALIZATIONS)
def test_first_weights_have_the_variance_of_their_name(name):
    assert set(INITIALIZATIONS) == set(ALLOWED["initialization"].names)
    shapes = [(300, 784), (200, 500)]
    drawn = initial_weights(Protocol.paper("i", "lf_sbn", initialization=name), 5, shapes)
    generator = stream(5, "initialization")
    for weight, shape in zip(drawn, shapes, strict=True):
        sigma = standard_deviation(name, *shape)
        standard = torch.empty(shape)
        if "uniform" in name:
            standard.uniform_(-(3**0.5), 3**0.5, generator=generator)
        else:
            standard.normal_(generator=generator)
        torch.testing.assert_close(weight, sigma * standard, rtol=1e-4, atol=1e-6)
        assert weight.std().item() == pytest.approx(sigma, rel=0.01)


def test_torch_uniform_is_what_linear_layers_of_torch_draw():
    protocol = Protocol.paper("i", "lf_sbn", initialization="torch_uniform")
    with torch.random.fork_rng():
        torch.manual_seed(stream(7, "initialization").initial_seed())
        expected = [torch.nn.Linear(n, m, bias=False).weight for n, m in ((784, 20), (20, 2))]
    for ours, theirs in zip(
        initial_weights(protocol, 7, [(20, 784), (2, 20)]), expected, strict=True
    ):
        assert torch.equal(ours, theirs)


def test_statistics_name_the_layers():
    kinds = {
        "batch": (Layer, Layer),
        "cross_fitted": (CrossFittedLayer, CrossFittedLayer),
        "detached": (DetachedLayer, DetachedLayer),
        "running_sums": (RunningSumsLayer, RunningSumsLayer),
        "class_averages": (ClassAveragesLayer, Layer),
    }
    assert set(kinds) == set(STATISTICS)
    for statistics, expected in kinds.items():
        own = statistics == "class_averages"
        changes = {"statistics": statistics, "hidden_norm": "weighted", "activation": "tanh"}
        changes["inference"] = "class_averages" if own else "pooled"
        for output_norm in ("weighted", "none"):
            protocol = Protocol.paper("i", "wlf_wbn", output_norm=output_norm, **changes)
            network = NETWORKS["mlp"](protocol.resolved(), [0], SHAPE, CLASSES)
            last = Layer if output_norm == "none" else expected[1]
            assert [type(layer) for layer in network.layers] == [expected[0], last]
            assert [layer.activation is None for layer in network.layers] == [False, True]
