"""A small convolutional network that runs one replica after the other, with autograd.

It is a `study.engine.network.ReplicaNetwork` and uses the layers of `wbn`.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from study.engine.network import Statistics, initial_weights
from study.engine.protocol import Protocol
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d

CHANNELS, KERNEL, POOL = (24, 64), 5, 2
INFERRED_AT_ONCE = 500  # images


class Stage(nn.Module):
    r"""A layer of one replica, :math:`z \mapsto a(\gamma (Wz - m) / \sqrt{v + \varepsilon} + b)`.

    If W is a convolution, m and v are moments over samples and positions, and a is ReLU with
    2 x 2 maximum pooling. If W is a matrix, a is the identity.

    Parameters
    ----------
    linear
        W, of shape (outputs, inputs, height, width) or (outputs, inputs).
    norm, correction, eps
        As in `Protocol`. With the norm "none" the layer is :math:`a(Wz + b)`.
    """

    def __init__(self, linear: Tensor, norm: str, correction: str, eps: float) -> None:
        super().__init__()
        self.convolves, self.weighted = linear.dim() == 4, norm == "weighted"
        # Wz gets the layout of W. With this layout a convolution takes half the time.
        layout = torch.channels_last if self.convolves else torch.contiguous_format
        self.linear = nn.Parameter(linear.to(memory_format=layout))
        self.norm = self.bias = None
        if norm == "none":
            self.bias = nn.Parameter(linear.new_zeros(len(linear)))
        else:
            layer = WeightedBatchNorm2d if self.convolves else WeightedBatchNorm1d
            # With a momentum of 1, running statistics are those of the last mini-batch.
            options = {"eps": eps, "correction": correction, "momentum": 1.0}
            self.norm = layer(len(linear), dtype=linear.dtype, **options)

    def forward(self, z: Tensor, w: Tensor | None) -> Tensor:
        """Output for a mini-batch z (N, inputs, ...) with weights w (N,)."""
        x = self._product(z)
        if self.norm is not None:
            x = self.norm(x, w if self.weighted else None)
        return self._activation(x)

    def statistics(self) -> tuple[Tensor, Tensor] | None:
        """Mean and variance of the last mini-batch, in the form used at inference."""
        if self.norm is None:
            return None
        return self.norm.running_mean.clone(), self.norm.running_var.clone()

    def infer(self, z: Tensor, statistics: tuple[Tensor, Tensor] | None) -> Tensor:
        """Output normalized with the given statistics, each of shape (outputs,)."""
        x = self._product(z)
        if statistics is not None:
            x = F.batch_norm(x, *statistics, self.norm.weight, self.norm.bias, eps=self.norm.eps)
        return self._activation(x)

    def _product(self, z: Tensor) -> Tensor:
        if self.convolves:
            return F.conv2d(z, self.linear, self.bias)
        return F.linear(z.flatten(1), self.linear, self.bias)

    def _activation(self, x: Tensor) -> Tensor:
        return F.max_pool2d(x, POOL).relu() if self.convolves else x


class ConvolutionalNetwork:
    """Two convolutions and a linear layer for several seeds, 49 thousand parameters each.

    5 x 5 convolutions to 24 and 64 channels, each normalized by `hidden_norm`, with ReLU and
    2 x 2 maximum pooling; then the classes, normalized by `output_norm`.

    Parameters
    ----------
    protocol
        Resolved.
    seeds
        Seeds, with one replica each. A replica does not depend on the other seeds.
    shape, classes
        Height and width of the images, and the number of classes.
    """

    def __init__(
        self, protocol: Protocol, seeds: list[int], shape: tuple[int, ...], classes: int
    ) -> None:
        self.shape = sides = shape
        for _ in CHANNELS:
            sides = [(side - KERNEL + 1) // POOL for side in sides]
        if len(shape) != 2 or min(sides) < 1:
            raise ValueError(
                f"network is 'conv' and inputs have the shape {shape}: it takes images of at least "
                "16 x 16 pixels with one channel; choose 'mlp' for other inputs"
            )
        first, second = CHANNELS
        shapes = [
            (first, 1, KERNEL, KERNEL),
            (second, first, KERNEL, KERNEL),
            (classes, second * math.prod(sides)),
        ]
        norms = (protocol.hidden_norm, protocol.hidden_norm, protocol.output_norm)
        self.replicas = [
            [
                Stage(linear, norm, protocol.correction, protocol.eps)
                for linear, norm in zip(initial_weights(protocol, seed, shapes), norms, strict=True)
            ]
            for seed in seeds
        ]

    @property
    def parameters(self) -> list[Tensor]:
        """All parameters, one replica after the other."""
        return [p for stages in self.replicas for stage in stages for p in stage.parameters()]

    def forward(self, x: Tensor, w: Tensor | None) -> Tensor:
        """Logits of a mini-batch, normalized with its own moments."""
        weights = [None] * len(x) if w is None else w.squeeze(-1)
        self.outputs = []
        for stages, z, own in zip(self.replicas, self._images(x), weights, strict=True):
            for stage in stages:
                z = stage(z, own)
            self.outputs.append(z)
        return torch.stack(self.outputs).detach()

    def backward(self, grad: Tensor) -> None:
        """Set the gradients of all parameters, given the gradient of the logits."""
        for parameter in self.parameters:
            parameter.grad = None
        torch.autograd.backward(self.outputs, list(grad))

    def statistics(self) -> Statistics:
        """Moments of each layer for the last mini-batch, stacked over replicas, (S, outputs)."""
        layers = zip(*([stage.statistics() for stage in s] for s in self.replicas), strict=True)
        return [
            None if layer[0] is None else tuple(torch.stack(m) for m in zip(*layer, strict=True))
            for layer in layers
        ]

    @torch.no_grad()
    def infer(self, x: Tensor, statistics: Statistics) -> Tensor:
        """Logits with given inference statistics."""
        return torch.stack([
            torch.cat([self._infer(r, z, statistics) for z in images.split(INFERRED_AT_ONCE)])
            for r, images in enumerate(self._images(x))
        ])  # fmt: skip

    def _infer(self, replica: int, z: Tensor, statistics: Statistics) -> Tensor:
        for stage, mean_and_var in zip(self.replicas[replica], statistics, strict=True):
            z = stage.infer(z, None if mean_and_var is None else [m[replica] for m in mean_and_var])
        return z

    def _images(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (1, *self.shape))
