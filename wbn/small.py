r"""The mathematics of `wbn.core` for small batches without positions on the CPU, with NumPy.

There a call costs more than the work that it does, and calls of NumPy cost the least.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

LARGEST = 2**16  # values: from there on torch's kernels are as fast
PRECISIONS = (torch.float32, torch.float64)


def is_small(x: Tensor) -> bool:
    """Whether x is for this module: one position, single or double precision, not too large."""
    size = x.numel()
    flat = size <= LARGEST and size == x.shape[0] * x.shape[1]
    return flat and x.dtype in PRECISIONS and x.is_contiguous()


def normalize_small(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    share: np.ndarray,
    corrected: float,
    eps: float,
) -> tuple[Tensor, np.ndarray, np.ndarray]:
    r"""Output :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`, mean, and variance.

    Parameters
    ----------
    x, weight, bias
        Constants; x has one position.
    share, corrected
        As in `wbn.eager.Shares`.
    eps
        :math:`\varepsilon`.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from wbn.small import normalize_small
    >>> x, share = torch.tensor([[0.0], [1.0]]), np.array([[0.5], [0.5]], dtype="float32")
    >>> normalize_small(x, None, None, share, 1.0, 0.0)
    (tensor([[-1.],
            [ 1.]]), array([0.5], dtype=float32), array([0.25], dtype=float32))
    """
    values, p = x.numpy().reshape(x.shape[:2]), share.reshape(-1)
    about = p.dot(values)
    y = values - about
    shift = p.dot(y)
    y -= shift
    var = np.maximum(p.dot(y * y), 0)
    if corrected != 1:
        var *= corrected
    scale = 1 / np.sqrt(var + eps)
    if weight is not None:
        scale *= weight.numpy()
    y *= scale
    if bias is not None:
        y += bias.numpy()
    return torch.from_numpy(y.reshape(x.shape)), about + shift, var


def gradients_small(
    grad: Tensor,
    x: Tensor,
    weight: Tensor | None,
    share: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    corrected: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for x, weight and bias, as in `wbn.core.normalize_backward`.

    Examples
    --------
    >>> import numpy as np
    >>> import torch
    >>> from wbn.small import gradients_small
    >>> x, grad = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([[1.0], [0.0], [0.0]])
    >>> share, mean, var = np.full((3, 1), 1 / 3), np.array([2.0]), np.array([14 / 3])
    >>> gradients_small(grad, x, None, share, mean, var, 1.0, 0.0)[0].flatten().float()
    tensor([ 0.1763, -0.2204,  0.0441])
    """
    shape = x.shape[:2]
    g, through = grad.numpy().reshape(shape), x.numpy().reshape(shape) - mean
    scale = inverse_std = 1 / np.sqrt(var + eps)
    if weight is not None:
        scale = scale * weight.numpy()
    grad_weight, grad_bias = (g * through).sum(0) * inverse_std, g.sum(0)
    through *= grad_weight * inverse_std * corrected
    through += grad_bias
    through *= share.reshape(-1, 1)
    grad_x = g - through
    grad_x *= scale
    found = torch.from_numpy(grad_x.reshape(x.shape))
    return found, torch.from_numpy(grad_weight), torch.from_numpy(grad_bias)
