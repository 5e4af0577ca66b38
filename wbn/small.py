r"""The mathematics of `wbn.core` for small batches without positions on the CPU, with NumPy.

There a call costs more than the work that it does, and calls of NumPy cost the least.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

LARGEST = 2**16  # values: from there on torch's kernels are as fast
PRECISIONS = (torch.float32, torch.float64)


class Shares(NamedTuple):
    r"""Weights as they enter sums: :math:`w_i / Z`, and numbers that belong to them."""

    of: np.ndarray  # broadcasts against the input; sums to 1 over all positions
    smallest: float  # of them
    corrected: float  # Z / D, from the variance of "none" to the one normalized with
    stored: float  # from there to the variance for inference


class Made(NamedTuple):
    """What an output was made with."""

    share: Shares
    mean: np.ndarray
    var: np.ndarray
    eps: float


def is_small(x: Tensor) -> bool:
    """Whether x is for this module: one position, single or double precision, not too large."""
    size = x.numel()
    flat = size <= LARGEST and size == x.shape[0] * x.shape[1]
    return flat and x.dtype in PRECISIONS and x.is_contiguous()


def normalize_small(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, share: Shares, eps: float
) -> tuple[Tensor, Made]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, and what it was made with.

    Parameters
    ----------
    x, weight, bias
        Constants; x has one position.
    share, eps
        The weights, and :math:`\varepsilon`.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from wbn.small import Shares, normalize_small
    >>> share = Shares(np.array([[0.5], [0.5]], dtype="float32"), 1.0, 1.0, 1.0)
    >>> y, made = normalize_small(torch.tensor([[0.0], [1.0]]), None, None, share, 0.0)
    >>> y.flatten(), made.mean, made.var
    (tensor([-1.,  1.]), array([0.5], dtype=float32), array([0.25], dtype=float32))
    """
    values, p = x.numpy().reshape(x.shape[:2]), share.of.reshape(-1)
    about = p.dot(values)
    y = values - about
    shift = p.dot(y)
    y -= shift
    var = np.maximum(p.dot(y * y), 0)
    if share.corrected != 1:
        var *= share.corrected
    scale = 1 / np.sqrt(var + eps)
    if weight is not None:
        scale *= weight.numpy()
    y *= scale
    if bias is not None:
        y += bias.numpy()
    return torch.from_numpy(y.reshape(x.shape)), Made(share, about + shift, var, eps)


def gradients_small(
    grad: Tensor, x: Tensor, weight: Tensor | None, made: Made
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias, as in `wbn.core.normalize_backward`.

    Examples
    --------
    >>> import torch
    >>> from wbn.eager import shares
    >>> from wbn.small import gradients_small, normalize_small
    >>> x, grad = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[1.0], [0.0], [0.0]])
    >>> _, made = normalize_small(x, None, None, shares(x, torch.ones(3), "none"), 0.0)
    >>> gradients_small(grad, x, None, made)[0].flatten()
    tensor([ 0.1763, -0.2204,  0.0441])
    """
    share, mean, var, eps = made
    shape = x.shape[:2]
    g, through = grad.numpy().reshape(shape), x.numpy().reshape(shape) - mean
    scale = inverse_std = 1 / np.sqrt(var + eps)
    if weight is not None:
        scale = scale * weight.numpy()
    grad_weight, grad_bias = (g * through).sum(0) * inverse_std, g.sum(0)
    through *= grad_weight * inverse_std * share.corrected
    through += grad_bias
    through *= share.of.reshape(-1, 1)
    grad_x = g - through
    grad_x *= scale
    found = torch.from_numpy(grad_x.reshape(x.shape))
    return found, torch.from_numpy(grad_weight), torch.from_numpy(grad_bias)
