"""Layers that normalize a mini-batch in training with something else than its own moments.

They are interventions: each takes one suspected cause away and leaves the rest. Their gradient
comes from autograd, of the normalization only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from wbn.core import moments, normalize
from wbn.experiments.layer import SAMPLES, Layer, checked_moments

MOMENTUM = 0.02  # of running sums; it gives them the weight of about a hundred mini-batches


class CrossFittedLayer(Layer):
    r"""Each half of a mini-batch is normalized with the moments of the other half.

    .. math::
        y_i = \gamma \frac{x_i - m_{B}}{\sqrt{v_{B} + \varepsilon}} + b, \qquad i \in A,

    and the other way round, with A the samples at even places and B those at odd ones. A sample
    takes no part in the moments that it is normalized with, so its weight cannot show in them.
    """

    def _normalized(self, x: Tensor, w: Tensor | None, gamma: Tensor, b: Tensor) -> Tensor:
        self.moments = checked_moments(x.detach(), w, self.correction)
        y = torch.empty_like(x)
        for own, other in ((0, 1), (1, 0)):
            weights = None if w is None else w[:, other::2]
            m = checked_moments(x[:, other::2], weights, self.correction)
            y[:, own::2] = normalize(x[:, own::2] - m.mean, m.var, gamma, b, self.eps)
        return y

    def forward(self, z: Tensor, w: Tensor | None) -> Tensor:
        """Output for a mini-batch z (S, N, inputs) with weights w (S, N, 1)."""
        w = w if self.norm == "weighted" else None
        leaves = torch.bmm(z, self.linear.mT), self.weight, self.bias
        self.leaves = [leaf.detach().requires_grad_() for leaf in leaves]
        x, gamma, b = self.leaves
        self.normalized = self._normalized(x, w, gamma, b)
        y = self.normalized.detach()
        y = y.relu() if self.relu else y
        self.saved = z, w, y
        return y

    def backward(self, grad: Tensor) -> Tensor:
        """Set the gradients of the parameters, and return the one of W z."""
        z, _, y = self.saved
        if self.relu:
            grad = grad * (y > 0)
        grads = torch.autograd.grad(self.normalized, self.leaves, grad)
        grad, self.weight.grad, self.bias.grad = grads
        self.linear.grad = torch.bmm(grad.mT, z)
        return grad


class RunningSumsLayer(CrossFittedLayer):
    r"""A mini-batch is normalized with running weighted sums over the batches before it.

    .. math::
        M = \frac{\overline{\sum w x}}{\overline{\sum w}}, \qquad
        V = \frac{\overline{\sum w x^2}}{\overline{\sum w}} - M^2, \qquad
        y = \gamma \left( \frac{x - m}{\sqrt{v + \varepsilon}} r + d \right) + b

    with the bar for a running average. The plain moments m and v of the mini-batch carry the
    gradient, and the constants :math:`r = \sqrt{v + \varepsilon} / \sqrt{V + \varepsilon}` and
    :math:`d = (m - M) / \sqrt{V + \varepsilon}` make y the input normalized with M and V, as in
    batch renormalization (Ioffe 2017). A mini-batch without a minority sample is normalized like
    any other, no sample takes part in what it is normalized with, and inference does the same.
    """

    sums: tuple[Tensor, ...] | None = None

    def _normalized(self, x: Tensor, w: Tensor | None, gamma: Tensor, b: Tensor) -> Tensor:
        fixed = x.detach()
        self.moments = checked_moments(fixed, w, self.correction)
        self.latest = _sums(fixed, w)
        mean, var = self.running()
        m = moments(x, None, SAMPLES, "none")
        inverse = (var + self.eps).rsqrt()
        r, d = ((m.var + self.eps).sqrt() * inverse).detach(), ((m.mean - mean) * inverse).detach()
        return gamma * (normalize(m.centered, m.var, None, None, self.eps) * r + d) + b

    def backward(self, grad: Tensor) -> Tensor:
        """As before; then take the mini-batch into the running sums."""
        before = self.latest if self.sums is None else self.sums
        self.sums = tuple(a.lerp(b, MOMENTUM) for a, b in zip(before, self.latest, strict=True))
        return super().backward(grad)

    def running(self) -> tuple[Tensor, Tensor]:
        """Mean M and variance V; before the first step, those of the mini-batch itself."""
        total, first, second = self.latest if self.sums is None else self.sums
        mean = first / total
        var = (second / total - mean.square()).clamp(min=0)
        return mean.to(self.linear.dtype), var.to(self.linear.dtype)


def _sums(x: Tensor, w: Tensor | None) -> tuple[Tensor, ...]:
    """Sums of w, w x and w x^2 over samples, in double precision."""
    x = x.double()
    w = torch.ones_like(x[..., :1]) if w is None else w.double()
    return tuple((w * power).sum(SAMPLES, keepdim=True) for power in (torch.ones_like(x), x, x * x))


LAYERS = {"batch": Layer, "cross_fitted": CrossFittedLayer, "running_sums": RunningSumsLayer}
