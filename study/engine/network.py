"""The paper's network for several replicas at once, stacked along a leading dimension."""

from __future__ import annotations

import math
import typing
from functools import partial

import torch
from torch import Tensor, nn

from study.engine.data import stream
from study.engine.layer import Layer
from study.engine.protocol import Protocol
from study.engine.variants import LAYERS, RunningSumsLayer

Statistics = list[tuple[Tensor, Tensor] | None]  # mean and variance of each layer, or no BN


@typing.runtime_checkable
class ReplicaNetwork(typing.Protocol):
    """The interface of a network of S replicas, one for each seed.

    Inputs x have the shape (S, N, inputs), weights w (S, N, 1) or are None, logits (S, N, K).
    """

    @property
    def parameters(self) -> list[Tensor]:
        """Everything that the optimizer updates."""

    def forward(self, x: Tensor, w: Tensor | None) -> Tensor:
        """Logits of a mini-batch, normalized with its own moments."""

    def backward(self, grad: Tensor) -> None:
        """Set the gradients of all parameters, given the gradient of the logits."""

    def statistics(self) -> Statistics:
        """Moments of each layer for the last mini-batch, in the form used at inference."""

    def infer(self, x: Tensor, statistics: Statistics) -> Tensor:
        """Logits with given inference statistics."""


@typing.runtime_checkable
class LayeredNetwork(ReplicaNetwork, typing.Protocol):
    """The interface that interventions and the diagnosis need; only the paper's network has it."""

    layers: list[Layer]  # hidden and output

    def running(self) -> Statistics:
        """Running statistics of each layer that has some."""

    def output_statistics(self, x: Tensor, w: Tensor | None, hidden: Statistics) -> Statistics:
        """Moments of the output layer for a batch, given the statistics of the hidden layer."""


# For a layer with n inputs, the variance is 2 / n (He), 1 / n (LeCun) or 1 / (3 n) (nn.Linear).
INITIALIZATIONS = {
    "xavier_uniform": nn.init.xavier_uniform_,
    "xavier_normal": nn.init.xavier_normal_,
    "he_normal": partial(nn.init.kaiming_normal_, nonlinearity="relu"),
    "lecun_normal": partial(nn.init.kaiming_normal_, nonlinearity="linear"),
    "torch_uniform": partial(nn.init.kaiming_uniform_, a=math.sqrt(5)),
}


def initial_weights(protocol: Protocol, seed: int, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Weights for each layer of one replica. All precisions get the same draws."""
    fill, dtype = INITIALIZATIONS[protocol.initialization], getattr(torch, protocol.dtype)
    generator = stream(seed, "initialization")
    empty = (torch.empty(shape, dtype=torch.float32) for shape in shapes)
    return [fill(weight, generator=generator).to(dtype) for weight in empty]


class Network:
    """The paper's network of two layers, inputs-hidden-classes, for several seeds.

    Parameters
    ----------
    protocol
        Resolved.
    seeds
        Seeds, with one replica each. A replica does not depend on the other seeds.
    shape, classes
        Shape of one input, which is flattened, and the number of classes.
    """

    def __init__(
        self, protocol: Protocol, seeds: list[int], shape: tuple[int, ...], classes: int
    ) -> None:
        shapes = [(protocol.hidden, math.prod(shape)), (classes, protocol.hidden)]
        drawn = [initial_weights(protocol, seed, shapes) for seed in seeds]
        linears = [torch.stack(replicas) for replicas in zip(*drawn, strict=True)]
        norms = (protocol.hidden_norm, protocol.output_norm)
        activations = (protocol.activation, None)
        kinds = LAYERS[protocol.statistics]
        self.layers = [
            (Layer if norm == "none" else kind)(
                linear, norm, protocol.correction, protocol.eps, activation
            )
            for kind, linear, norm, activation in zip(
                kinds, linears, norms, activations, strict=True
            )
        ]

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, stacked over replicas."""
        return [p for layer in self.layers for p in layer.parameters]

    def forward(self, x: Tensor, w: Tensor | None) -> Tensor:
        """Logits of a mini-batch, normalized with its own moments."""
        for layer in self.layers:
            x = layer.forward(x, w)
        return x

    def backward(self, grad: Tensor) -> None:
        """Set the gradients of all parameters, given the gradient of the logits."""
        first, last = self.layers
        first.backward(torch.bmm(last.backward(grad), last.linear))

    def statistics(self) -> Statistics:
        """Moments of each layer for the last mini-batch."""
        return [layer.statistics() for layer in self.layers]

    def running(self) -> Statistics:
        """Running statistics of each layer that has some."""
        return [
            layer.running() if isinstance(layer, RunningSumsLayer) else None
            for layer in self.layers
        ]

    def output_statistics(self, x: Tensor, w: Tensor | None, hidden: Statistics) -> Statistics:
        """Moments of the output layer for a batch, given the statistics of the hidden layer."""
        first, last = self.layers
        last.forward(first.infer(x, *hidden), w)
        return [last.statistics()]

    def infer(self, x: Tensor, statistics: Statistics) -> Tensor:
        """Logits with given inference statistics."""
        for layer, mean_and_var in zip(self.layers, statistics, strict=True):
            x = layer.infer(x, mean_and_var)
        return x
