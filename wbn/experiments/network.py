"""The paper's network, several replicas at once, with its gradient in closed form.

The parameters of S replicas are stacked along a leading dimension, and the normalization is
the package's own core (`wbn.core`), called with that dimension.
"""

from __future__ import annotations

import math
import typing

import torch
from torch import Tensor, nn

from wbn.checks import check_enough
from wbn.core import moments, normalize, normalize_backward
from wbn.experiments.data import stream
from wbn.experiments.protocol import Protocol
from wbn.functional import stored_variance

SAMPLES = (1,)  # the dimension that moments are taken over, in (S, N, C)
Statistics = list[tuple[Tensor, Tensor] | None]  # mean and variance of each layer, or no BN


@typing.runtime_checkable
class ReplicaNetwork(typing.Protocol):
    """What training and evaluation ask of a network of S replicas, one for each seed.

    Inputs x are rows of numbers, (S, N, inputs), weights w are (S, N, 1) or None, logits are
    (S, N, K).
    """

    @property
    def parameters(self) -> list[Tensor]:
        """What the optimizer updates."""

    def forward(self, x: Tensor, w: Tensor | None) -> Tensor:
        """Logits of a mini-batch, normalized with its own statistics."""

    def backward(self, grad: Tensor) -> None:
        """Set the gradients of all parameters from the one of the logits."""

    def statistics(self) -> Statistics:
        """Each layer's moments of the last mini-batch, as they are kept for inference."""

    def infer(self, x: Tensor, statistics: Statistics) -> Tensor:
        """Logits with given statistics."""


def initial_weights(protocol: Protocol, seed: int, shapes: list[tuple[int, ...]]) -> list[Tensor]:
    """Xavier's weights for each layer of one replica, drawn alike whatever the precision."""
    draw = {"xavier_uniform": nn.init.xavier_uniform_, "xavier_normal": nn.init.xavier_normal_}
    fill, dtype = draw[protocol.initialization], getattr(torch, protocol.dtype)
    generator = stream(seed, "initialization")
    empty = (torch.empty(shape, dtype=torch.float32) for shape in shapes)
    return [fill(weight, generator=generator).to(dtype) for weight in empty]


class Layer:
    r"""A layer of S replicas, :math:`z \mapsto a(\gamma (Wz - m) / \sqrt{v + \varepsilon} + b)`.

    Eqs. 7 and 8; Eqs. 5 and 6 where `norm` is "none".

    Parameters
    ----------
    linear
        W of each replica, shape (S, outputs, inputs).
    norm, correction, eps
        As in `Protocol`.
    relu
        Whether the activation a is ReLU or the identity.
    """

    def __init__(self, linear: Tensor, norm: str, correction: str, eps: float, relu: bool) -> None:
        shape = (linear.shape[0], 1, linear.shape[1])
        self.linear = linear
        self.weight = None if norm == "none" else linear.new_ones(shape)
        self.bias = linear.new_zeros(shape)
        self.norm, self.correction, self.eps, self.relu = norm, correction, eps, relu

    @property
    def parameters(self) -> list[Tensor]:
        """W, gamma (with normalization) and b."""
        return [p for p in (self.linear, self.weight, self.bias) if p is not None]

    def forward(self, z: Tensor, w: Tensor | None) -> Tensor:
        """Output for a mini-batch z (S, N, inputs) with weights w (S, N, 1)."""
        x = torch.bmm(z, self.linear.mT)
        if self.norm == "none":
            self.moments, y = None, x + self.bias
        else:
            w = w if self.norm == "weighted" else None
            self.moments = m = moments(x, w, SAMPLES, self.correction)
            if w is not None:
                largest, least = m.concentration.max().item(), m.total.min().item()
                check_enough(least, largest, self.correction, torch.finfo(x.dtype).eps)
            y = normalize(m.centered, m.var, self.weight, self.bias, self.eps)
        if self.relu:
            y.relu_()
        self.saved = z, w, y
        return y

    def backward(self, grad: Tensor) -> Tensor:
        """Set the gradients of the parameters, and return the one of W z."""
        z, w, y = self.saved
        if self.relu:
            grad = grad * (y > 0)
        if self.norm == "none":
            self.bias.grad = grad.sum(SAMPLES, keepdim=True)
        else:
            grad, self.weight.grad, self.bias.grad = normalize_backward(
                grad, self.moments, w, self.weight, self.eps, SAMPLES
            )
        self.linear.grad = torch.bmm(grad.mT, z)
        return grad

    def statistics(self) -> tuple[Tensor, Tensor] | None:
        """Mean and variance of the last mini-batch, as they are kept for inference."""
        if self.moments is None:
            return None
        return self.moments.mean, stored_variance(self.moments, self.correction)

    def infer(self, z: Tensor, statistics: tuple[Tensor, Tensor] | None) -> Tensor:
        """Output with given statistics (S, 1, outputs) in place of the mini-batch's."""
        x = torch.bmm(z, self.linear.mT)
        if statistics is None:
            y = x + self.bias
        else:
            mean, var = statistics
            y = normalize(x - mean, var, self.weight, self.bias, self.eps)
        return y.relu_() if self.relu else y


class Network:
    """Two layers, inputs-hidden-classes, for several seeds; the paper's `ReplicaNetwork`.

    Parameters
    ----------
    protocol
        Resolved.
    seeds
        One replica each; a seed's initialization does not depend on the others.
    shape, classes
        Of one input, which is flattened, and the size of the last layer.
    """

    def __init__(
        self, protocol: Protocol, seeds: list[int], shape: tuple[int, ...], classes: int
    ) -> None:
        shapes = [(protocol.hidden, math.prod(shape)), (classes, protocol.hidden)]
        drawn = [initial_weights(protocol, seed, shapes) for seed in seeds]
        linears = [torch.stack(replicas) for replicas in zip(*drawn, strict=True)]
        norms = (protocol.hidden_norm, protocol.output_norm)
        self.layers = [
            Layer(linear, norm, protocol.correction, protocol.eps, relu)
            for linear, norm, relu in zip(linears, norms, (True, False), strict=True)
        ]

    @property
    def parameters(self) -> list[Tensor]:
        """Parameters of all layers, stacked over replicas."""
        return [p for layer in self.layers for p in layer.parameters]

    def forward(self, x: Tensor, w: Tensor | None) -> Tensor:
        """Logits of a mini-batch, normalized with its own statistics."""
        for layer in self.layers:
            x = layer.forward(x, w)
        return x

    def backward(self, grad: Tensor) -> None:
        """Set the gradients of all parameters from the one of the logits."""
        first, last = self.layers
        first.backward(torch.bmm(last.backward(grad), last.linear))

    def statistics(self) -> Statistics:
        """Each layer's moments of the last mini-batch."""
        return [layer.statistics() for layer in self.layers]

    def infer(self, x: Tensor, statistics: Statistics) -> Tensor:
        """Logits with given statistics."""
        for layer, moments_ in zip(self.layers, statistics, strict=True):
            x = layer.infer(x, moments_)
        return x
