"""How networks are evaluated: inference statistics, batches of test images, probes and scores."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from study.engine.data import stream
from study.engine.network import ReplicaNetwork, Statistics
from study.engine.protocol import BY_LAYER, MIXED, MOVING, OWN_AVERAGES, Protocol
from study.engine.seed_block import Block
from wbn.weights import per_sample

BINS = 15  # of the calibration error


class InferenceStatistics:
    """Mean and variance of each layer for each kind of `Protocol.inference`."""

    def __init__(self, protocol: Protocol, network: ReplicaNetwork) -> None:
        self.network = network
        # Such layers may normalize a batch with other moments than its own.
        self.variant = protocol.statistics != "batch"
        self.wanted = set(protocol.inference)
        momenta = {"moving_average": protocol.momentum} | MOVING
        self.momenta = {kind: momenta[kind] for kind in momenta if kind in self.wanted}
        self.moving: dict[str, Statistics] = {}
        self.known: dict[str, Statistics] = {}  # computed since the last step

    def start_epoch(self) -> None:
        """Forget the batches of the previous epoch."""
        self.batches = []

    def add(self, statistics: Statistics) -> None:
        """Take in the statistics of a mini-batch during training."""
        self.known = {}
        if "last_epoch" in self.wanted:
            self.batches.append(statistics)
        for kind, momentum in self.momenta.items():
            moving = self.moving.setdefault(kind, never_updated(statistics))
            for running, batch in zip(moving, statistics, strict=True):
                if running is not None:
                    for a, b in zip(running, batch, strict=True):
                        a.lerp_(b, momentum)

    def get(self, inference: str, data: Block, batches: list[Tensor]) -> Statistics:
        """Mean and variance of each layer and replica, for one kind of inference."""
        if inference not in self.known:
            self.known[inference] = self._compute(inference, data, batches)
        return self.known[inference]

    def _compute(self, inference: str, data: Block, batches: list[Tensor]) -> Statistics:
        if inference in self.momenta:
            return self.moving[inference]
        if inference == "never_updated":
            return never_updated(self.network.statistics())
        if inference == "running_sums":
            return self.network.running()
        if inference == "last_epoch":
            return _average(self.batches)
        if inference == "evaluation_set":
            return self._pass(data.eval_images, None)
        if inference in BY_LAYER:
            return self._by_layer(inference, data, batches)
        if inference in MIXED:
            return self._mixed(inference, data, batches)
        if inference in OWN_AVERAGES:
            whole = inference == "class_averages_pooled"
            hidden = self.network.running()[:1]
            return self._behind(hidden, data, [everything(data)] if whole else batches)
        if inference == "pooled":
            batches = [everything(data)]
        samples = (data.batch(index) for index in batches)
        averages = _average([self._pass(x, w) for x, _, w in samples])
        if inference == "pooled" and self.variant:
            return self._behind(averages[:1], data, batches)
        return averages

    def _by_layer(self, inference: str, data: Block, batches: list[Tensor]) -> Statistics:
        """Statistics of one kind for the hidden layer and of another kind for the output layer."""
        average, pooled = (self.get(kind, data, batches) for kind in ("batch_average", "pooled"))
        if inference == "pooled_hidden":
            return [pooled[0], average[1]]
        if inference == "pooled_output":
            return self._behind(average[:1], data, [everything(data)])
        return self._behind(pooled[:1], data, batches)

    def _mixed(self, inference: str, data: Block, batches: list[Tensor]) -> Statistics:
        """Some moments from the test set as one batch, the others averages over mini-batches."""
        chosen = inference.removeprefix("test_").split("_")
        train, test = (self.get(k, data, batches) for k in ("batch_average", "evaluation_set"))
        hidden = _chosen(("hm" in chosen, "hv" in chosen), test[0], train[0])
        behind = self.network.output_statistics(data.eval_images, None, [hidden])
        return [hidden, _chosen(("om" in chosen, "ov" in chosen), behind[0], train[1])]

    def _behind(self, hidden: Statistics, data: Block, batches: list[Tensor]) -> Statistics:
        """The given statistics of the hidden layer, and averages of the output layer behind it."""
        samples = (data.batch(index) for index in batches)
        outputs = [self.network.output_statistics(x, w, hidden) for x, _, w in samples]
        return [*hidden, *_average(outputs)]

    @torch.no_grad()
    def _pass(self, x: Tensor, w: Tensor | None) -> Statistics:
        self.network.forward(x, w)
        return self.network.statistics()


def _chosen(
    which: tuple[bool, bool], yes: tuple[Tensor, Tensor], no: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Mean and variance: each from `yes` where `which` is true, and otherwise from `no`."""
    return tuple(a if chosen else b for chosen, a, b in zip(which, yes, no, strict=True))


