"""The layers against ``nn.BatchNorm`` of the same shape: a training step, and inference."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from benchmarks.alternatives import Keras, timed_alternatives
from benchmarks.timing import Run, compare
from wbn import kernels
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d

FLAT = ((100, 2), (100, 200), (256, 1024), (4096, 512))
SHAPES = (*FLAT, (32, 256, 14, 14), (64, 64, 32, 32), (16, 64, 8, 16, 16))
LAYERS = {
    2: (nn.BatchNorm1d, WeightedBatchNorm1d),
    4: (nn.BatchNorm2d, WeightedBatchNorm2d),
    5: (nn.BatchNorm3d, WeightedBatchNorm3d),
}
OTHER_INPUTS = [
    ((64, 64, 32, 32), torch.channels_last, torch.float32),
    ((256, 1024), torch.contiguous_format, torch.bfloat16),
    ((64, 64, 32, 32), torch.contiguous_format, torch.bfloat16),
]


def inputs(shape: tuple[int, ...]) -> tuple[Tensor, Tensor, Tensor]:
    """Values that need a gradient, the gradient of the output, and weights."""
    torch.manual_seed(0)
    return torch.randn(shape).requires_grad_(), torch.randn(shape), torch.rand(shape[0]) + 0.5


def step(layer: Callable[..., Tensor], x: Tensor, grad: Tensor, *weights: Tensor) -> Run:
    """Forward and backward pass; the gradients of parameters accumulate in both candidates."""

    def run() -> None:
        x.grad = None
        layer(x, *weights).backward(grad)

    return run


def without_compiled_code(step: Run) -> Run:
    """A step as it is where wbn was installed without a compiler."""

    def run() -> None:
        native, kernels.native = kernels.native, None
        step()
        kernels.native = native

    return run


def trained(shape: tuple[int, ...]) -> dict[str, Run]:
    """A training step without and with weights, and the same of what others would use."""
    x, grad, w = inputs(shape)
    plain, ours = (layer(shape[1]) for layer in LAYERS[len(shape)])
    unweighted = LAYERS[len(shape)][1](shape[1])
    runs = {
        "nn.BatchNorm": step(plain, x, grad),
        "weights": step(ours, x, grad, w),
        "no weights": step(unweighted, x, grad),
        "nn.BatchNorm again": step(plain, x, grad),  # what is found where there is nothing to find
        "formulas": without_compiled_code(step(ours, x, grad, w)),
    }
    for name, layer in timed_alternatives(shape[1]).items():
        own = x.detach(), grad  # in the layout that the alternative is made for
        if isinstance(layer, Keras):
            own = tuple(t.movedim(1, -1).contiguous().movedim(-1, 1) for t in own)
        runs[name] = step(layer, own[0].requires_grad_(), own[1], w)
    return runs


def evaluated(shape: tuple[int, ...]) -> dict[str, Run]:
    """Inference without gradients."""
    x, _, _ = inputs(shape)
    plain, ours = (layer(shape[1]).eval() for layer in LAYERS[len(shape)])

    def run(layer: nn.Module) -> Run:
        def infer() -> None:
            with torch.no_grad():
                layer(x)

        return infer

    return {"nn.BatchNorm": run(plain), "inference": run(ours)}


def compiled(shape: tuple[int, ...]) -> dict[str, Run]:
    """A training step of compiled layers."""
    torch._dynamo.reset()
    x, grad, w = inputs(shape)
    plain, ours = (torch.compile(layer(shape[1])) for layer in LAYERS[len(shape)])
    return {
        "nn.BatchNorm": step(plain, x, grad),
        "compiled": step(ours, x, grad, w),
        "eager": step(LAYERS[len(shape)][0](shape[1]), x, grad),
    }


USES = {"training": trained, "inference": evaluated, "compiled": compiled}


def laid_out(shape: tuple[int, ...], layout: torch.memory_format, dtype: torch.dtype) -> dict:
    """A training step on other inputs than contiguous single precision."""
    x, grad, w = inputs(shape)
    x, grad = (t.detach().to(dtype).contiguous(memory_format=layout) for t in (x, grad))
    plain, ours = (layer(shape[1]) for layer in LAYERS[len(shape)])
    x.requires_grad_()
    return {"nn.BatchNorm": step(plain, x, grad), "weights": step(ours, x, grad, w)}


def rows(threads: tuple[int, ...], rounds: int) -> Iterator[dict]:
    """A row for each candidate, shape, kind of use and number of threads."""
    for number in threads:
        torch.set_num_threads(number)
        for shape in SHAPES:
            for use, candidates in USES.items():
                yield from told(compare(candidates(shape), rounds), use, shape, number)
        for shape, layout, dtype in OTHER_INPUTS:
            last = "channels last" if layout == torch.channels_last else "bfloat16"
            yield from told(compare(laid_out(shape, layout, dtype), rounds), last, shape, number)


def told(found: list[dict], use: str, shape: tuple[int, ...], threads: int) -> list[dict]:
    """Rows with what they are about."""
    about = {"use": use, "shape": " x ".join(map(str, shape)), "threads": threads}
    return [about | one for one in found]
