"""Time per replica and step of the training engine, beside its floor and two textbook loops.

The floor is what any implementation must do: the two large matrix products of a step and one
fused Adam update of the same sizes.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import cycle

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor

from benchmarks.models import peak
from benchmarks.timing import Run, compare
from study.engine import Protocol, load_split
from study.engine.fetch import data_folder
from study.engine.seed_block import cut_batches
from study.engine.training import Trainer
from wbn import WeightedBatchNorm1d, inverse_frequency, sample_weights, weighted_cross_entropy

REFERENCE = Protocol.paper("i", "wlf_wbn").resolved()
REPLICAS = (1, 2, 4, 8, 16, 32, 64)
GROWN = {"batch_size": (50, 100, 200, 400), "hidden": (100, 200, 400, 800)}


def floor(replicas: int, protocol: Protocol) -> Run:
    """Two batched products and a fused Adam update."""
    x = torch.rand(replicas, protocol.batch_size, 784)
    grad = torch.rand(replicas, protocol.batch_size, protocol.hidden)
    linear = torch.rand(replicas, protocol.hidden, 784)
    linear.grad = torch.empty_like(linear)
    optimizer = torch.optim.Adam([linear], fused=True)

    def step() -> None:
        torch.bmm(x, linear.mT)
        torch.bmm(grad.mT, x, out=linear.grad)
        optimizer.step()

    return step


def engine(replicas: int, protocol: Protocol) -> Run:
    """The package's own training."""
    trainer = Trainer(protocol, list(range(replicas)))
    batches = cycle(cut_batches(next(trainer.orders), protocol)[:-1])
    return lambda: trainer.step(next(batches))


def textbook(batches: Iterator[tuple[Tensor, Tensor]]) -> Run:
    """One network, autograd, torch's default Adam."""
    model = nn.Sequential(
        nn.Linear(784, 200, bias=False),
        WeightedBatchNorm1d(200, eps=1e-8, correction="frequency"),
        nn.ReLU(),
        nn.Linear(200, 2, bias=False),
        WeightedBatchNorm1d(2, eps=1e-8, correction="frequency"),
    )
    optimizer = torch.optim.Adam(model.parameters())
    class_weight = inverse_frequency([5923, 45]).float()

    def step() -> None:
        x, y = next(batches)
        with sample_weights(class_weight[y]):
            loss = weighted_cross_entropy(model(x.flatten(1)), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def indexed() -> Iterator[tuple[Tensor, Tensor]]:
    """Batches by indexing a tensor, shuffled, without end."""
    data = Trainer(REFERENCE, [0]).data
    images, labels = data.pool[data.rows[0]], data.labels[0]
    while True:
        for index in torch.randperm(len(labels)).split(100)[:-1]:
            yield images[index], labels[index]


def loaded() -> Iterator[tuple[Tensor, Tensor]]:
    """Batches of torchvision's data set, its ToTensor and a DataLoader, without end."""
    images = MNIST(data_folder(), train=True, transform=ToTensor())
    subset = Subset(images, load_split("i", 0).train_index.tolist())
    loader = DataLoader(subset, batch_size=100, shuffle=True, drop_last=True)
    while True:
        yield from loader


def rows(threads: tuple[int, ...], rounds: int) -> Iterator[dict]:
    """Time per replica-step of each candidate, and how it grows."""
    for number in threads:
        torch.set_num_threads(number)
        for replicas in REPLICAS:
            runs = {"floor": floor(replicas, REFERENCE), "engine": engine(replicas, REFERENCE)}
            if replicas == 1:
                runs |= {"textbook, indexing": textbook(indexed())}
                runs |= {"textbook, DataLoader": textbook(loaded())}
            yield from _measured(runs, "replicas", replicas, replicas, number, rounds)
    torch.set_num_threads(threads[0])
    for field, sizes in GROWN.items():
        for size in sizes:
            protocol = replace(REFERENCE, **{field: size})
            runs = {"floor": floor(16, protocol), "engine": engine(16, protocol)}
            yield from _measured(runs, field, size, 16, threads[0], rounds)


def _measured(
    runs: dict[str, Run], varied: str, size: int, replicas: int, threads: int, rounds: int
) -> Iterator[dict]:
    about = {"varied": varied, "size": size, "replicas": replicas, "threads": threads}
    for found in compare(runs, rounds, 0.02):
        each = found.pop("microseconds") / (
            replicas if found["candidate"] in ("floor", "engine") else 1
        )
        yield about | found | {"microseconds_per_replica": round(each, 2)}


def memory() -> Iterator[dict]:
    """Largest memory of an engine and its first step, in MB: of so many replicas, or of 16."""
    engine(1, REFERENCE)()
    engines = [("replicas", replicas, replicas, REFERENCE) for replicas in REPLICAS]
    for field, sizes in GROWN.items():
        engines += [(field, size, 16, replace(REFERENCE, **{field: size})) for size in sizes]
    for varied, size, replicas, protocol in engines:
        megabytes = peak(lambda: engine(replicas, protocol)())  # noqa: B023
        yield {"varied": varied, "size": size, "megabytes": round(megabytes, 1)}
