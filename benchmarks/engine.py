"""Time per replica and step of the training engine, beside its floor and two textbook loops.

The floor is what any implementation must do: the two large matrix products of a step and one
fused Adam update of the same sizes. All candidates run in turn, in rounds, so that a slow
moment of the machine hits them alike; what is reported is the median over rounds, and ratios
are medians of ratios within a round.
"""

import argparse
import resource
import statistics
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pandas as pd
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Subset
from torchvision.datasets import MNIST
from torchvision.transforms import ToTensor

from wbn import WeightedBatchNorm1d, inverse_frequency, sample_weights, weighted_cross_entropy
from wbn.experiments import Protocol, load_split
from wbn.experiments.block import cut_batches
from wbn.experiments.fetch import data_folder
from wbn.experiments.training import Trainer

REPLICAS, STEPS = 16, 40
PROTOCOL = Protocol.paper("i", "wlf_wbn").resolved()


class Floor:
    """Two batched products and a fused Adam update."""

    def __init__(self) -> None:
        self.x = torch.rand(REPLICAS, 100, 784)
        self.grad = torch.rand(REPLICAS, 100, 200)
        self.linear = torch.rand(REPLICAS, 200, 784)
        self.linear.grad = torch.empty_like(self.linear)
        self.optimizer = torch.optim.Adam([self.linear], fused=True)

    def steps(self, number: int) -> int:
        """Run, and return how many replica-steps that was."""
        for _ in range(number):
            torch.bmm(self.x, self.linear.mT)
            torch.bmm(self.grad.mT, self.x, out=self.linear.grad)
            self.optimizer.step()
        return REPLICAS * number


class Engine:
    """The package's own training."""

    def __init__(self) -> None:
        self.trainer = Trainer(PROTOCOL, list(range(REPLICAS)))
        self.batches = cut_batches(next(self.trainer.orders), PROTOCOL)[:-1]

    def steps(self, number: int) -> int:
        """Run, and return how many replica-steps that was."""
        for index in self.batches[:number]:
            self.trainer.step(index)
        return REPLICAS * number


class Textbook:
    """One network, autograd, torch's default Adam; batches by indexing a tensor."""

    def __init__(self) -> None:
        self.data = Trainer(PROTOCOL, [0]).data
        self.model = nn.Sequential(
            nn.Linear(784, 200, bias=False),
            WeightedBatchNorm1d(200, eps=1e-8, correction="frequency"),
            nn.ReLU(),
            nn.Linear(200, 2, bias=False),
            WeightedBatchNorm1d(2, eps=1e-8, correction="frequency"),
        )
        self.optimizer = torch.optim.Adam(self.model.parameters())
        self.class_weight = inverse_frequency([5923, 45]).float()

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Images and labels of one epoch, shuffled."""
        images, labels = self.data.pool[self.data.rows[0]], self.data.labels[0]
        for index in torch.randperm(len(labels)).split(100):
            yield images[index], labels[index]

    def steps(self, number: int) -> int:
        """Run, and return how many replica-steps that was."""
        for x, y in islice(self.batches(), number):
            w = self.class_weight[y]
            with sample_weights(w):
                loss = weighted_cross_entropy(self.model(x.flatten(1)), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return number


class TextbookLoader(Textbook):
    """The same with torchvision's data set, its ToTensor and a DataLoader."""

    def __init__(self) -> None:
        super().__init__()
        images = MNIST(data_folder(), train=True, transform=ToTensor())
        subset = Subset(images, load_split("i", 0).train_index.tolist())
        self.loader = DataLoader(subset, batch_size=100, shuffle=True)

    def batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Images and labels of one epoch, shuffled."""
        return iter(self.loader)


def measure(rounds: int) -> pd.DataFrame:
    """Milliseconds per replica-step and ratios to the floor."""
    candidates = {
        "floor": Floor(),
        "engine": Engine(),
        "textbook, indexing": Textbook(),
        "textbook, DataLoader": TextbookLoader(),
    }
    times = {name: [] for name in candidates}
    for round_ in range(rounds + 1):
        for name, candidate in candidates.items():
            start = time.perf_counter()
            done = candidate.steps(STEPS)
            if round_:
                times[name].append(1000 * (time.perf_counter() - start) / done)
    return pd.DataFrame(
        {
            "ms per replica-step": statistics.median(t),
            "ratio to the floor": statistics.median(
                a / b for a, b in zip(t, times["floor"], strict=True)
            ),
        }
        for t in times.values()
    ).set_index(pd.Index(times, name="candidate"))


def evaluation_share() -> float:
    """Share of the time that evaluation takes when epochs 1 to 5 and each fifth are evaluated."""
    trainer = Trainer(PROTOCOL, list(range(10)))
    trainer.train_epoch()
    start = time.perf_counter()
    trainer.train_epoch()
    trained = time.perf_counter()
    trainer.evaluate("batch_average")
    evaluated = time.perf_counter() - trained
    return 8 * evaluated / (8 * evaluated + 20 * (trained - start))


def main() -> None:
    """Print the table, and save it when asked to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    table = measure(options.rounds).round(3)
    share = evaluation_share()
    told = f"{REPLICAS} replicas, {options.threads} threads"
    print(f"{told}, median of {options.rounds} interleaved rounds")
    print(table.to_string())
    print(f"evaluation takes {share:.0%} of a run of 20 epochs of which 8 are evaluated")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024**2
    print(f"peak resident set: {peak:.2f} GB")
    if options.save:
        name = f"engine_benchmark_threads_{options.threads}.csv"
        table.to_csv(Path(__file__).parents[1] / "results" / name)


if __name__ == "__main__":
    main()
