"""Weighted batch norm against ``nn.BatchNorm``: forward and backward, interleaved.

Run ``python benchmarks/layers.py``; it takes under a minute. Times are the
shortest of several rounds, which take turns, so that other load on the machine matters least.
"""

import time
from collections.abc import Callable

import torch
from torch import Tensor, nn

from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d

ROUNDS, SECONDS_PER_ROUND = 15, 0.05
LAYERS = {
    2: (nn.BatchNorm1d, WeightedBatchNorm1d),
    4: (nn.BatchNorm2d, WeightedBatchNorm2d),
    5: (nn.BatchNorm3d, WeightedBatchNorm3d),
}
CASES = [
    ((100, 200), torch.contiguous_format),
    ((1024, 512), torch.contiguous_format),
    ((32, 256, 14, 14), torch.contiguous_format),
    ((32, 256, 14, 14), torch.channels_last),
    ((64, 64, 56, 56), torch.contiguous_format),
    ((8, 16, 8, 28, 28), torch.contiguous_format),
]


def step(layer: nn.Module, x: Tensor, grad: Tensor, *sample_weight: Tensor) -> Callable[[], None]:
    def run() -> None:
        x.grad = None
        layer(x, *sample_weight).backward(grad)

    return run


def seconds(run: Callable[[], None], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        run()
    return (time.perf_counter() - start) / repeats


def compare(shape: tuple[int, ...], memory_format: torch.memory_format) -> list[float]:
    """Milliseconds of torch, and the ratios of our layer with weights and without."""
    x, grad = (torch.randn(shape).to(memory_format=memory_format) for _ in range(2))
    x.requires_grad_()
    w = torch.rand(shape[0]) + 0.5
    plain, weighted = (layer(shape[1]) for layer in LAYERS[len(shape)])
    runs = [step(plain, x, grad), step(weighted, x, grad, w), step(weighted, x, grad)]
    repeats = [max(1, int(SECONDS_PER_ROUND / seconds(run, 3))) for run in runs]
    rounds = [[seconds(*run) for run in zip(runs, repeats, strict=True)] for _ in range(ROUNDS)]
    plain_time, *ours = (min(times) for times in zip(*rounds, strict=True))
    return [1e3 * plain_time, *(time / plain_time for time in ours)]


def main() -> None:
    torch.manual_seed(0)
    print(f"torch {torch.__version__}, {torch.get_num_threads()} threads")
    print(f"{'shape':>20} {'layout':>14} {'nn.BatchNorm':>13} {'weighted':>9} {'no weights':>11}")
    for shape, memory_format in CASES:
        layout = str(memory_format).removeprefix("torch.").removesuffix("_format")
        name = " x ".join(map(str, shape))
        torch_ms, weighted, unweighted = compare(shape, memory_format)
        print(
            f"{name:>20} {layout:>14} {torch_ms:>10.3f} ms {weighted:>8.2f}x {unweighted:>10.2f}x"
        )


if __name__ == "__main__":
    main()
