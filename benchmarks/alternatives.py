"""What people would use instead of `wbn`, behind one interface.

An alternative is called with an input (N, C, positions) and weights (N,) or (N, positions), and
has running statistics. Where it knows masks only, it is given which weights are not zero.
"""

import os
from collections.abc import Callable
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import wbn


class Ours(wbn.WeightedBatchNorm1d):
    """The layer of this package."""

    def __init__(self, channels: int, momentum: float = 0.1, shared: bool = False) -> None:
        group = "world" if shared else None
        super().__init__(channels, momentum=momentum, process_group=group)

    def _check_input_dim(self, input: Tensor) -> None:
        """All of them: time and behavior are the same for 1, 2 and 3 dimensions."""

    def strided(self, x: Tensor, mask: Tensor) -> Tensor:
        """On every second position of x, with the mask of all positions."""
        with wbn.sample_weights(mask, resize="nearest"):
            return self(x[:, :, ::2])


class Transcription(nn.Module):
    """The formulas as a public snippet would write them: autograd, and no checks."""

    def __init__(self, channels: int, momentum: float = 0.1, shared: bool = False) -> None:
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.ones(channels)),
            nn.Parameter(torch.zeros(channels)),
        )
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))
        self.momentum = momentum

    def forward(self, x: Tensor, w: Tensor) -> Tensor:
        """Normalize with the moments of the batch."""
        dims, shape = (0, *range(2, x.dim())), (1, -1, *(1 for _ in x.shape[2:]))
        w = w.view(len(x), 1, *(w.shape[1:] or (1,) * (x.dim() - 2))).expand_as(x[:, :1])
        total = w.sum()
        mean = (w * x).sum(dims) / total
        centered = x - mean.view(shape)
        var = (w * centered.square()).sum(dims) / total
        with torch.no_grad():
            n = x.numel() / x.shape[1]
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_((var * n / (n - 1)).to(self.running_var.dtype), self.momentum)
        y = centered / (var.view(shape) + 1e-5).sqrt()
        return y * self.weight.view(shape) + self.bias.view(shape)

    def strided(self, x: Tensor, mask: Tensor) -> Tensor:
        """On every second position of x, with the mask of all positions."""
        return self(x[:, :, ::2], mask)


class Keras:
    """BatchNormalization of Keras 3 with torch as its backend; masks ask for channels last."""

    def __init__(self, channels: int, momentum: float = 0.1, shared: bool = False) -> None:
        os.environ.setdefault("KERAS_BACKEND", "torch")
        import keras

        options = {"momentum": 1 - momentum, "epsilon": 1e-5, "synchronized": shared}
        self.layer, self.keras = keras.layers.BatchNormalization(**options), keras

    def __call__(self, x: Tensor, w: Tensor) -> Tensor:
        """Normalize with the moments of what is not masked."""
        mask = (w != 0).view(*w.shape, *(1,) * (x.dim() - 1 - w.dim()))
        mask = mask.expand(len(x), *x.shape[2:])
        return self.layer(x.movedim(1, -1), training=True, mask=mask).movedim(-1, 1)

    @property
    def running_mean(self) -> Tensor:
        """For inference."""
        return self.layer.moving_mean.value

    @property
    def running_var(self) -> Tensor:
        """For inference."""
        return self.layer.moving_variance.value

    def strided(self, x: Tensor, mask: Tensor) -> Tensor:
        """On every second position of x, by a convolution that passes the mask on if it can."""
        pick = self.keras.layers.Conv1D(
            x.shape[1], 1, strides=2, use_bias=False, kernel_initializer="identity"
        )
        x = x.movedim(1, -1).contiguous()
        x._keras_mask = mask
        return self.layer(pick(x), training=True)


ALTERNATIVES: dict[str, Callable] = {
    "wbn": Ours,
    "Keras 3 (mask)": Keras,
    "transcription": Transcription,
}


def installed() -> dict[str, Callable]:
    """Those that can be run here."""
    return {n: a for n, a in ALTERNATIVES.items() if a is not Keras or find_spec("keras")}


def timed_alternatives(channels: int) -> dict[str, Callable]:
    """Those that are timed beside our layer."""
    return {name: make(channels) for name, make in installed().items() if make is not Ours}


def plain(x: Tensor) -> Tensor:
    """Batch norm of torch, without parameters."""
    return F.batch_norm(x, None, None, training=True)
