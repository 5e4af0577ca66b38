"""Layers that replace the usual normalization of a mini-batch in training.

Each is an intervention that removes one suspected cause and keeps the rest. Autograd gives the
gradient of the normalization; the rest of the gradient is in closed form.
"""

from __future__ import annotations

import torch
from torch import Tensor

from study.engine.layer import SAMPLES, Layer, checked_moments
from wbn.core import moments, normalize

MOMENTUM = 0.02  # of running sums, which then cover about a hundred mini-batches


class CrossFittedLayer(Layer):
    r"""Each half of a mini-batch is normalized with the moments of the other half.

    .. math::
        y_i = \gamma \frac{x_i - m_{B}}{\sqrt{v_{B} + \varepsilon}} + b, \qquad i \in A,

    and the other way round. A are the samples at even places, B those at odd places. A sample has
    no part in the moments that normalize it, so these moments cannot reveal its weight.
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
        y = self._activated(self.normalized.detach().clone())
        self.saved = z, w, y
        return y

    def backward(self, grad: Tensor) -> Tensor:
        """Set the gradients of the parameters, and return the gradient of W z."""
        z, _, y = self.saved
        grad = self._before_activation(grad, y)
        grads = torch.autograd.grad(self.normalized, self.leaves, grad)
        grad, self.weight.grad, self.bias.grad = grads
        self.linear.grad = torch.bmm(grad.mT, z)
        return grad


class DetachedLayer(CrossFittedLayer):
    r"""A mini-batch is normalized with its own moments, but no gradient goes through them.

    .. math::
        y = \gamma \frac{x - m}{\sqrt{v + \varepsilon}} + b, \qquad
        \frac{\partial y_i}{\partial x_i} = \frac{\gamma}{\sqrt{v + \varepsilon}}

    as if m and v were constants, an easy mistake.
    """

    def _normalized(self, x: Tensor, w: Tensor | None, gamma: Tensor, b: Tensor) -> Tensor:
        self.moments = m = checked_moments(x.detach(), w, self.correction)
        return normalize(x - m.mean, m.var, gamma, b, self.eps)


class RunningSumsLayer(CrossFittedLayer):
    r"""A mini-batch is normalized with running weighted sums over the batches before it.

    .. math::
        M = \frac{\overline{\sum w x}}{\overline{\sum w}}, \qquad
        V = \frac{\overline{\sum w x^2}}{\overline{\sum w}} - M^2, \qquad
        y = \gamma \left( \frac{x - m}{\sqrt{v + \varepsilon}} r + d \right) + b

    where a bar is a running average. This is batch renormalization (Ioffe 2017): the gradient goes
    through the plain moments m and v of the mini-batch, and the constants
    :math:`r = \sqrt{v + \varepsilon} / \sqrt{V + \varepsilon}` and
    :math:`d = (m - M) / \sqrt{V + \varepsilon}` turn the result into the input normalized with M
    and V. So a mini-batch without a minority sample is normalized like any other, no sample has a
    part in what normalizes it, and inference does the same as training.
    """

    sums: tuple[Tensor, ...] | None = None

    def _normalized(self, x: Tensor, w: Tensor | None, gamma: Tensor, b: Tensor) -> Tensor:
        fixed = x.detach()
        self.moments = checked_moments(fixed, w, self.correction)
        self.latest = self._sums(fixed, w)
        mean, var = self.running()
        m = moments(x, None, SAMPLES, "none")
        inverse = (var + self.eps).rsqrt()
        r, d = ((m.var + self.eps).sqrt() * inverse).detach(), ((m.mean - mean) * inverse).detach()
        return gamma * (normalize(m.centered, m.var, None, None, self.eps) * r + d) + b

    def backward(self, grad: Tensor) -> Tensor:
        """Set and return gradients as above, and add the mini-batch to the running sums."""
        before = self.latest if self.sums is None else self.sums
        self.sums = tuple(a.lerp(b, MOMENTUM) for a, b in zip(before, self.latest, strict=True))
        return super().backward(grad)

    def running(self) -> tuple[Tensor, Tensor]:
        """Mean M and variance V; before the first step, those of the mini-batch itself."""
        total, first, second = self.latest if self.sums is None else self.sums
        mean = first / total
        return self._as_stored(mean, second / total - mean.square())

    def _as_stored(self, mean: Tensor, var: Tensor) -> tuple[Tensor, Tensor]:
        return mean.to(self.linear.dtype), var.clamp(min=0).to(self.linear.dtype)

    def _sums(self, x: Tensor, w: Tensor | None) -> tuple[Tensor, ...]:
        """Sums of w, w x and w x^2 over samples, in double precision."""
        x = x.double()
        w = torch.ones_like(x[..., :1]) if w is None else w.double()
        powers = torch.ones_like(x), x, x * x
        return tuple((w * power).sum(SAMPLES, keepdim=True) for power in powers)


class ClassAveragesLayer(RunningSumsLayer):
    r"""A mini-batch is normalized with balanced moments from running averages of each class.

    .. math::
        m_k = \frac{\overline{\sum_{i \in k} x_i}}{\overline{n_k}}, \qquad
        q_k = \frac{\overline{\sum_{i \in k} x_i^2}}{\overline{n_k}}, \qquad
        M = \sum_k \pi_k m_k, \qquad V = \sum_k \pi_k q_k - M^2

    where a bar is a running average and :math:`\pi_k` is the share of class k in the total weight
    of the data set, as in the loss. Running sums depend on how many samples of a class were seen
    lately; these shares do not. A class that was not seen yet is left out. Forward and backward
    pass are those of running sums. With the `norm` "standard", a control, all samples are in one
    class, so the averages are not balanced.
    """

    class_weight: Tensor  # (K,), all different, since a sample's weight tells its class
    share: Tensor  # (K,), pi

    def _sums(self, x: Tensor, w: Tensor | None) -> tuple[Tensor, ...]:
        """Sums of 1, x and x^2 over the samples of each class, (S, K, C), in double precision."""
        if w is None:
            return super()._sums(x, w)
        x, member = x.double(), (w == self.class_weight).double().mT
        return tuple(torch.bmm(member, power) for power in (torch.ones_like(x), x, x * x))

    def running(self) -> tuple[Tensor, Tensor]:
        """Mean M and variance V; before the first step, those of the mini-batch itself."""
        if self.norm == "standard":
            return super().running()
        total, first, second = self.latest if self.sums is None else self.sums
        share = torch.where(total > 0, self.share[:, None], 0.0)
        share = share / (share.sum(SAMPLES, keepdim=True) * total.clamp(min=1e-300))
        mean, square = ((share * sums).sum(SAMPLES, keepdim=True) for sums in (first, second))
        return self._as_stored(mean, square - mean.square())


# Classes of the hidden and the output layer, for each name of `Protocol.statistics`.
LAYERS = {
    "batch": (Layer, Layer),
    "cross_fitted": (CrossFittedLayer, CrossFittedLayer),
    "detached": (DetachedLayer, DetachedLayer),
    "running_sums": (RunningSumsLayer, RunningSumsLayer),
    "class_averages": (ClassAveragesLayer, Layer),
}
