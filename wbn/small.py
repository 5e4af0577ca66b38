r"""The mathematics of `wbn.core` for small batches of shape (N, C) on the CPU.

There a call costs more than the work that it does, and calls of NumPy the least.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

LARGEST = 2**16  # values: from there on torch's kernels are as fast


def is_small(x: Tensor) -> bool:
    """Whether x is for this module: flat, in single or double precision, and not too large."""
    return x.dim() == 2 and x.numel() <= LARGEST and x.dtype in (torch.float32, torch.float64)


def small_moments(x: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r"""Weighted mean and variance of each channel, as in `wbn.eager.moments_by_torch`.

    Examples
    --------
    >>> import numpy as np
    >>> from wbn.small import small_moments
    >>> small_moments(np.array([[0.0], [1.0]]), np.array([0.25, 0.75]))
    (array([0.75]), array([0.1875]))
    """
    about = p.dot(x)
    centered = x - about
    shift = p.dot(centered)
    centered *= centered
    var = p.dot(centered) - shift * shift
    return about + shift, np.maximum(var, 0)  # rounding may leave less


def small_normalize(
    x: np.ndarray,
    weight: np.ndarray | None,
    bias: np.ndarray | None,
    mean: np.ndarray,
    var: np.ndarray,
    eps: float,
) -> np.ndarray:
    r"""Normalized values :math:`\gamma (x - m) / \sqrt{v + \varepsilon} + b`.

    Examples
    --------
    >>> import numpy as np
    >>> from wbn.small import small_normalize
    >>> x, mean, var = np.array([[0.0], [1.0]]), np.array([0.5]), np.array([0.25])
    >>> small_normalize(x, None, None, mean, var, 0.0).ravel()
    array([-1.,  1.])
    """
    scale = 1 / np.sqrt(var + eps)
    if weight is not None:
        scale *= weight
    y = x - mean
    y *= scale
    if bias is not None:
        y += bias
    return y


def small_gradients(
    grad: np.ndarray,
    x: np.ndarray,
    weight: np.ndarray | float,
    p: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    corrected: float,
    eps: float,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradients for x, weight and bias, as in `wbn.core.normalize_backward`.

    Examples
    --------
    >>> import numpy as np
    >>> from wbn.small import small_gradients
    >>> x, grad = np.array([[0.0], [1.0], [5.0]]), np.array([[1.0], [0.0], [0.0]])
    >>> p, mean, var = np.full(3, 1 / 3), np.array([2.0]), np.array([14 / 3])
    >>> small_gradients(grad, x, 1.0, p, mean, var, 1.0, 0.0)[0].ravel().round(4)
    array([ 0.1763, -0.2204,  0.0441])
    """
    through = x - mean
    inverse_std = 1 / np.sqrt(var + eps)
    grad_weight, grad_bias = (grad * through).sum(0) * inverse_std, grad.sum(0)
    through *= grad_weight * inverse_std * corrected
    through += grad_bias
    through *= p[:, None]
    grad_x = grad - through
    grad_x *= inverse_std * weight
    return grad_x, grad_weight, grad_bias