def never_updated(statistics: Statistics) -> Statistics:
    """Mean 0 and variance 1 in each normalized layer, the initial values of running averages."""
    return [
        layer and (torch.zeros_like(layer[0]), torch.ones_like(layer[1])) for layer in statistics
    ]


def everything(data: Block) -> Tensor:
    """Places of the whole training set of each seed, as one mini-batch (S, N)."""
    return torch.arange(data.rows.shape[1]).expand_as(data.rows)


def _average(batches: list[Statistics]) -> Statistics:
    # Summed in the precision of the run, one batch after the other: stored bits depend on it.
    # `wbn.population` sums in double precision.
    layers = zip(*batches, strict=True)
    return [
        None if layer[0] is None else tuple(sum(m) / len(layer) for m in zip(*layer, strict=True))
        for layer in layers
    ]


@torch.no_grad()
def logits_in_batches(network: ReplicaNetwork, data: Block, inference: str) -> Tensor:
    """Logits of the evaluated images, where each batch is normalized with its own moments.

    A network that was left in training mode does this. If the last batch would have one image, it
    joins the batch before.

    Parameters
    ----------
    network, data
        Networks of several seeds, and their data.
    inference
        A name of `IN_BATCHES`. It ends with the batch size; without a size all images are one
        batch. Images come in the order of their file, or class by class ("sorted"). "weighted"
        gives them the weights that their labels have in training; standard BN ignores these.

    Returns
    -------
    Tensor
        Shape (S, T, K), in the order of `data.eval_images`.
    """
    total = data.eval_images.shape[1]
    size = int(inference.rpartition("_")[2]) if "batches" in inference else total
    places = torch.arange(total) if inference.startswith("sorted") else data.file_order
    batches = list(places.split(size))
    if len(batches[-1]) == 1 < len(batches):
        batches[-2:] = [torch.cat(batches[-2:])]
    weights = None
    if inference.startswith("weighted") and data.class_weight is not None:
        weights = per_sample(data.class_weight, data.eval_labels).to(data.dtype).unsqueeze(-1)
    logits = torch.empty(*data.eval_labels.shape, data.classes, dtype=data.dtype)
    for batch in batches:
        w = weights if weights is None else weights[:, batch]
        logits[:, batch] = network.forward(data.eval_images[:, batch], w)
    return logits


@torch.no_grad()
def logits_among_training_images(
    network: ReplicaNetwork, data: Block, batch_size: int, weight: Tensor
) -> Tensor:
    """Logits of each evaluated image in a mini-batch with training images.

    This shows whether a network reads the image or its weight. The image replaces a minority image
    in a mini-batch with the class sizes of training, and this batch is normalized with its own
    moments. The other images of the batch do not depend on the weight.

    Parameters
    ----------
    network, data
        Networks of several seeds, and their data.
    batch_size
        Batch size of training.
    weight
        Weight of the image, whatever its class.

    Returns
    -------
    Tensor
        Shape (S, T, K).
    """
    generator, own = stream(0, "probe"), weight.expand(len(data.rows), 1, 1)
    logits = []
    for image in data.eval_images.split(1, dim=1):
        images, _, weights = data.batch(_companions(data, batch_size, generator))
        batch = network.forward(torch.cat([image, images], 1), torch.cat([own, weights], 1))
        logits.append(batch[:, :1])
    return torch.cat(logits, 1)


