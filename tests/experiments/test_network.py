"""Both networks have the one interface that training and evaluation use."""

import inspect

import pytest
import torch

from wbn.experiments.network import LayeredNetwork, ReplicaNetwork
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import NETWORKS

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
