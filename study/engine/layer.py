"""A normalized layer of several replicas, with its gradient in closed form.

It calls `wbn.core` with a leading dimension for replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from wbn.checks import check_enough
from wbn.core import Moments, moments, normalize, normalize_backward
from wbn.normalization import stored_variance

SAMPLES = (1,)  # the dimension that moments are taken over, in (S, N, C)


class Activation(NamedTuple):
    """A function, which may overwrite its input, and its derivative in terms of the output."""

    apply: Callable[[Tensor], Tensor]
    slope: Callable[[Tensor], Tensor]


ACTIVATIONS = {
    "relu": Activation(torch.relu_, lambda y: y > 0),
    "sigmoid": Activation(torch.sigmoid_, lambda y: y * (1 - y)),
    "tanh": Activation(torch.tanh_, lambda y: 1 - y * y),
}


def checked_moments(x: Tensor, w: Tensor | None, correction: str) -> Moments:
    """Moments over samples; an error if the weights leave too few samples for a variance."""
    m = moments(x, w, SAMPLES, correction)
    largest, least = m.concentration.max().item(), m.total.min().item()
    check_enough(least, largest, correction, torch.finfo(x.dtype).eps)
    return m


class Layer:
    r"""A layer of S replicas, :math:`z \mapsto a(\gamma (Wz - m) / \sqrt{v + \varepsilon} + b)`.

    These are Eqs. 7 and 8; with the norm "none" Eqs. 5 and 6.

    Parameters
    ----------
    linear
        W of each replica, shape (S, outputs, inputs).
    norm, correction, eps
        As in `Protocol`.
    activation
        A name of `ACTIVATIONS`, or None for the identity.
    """

    def __init__(
        self, linear: Tensor, norm: str, correction: str, eps: float, activation: str | None
    ) -> None:
        shape = (linear.shape[0], 1, linear.shape[1])
        self.linear = linear
        self.weight = None if norm == "none" else linear.new_ones(shape)
        self.bias = linear.new_zeros(shape)
        self.norm, self.correction, self.eps = norm, correction, eps
        self.activation = ACTIVATIONS[activation] if activation else None

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
            self.moments = m = checked_moments(x, w, self.correction)
            y = normalize(m.centered, m.var, self.weight, self.bias, self.eps)
        self.saved = z, w, self._activated(y)
        return y

    def backward(self, grad: Tensor) -> Tensor:
        """Set the gradients of the parameters, and return the gradient of W z."""
        z, w, y = self.saved
        grad = self._before_activation(grad, y)
        if self.norm == "none":
            self.bias.grad = grad.sum(SAMPLES, keepdim=True)
        else:
            grad, self.weight.grad, self.bias.grad = normalize_backward(
                grad, self.moments, w, self.weight, self.eps, SAMPLES
            )
        self.linear.grad = torch.bmm(grad.mT, z)
        return grad

    def gain(self) -> Tensor:
        """Sum of gamma over outputs, (S,); NaN without normalization."""
        if self.weight is None:
            return self.bias.new_full((len(self.bias),), float("nan"))
        return self.weight.sum((1, 2))

    def statistics(self) -> tuple[Tensor, Tensor] | None:
        """Mean and variance of the last mini-batch, in the form used at inference."""
        if self.moments is None:
            return None
        return self.moments.mean, stored_variance(self.moments, self.correction)

    def infer(self, z: Tensor, statistics: tuple[Tensor, Tensor] | None) -> Tensor:
        """Output normalized with the given statistics, each of shape (S, 1, outputs)."""
        x = torch.bmm(z, self.linear.mT)
        if statistics is None:
            y = x + self.bias
        else:
            mean, var = statistics
            y = normalize(x - mean, var, self.weight, self.bias, self.eps)
        return self._activated(y)

    def _activated(self, y: Tensor) -> Tensor:
        return self.activation.apply(y) if self.activation else y

    def _before_activation(self, grad: Tensor, y: Tensor) -> Tensor:
        """Gradient of the activation's input, given that of its output y."""
        return grad * self.activation.slope(y) if self.activation else grad
