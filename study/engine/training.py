"""Train one protocol for several seeds at once, and evaluate it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor
from torch.func import grad_and_value, vmap
from tqdm import tqdm

from study.engine.columns import KEYS
from study.engine.convolution import ConvolutionalNetwork
from study.engine.inference import (
    InferenceStatistics,
    evaluate,
    everything,
    logits_among_training_images,
    logits_in_batches,
)
from study.engine.network import Network, ReplicaNetwork
from study.engine.protocol import IN_BATCHES, PROBES, Protocol
from study.engine.seed_block import Block, batch_orders, cut_batches
from study.engine.threshold import ValidatedThreshold, diagnose, minority_signal
from wbn.loss import weighted_cross_entropy, weighted_mean

SEED_BLOCK = 10  # replicas that train together
THREADS = 1  # sweeps run units side by side; fixed threads and blocks make bits reproducible
NETWORKS = {"mlp": Network, "conv": ConvolutionalNetwork}


def squared_error(
    logits: Tensor, labels: Tensor, sample_weight: Tensor | None, normalizer: float | str
) -> Tensor:
    r"""Weighted mean of :math:`\sum_k (f_k - t_k)^2` over a mini-batch, with one-hot t.

    Examples
    --------
    >>> f, w = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([1.0, 3.0])
    >>> squared_error(f, torch.tensor([0, 1]), w, "batch")
    tensor(1.5000)
    """
    one_hot = labels[..., None] == torch.arange(logits.shape[-1])
    return weighted_mean(
        (logits - one_hot.to(logits.dtype)).square().sum(-1), sample_weight, normalizer
    )


LOSSES = {"cross_entropy": weighted_cross_entropy, "squared_error": squared_error}


def run(protocol: Protocol, seeds: Iterable[int], progress: bool = True) -> pd.DataFrame:
    """Train `protocol` for each seed and evaluate it after each of its `eval_epochs`.

    Each seed has its own generators for the split, the initialization and the order of
    mini-batches. All methods share them. Seeds train together in fixed blocks, so that the bits of
    a block do not depend on the other blocks.

    Parameters
    ----------
    protocol
        Protocol to run.
    seeds
        Whole numbers, not negative.
    progress
        Whether to show a progress bar over epochs.

    Returns
    -------
    pandas.DataFrame
        A row for each seed, evaluated epoch and kind of inference. Accuracies are fractions.
        `average_precision` is of the minority class. With more than two classes there are
        `calibration_error` and `nll` (in nats) of the predicted probabilities. `train_loss` is the
        mean over the epoch's mini-batches.

    Examples
    --------
    >>> small = Protocol.paper("i", "wlf_wbn", hidden=8, epochs=1)
    >>> run(small, seeds=[0], progress=False)[["seed", "epoch"]].values.tolist()
    [[0, 1]]
    """
    protocol = protocol.resolved()
    cut = blocks(seeds)
    total = len(cut) * protocol.epochs
    name = f"({protocol.experiment}) {protocol.method}"
    shown = {} if progress else {"disable": True}  # if shown, TQDM_DISABLE may still hide it
    with fixed_threads(), tqdm(total=total, desc=name, unit="epoch", **shown) as bar:
        return pd.concat([_run_block(protocol, block, bar) for block in cut], ignore_index=True)


def blocks(seeds: Iterable[int]) -> list[list[int]]:
    """Seeds in increasing order, cut where ``seed // SEED_BLOCK`` changes.

    Examples
    --------
    >>> blocks([12, 3, 4])
    [[3, 4], [12]]
    """
    ordered = sorted(set(seeds))
    if not ordered or ordered[0] < 0:
        raise ValueError(f"seeds are {ordered}; give at least one, none of them negative")
    return [list(block) for _, block in itertools.groupby(ordered, lambda s: s // SEED_BLOCK)]


@contextmanager
def fixed_threads() -> Iterator[None]:
    """Use `THREADS` threads inside: how work is divided changes the last bits of sums."""
    before = torch.get_num_threads()
    torch.set_num_threads(THREADS)
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Trainer:
    """Networks of several seeds during their training.

    Parameters
    ----------
    protocol
        Resolved.
    seeds
        Seeds, with one replica each.
    """

    def __init__(self, protocol: Protocol, seeds: list[int]) -> None:
        self.protocol, self.seeds = protocol, seeds
        self.data = data = Block(protocol, seeds)
        network = NETWORKS[protocol.network]
        self.network: ReplicaNetwork = network(protocol, seeds, data.data_set.shape, data.classes)
        if protocol.statistics == "class_averages" and protocol.hidden_norm == "weighted":
            weight = data.class_weight.to(data.dtype)
            share = data.class_weight.double() * data.counts.double()
            self.network.layers[0].class_weight = weight
            self.network.layers[0].share = share / share.sum()
        if protocol.output_shift_start:
            shift = self.network.layers[-1].bias[..., 0, :]
            shift[:, data.minority] = protocol.output_shift_start / 2
            shift[:, 1 - data.minority] = -protocol.output_shift_start / 2
        self.optimizer = self._optimizer()
        self.statistics = InferenceStatistics(protocol, self.network)
        self.orders = batch_orders(protocol, seeds, data.labels)
        loss = partial(LOSSES[protocol.loss], normalizer=data.normalizer)
        self.loss_gradient = vmap(grad_and_value(loss), (0, 0, None if data.plain else 0))
        self.epoch = 0

    def _optimizer(self) -> torch.optim.Optimizer:
        p, groups = self.protocol, self._parameter_groups()
        if p.optimizer == "sgd":
            return torch.optim.SGD(groups, lr=p.learning_rate, fused=True)
        return torch.optim.Adam(
            groups, lr=p.learning_rate, betas=p.adam_betas, eps=p.adam_eps, fused=True
        )

    def _parameter_groups(self) -> list[dict]:
        """All parameters; the output layer's shift is a group if it has its own learning rate."""
        rate, everything = self.protocol.output_shift_rate, self.network.parameters
        if rate == 1:
            return [{"params": everything}]
        shift = self.network.layers[-1].bias
        rest = [p for p in everything if p is not shift]
        return [{"params": rest}, {"params": [shift], "lr": rate * self.protocol.learning_rate}]

    def step(self, index: Tensor) -> Tensor:
        """Take a step of each replica on the samples at `index` (S, n), and return the losses."""
        x, y, w = self.data.batch(index)
        logits = self.network.forward(x, w) + self.data.logit_offset
        grad, loss = self.loss_gradient(logits, y, None if self.data.plain else w.squeeze(-1))
        self.network.backward(grad)
        self.optimizer.step()
        self.statistics.add(self.network.statistics())
        return loss

    def train_epoch(self) -> Tensor:
        """Train for an epoch, and return the mean loss of each replica, shape (S,)."""
        self.batches = cut_batches(next(self.orders), self.protocol)
        self.statistics.start_epoch()
        self.epoch += 1
        return sum(self.step(index) for index in self.batches) / len(self.batches)

    def logits(self, inference: str) -> Tensor:
        """Logits (S, T, K) of the evaluated set, with one kind of `Protocol.inference`."""
        data, network = self.data, self.network
        if inference == "validated_threshold":
            logits = self.logits("batch_average")
            logits[..., data.minority] -= self.validated_threshold.at(self.epoch)[:, None]
            return logits
        if inference in IN_BATCHES:
            return logits_in_batches(network, data, inference)
        if inference in PROBES:
            heavy = inference == "minority_weight"
            weight = data.weights.max() if heavy else data.weights.min()
            return logits_among_training_images(network, data, self.protocol.batch_size, weight)
        statistics = self.statistics.get(inference, data, self.batches)
        return network.infer(data.eval_images, statistics)

    @cached_property
    def validated_threshold(self) -> ValidatedThreshold:
        """Networks for validation, made when they are first needed."""
        return ValidatedThreshold(self.protocol, self.seeds, Trainer)

    def evaluate(self, inference: str) -> pd.DataFrame:
        """A row of scores for each seed, with one kind of `Protocol.inference`."""
        logits = self.logits(inference)
        scores = evaluate(logits, self.data)
        if self.protocol.diagnosis == "threshold":
            scores |= self._diagnose(logits, inference)
        return pd.DataFrame({"seed": self.seeds, **scores})

    def _diagnose(self, logits: Tensor, inference: str) -> dict[str, np.ndarray]:
        data, network = self.data, self.network
        images, _, _ = data.batch(everything(data))
        trained = network.infer(images, self.statistics.get(inference, data, self.batches))
        output = network.layers[-1]
        return diagnose(logits, trained, data) | {
            "shift": minority_signal(output.bias[:, 0], data).double().numpy(),
            "gain": output.gain().double().numpy(),
        }


def _run_block(protocol: Protocol, seeds: list[int], bar: tqdm) -> pd.DataFrame:
    trainer = Trainer(protocol, seeds)
    tables = []
    for epoch in range(1, protocol.epochs + 1):
        losses = trainer.train_epoch().double().numpy()
        if epoch in protocol.eval_epochs:
            tables += [
                trainer.evaluate(kind).assign(inference=kind, epoch=epoch, train_loss=losses)
                for kind in protocol.inference
            ]
        bar.update()
    table = pd.concat(tables).assign(
        protocol=protocol.hash,
        experiment=protocol.experiment,
        method=protocol.method,
        evaluated_on=protocol.evaluate_on,
    )
    scores = [name for name in table if name not in KEYS]
    return table[[*KEYS, *scores]].sort_values(["inference", "seed", "epoch"], ignore_index=True)
