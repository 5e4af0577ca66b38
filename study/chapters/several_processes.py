"""The paper's network trained on several processes, which share each mini-batch, and on one.

    torchrun --nproc-per-node 2 -m study.chapters.several_processes

Weighted + WBN on experiment (i), with parts of different sizes: process p of P has p + 1 shares of
each mini-batch of 100, so that the first process of many is often without an image of the minority.
"""

from __future__ import annotations

import time
from statistics import median

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from study.engine.data import load_split
from wbn.context import sample_weights
from wbn.layers import WeightedBatchNorm1d
from wbn.loss import weighted_cross_entropy
from wbn.weights import inverse_frequency, per_sample

STEPS, BATCH = 20, 100


def network() -> nn.Sequential:
    """784-200-2 with weighted batch normalization on the hidden and the output layer."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Flatten(),
        nn.Linear(784, 200, bias=False),
        WeightedBatchNorm1d(200, eps=1e-8, correction="frequency"),
        nn.ReLU(),
        nn.Linear(200, 2, bias=False),
        WeightedBatchNorm1d(2, eps=1e-8, correction="frequency"),
    )
    return model.double()


def batches(steps: int) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Images, labels and weights of the first mini-batches of an epoch."""
    split = load_split("i", seed=0)
    images, _ = split.data_set.load(True)
    x = split.data_set.scaled(images[split.train_index], torch.float64)
    w = per_sample(inverse_frequency(split.counts), split.train_labels)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    places = order[: steps * BATCH].split(BATCH)
    return [(x[b], split.train_labels[b], w[b]) for b in places]


def part(tensor: Tensor, rank: int, processes: int) -> Tensor:
    """What a process has of a mini-batch: p + 1 shares for process p, the rest for the last."""
    share = len(tensor) // (processes * (processes + 1) // 2)
    sizes = [share * (p + 1) for p in range(processes - 1)]
    return tensor.split([*sizes, len(tensor) - sum(sizes)])[rank]


def train(
    model: nn.Module, data: list[tuple[Tensor, Tensor, Tensor]], process_group: str | None
) -> float:
    """Train on the batches with Adam, and return the milliseconds of the median step."""
    optimizer, times = torch.optim.Adam(model.parameters()), []
    for x, labels, w in data:
        start = time.perf_counter()
        optimizer.zero_grad()
        with sample_weights(w):
            loss = weighted_cross_entropy(model(x), labels, process_group=process_group)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return 1000 * median(times)


def largest_difference(model: nn.Module, other: nn.Module) -> float:
    """Of all parameters and running statistics."""
    pairs = zip(model.state_dict().values(), other.state_dict().values(), strict=True)
    return max((a - b).abs().max().item() for a, b in pairs if a.is_floating_point())


def demo(steps: int = STEPS) -> float:
    """Train on all processes and alone, tell what came out, and return the largest difference."""
    rank, processes = dist.get_rank(), dist.get_world_size()
    data = batches(steps)
    alone, shared, apart = network(), network(), network()
    for layer in shared:
        if isinstance(layer, WeightedBatchNorm1d):
            layer.process_group = "world"
    own = [tuple(part(t, rank, processes) for t in batch) for batch in data]
    times = [train(DistributedDataParallel(shared), own, "world")]
    times.append(train(DistributedDataParallel(apart), own, "world"))
    train(alone, data, None)
    difference = largest_difference(shared, alone)
    if rank == 0:
        sizes = [len(part(data[0][1], p, processes)) for p in range(processes)]
        channels = [m.num_features for m in shared if isinstance(m, WeightedBatchNorm1d)]
        numbers = sum(2 * c + 4 + 2 * c for c in channels)
        moved = largest_difference(network(), alone)
        print(
            f"{steps} steps of {processes} processes with {sizes} images of each mini-batch\n"
            f"largest difference to one process: {difference:.1e} (training moved it {moved:.1e})\n"
            f"without sharing the moments: {largest_difference(apart, alone):.1e}\n"
            f"numbers that a process sends a step for batch norm: {numbers}\n"
            f"a step: {times[0]:.1f} ms, without sharing the moments {times[1]:.1f} ms\n"
            f"{'matches' if difference < 1e-6 else 'DOES NOT MATCH'} one process"
        )
    return difference


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    difference = demo()
    dist.destroy_process_group()
    raise SystemExit(difference >= 1e-6)