def _companions(data: Block, batch_size: int, generator: torch.Generator) -> Tensor:
    """Places of the other images of a mini-batch, with the expected number of minority images."""
    minority = data.labels == data.minority
    seeds, n = minority.shape
    few = int(minority[0].sum())
    expected = max(1, round(batch_size * few / n))
    chosen = []
    for mask, number in ((minority, expected - 1), (~minority, batch_size - expected)):
        members = mask.nonzero()[:, 1].view(seeds, -1)
        chosen.append(members[:, torch.randint(members.shape[1], (number,), generator=generator)])
    return torch.cat(chosen, 1)


def evaluate(logits: Tensor, data: Block) -> dict[str, np.ndarray]:
    """Scores of each replica, from logits (S, T, K).

    These are the accuracies of each class, overall and balanced; with two classes also average
    precision, with more classes also calibration error and negative log likelihood.
    """
    right = (logits.argmax(-1) == data.eval_labels).double()
    members = torch.stack([data.eval_labels == k for k in range(data.classes)]).double()
    by_class = (members * right).sum(-1) / members.sum(-1)
    together = {
        "accuracy_overall": right.mean(-1).numpy(),
        "accuracy_balanced": by_class.mean(0).numpy(),
    }
    if data.classes > 2:
        log_p = logits.double().log_softmax(-1)
        return {
            **{f"accuracy_{k}": accuracy.numpy() for k, accuracy in enumerate(by_class)},
            **together,
            "calibration_error": calibration_error(log_p.exp(), data.eval_labels).numpy(),
            "nll": -log_p.gather(-1, data.eval_labels[..., None]).mean((-2, -1)).numpy(),
        }
    score = logits.log_softmax(-1)[..., data.minority]
    positive = data.eval_labels == data.minority
    precision = [average_precision(s, p) for s, p in zip(score, positive, strict=True)]
    return {
        "accuracy_majority": by_class[1 - data.minority].numpy(),
        "accuracy_minority": by_class[data.minority].numpy(),
        **together,
        "average_precision": np.array(precision),
    }


def calibration_error(probabilities: Tensor, labels: Tensor) -> Tensor:
    r"""Expected calibration error :math:`\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|`.

    The sum is over 15 bins :math:`(b / 15, (b + 1) / 15]` of the largest probability. acc is the
    share of correct answers in a bin, conf the mean largest probability (Guo et al. 2017).

    Parameters
    ----------
    probabilities, labels
        Shapes (S, T, K) and (S, T).

    Returns
    -------
    Tensor
        Shape (S,).

    Examples
    --------
    >>> p = torch.tensor([[[0.9, 0.1], [0.9, 0.1], [0.4, 0.6]]])
    >>> calibration_error(p, torch.tensor([[0, 1, 1]]))
    tensor([0.4000])
    """
    confidence, predicted = probabilities.max(-1)
    edges = torch.linspace(0, 1, BINS + 1, dtype=confidence.dtype)
    bins = torch.bucketize(confidence, edges[1:-1])
    surplus = (predicted == labels).to(confidence.dtype) - confidence
    by_bin = confidence.new_zeros(len(confidence), BINS).scatter_add(1, bins, surplus)
    return by_bin.abs().sum(1) / labels.shape[1]


def average_precision(score: Tensor, positive: Tensor) -> float:
    r"""Average precision :math:`\sum_k (R_k - R_{k-1}) P_k` over the distinct scores.

    :math:`P_k` and :math:`R_k` are precision and recall if every sample with at least the k-th
    largest score counts as positive.

    Examples
    --------
    >>> average_precision(torch.tensor([3.0, 2.0, 1.0]), torch.tensor([True, False, True]))
    0.8333333333333333
    """
    score, order = score.sort(descending=True)
    last_of_equals = torch.cat([score[1:] != score[:-1], torch.tensor([True])])
    hits = positive[order].cumsum(0)[last_of_equals].double()
    taken = torch.arange(1, len(score) + 1)[last_of_equals]
    return float((hits.diff(prepend=hits.new_zeros(1)) * hits / taken).sum() / hits[-1])
