"""How networks are evaluated: statistics, test images in batches, probes; and their scores."""

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
    """Mean and variance of each layer for inference, in the ways of `Protocol.inference`."""

    def __init__(self, protocol: Protocol, network: ReplicaNetwork) -> None:
        self.network = network
        # A pass through a variant does not normalize with the moments that it finds.
        self.variant = protocol.statistics != "batch"
        self.wanted = set(protocol.inference)
        momenta = {"moving_average": protocol.momentum} | MOVING
        self.momenta = {kind: momenta[kind] for kind in momenta if kind in self.wanted}
        self.moving: dict[str, Statistics] = {}
        self.known: dict[str, Statistics] = {}  # since the last step

    def start_epoch(self) -> None:
        """Forget the batches of the epoch before."""
        self.batches = []

    def add(self, statistics: Statistics) -> None:
        """Take in what a mini-batch showed while training."""
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
        """Statistics of the hidden layer in one way and of the output layer in another."""
        average, pooled = (self.get(kind, data, batches) for kind in ("batch_average", "pooled"))
        if inference == "pooled_hidden":
            return [pooled[0], average[1]]
        if inference == "pooled_output":
            return self._behind(average[:1], data, [everything(data)])
        return self._behind(pooled[:1], data, batches)

    def _mixed(self, inference: str, data: Block, batches: list[Tensor]) -> Statistics:
        """Some moments of the test set as one batch, the others averages of the training set."""
        chosen = inference.removeprefix("test_").split("_")
        train, test = (self.get(k, data, batches) for k in ("batch_average", "evaluation_set"))
        hidden = _chosen(("hm" in chosen, "hv" in chosen), test[0], train[0])
        behind = self.network.output_statistics(data.eval_images, None, [hidden])
        return [hidden, _chosen(("om" in chosen, "ov" in chosen), behind[0], train[1])]

    def _behind(self, hidden: Statistics, data: Block, batches: list[Tensor]) -> Statistics:
        """Statistics of the hidden layer, and averages of the output layer behind them."""
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
    """Mean and variance, each from one of two places."""
    return tuple(a if chosen else b for chosen, a, b in zip(which, yes, no, strict=True))


def never_updated(statistics: Statistics) -> Statistics:
    """Mean 0 and variance 1 in each normalized layer: where libraries start running averages."""
    return [
        layer and (torch.zeros_like(layer[0]), torch.ones_like(layer[1])) for layer in statistics
    ]


def everything(data: Block) -> Tensor:
    """The places of the whole training set of each seed, as one mini-batch (S, N)."""
    return torch.arange(data.rows.shape[1]).expand_as(data.rows)


def _average(batches: list[Statistics]) -> Statistics:
    # In the precision of the run, one batch after the other: what is stored depends on it to the
    # bit. `wbn.population` sums in double precision.
    layers = zip(*batches, strict=True)
    return [
        None if layer[0] is None else tuple(sum(m) / len(layer) for m in zip(*layer, strict=True))
        for layer in layers
    ]


@torch.no_grad()
def logits_in_batches(network: ReplicaNetwork, data: Block, inference: str) -> Tensor:
    """Logits of the evaluated images, each batch normalized with its own moments.

    As in a network that was left in training mode. A single last image joins the batch before.

    Parameters
    ----------
    network, data
        Several seeds, and what they were trained on.
    inference
        A name of `IN_BATCHES`: batches of the size at its end, or all images as one; in the order
        of the file, or class by class ("sorted"); with the weights that the labels of the test
        images would have in training ("weighted"), which standard BN does not see, or without.

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

    The image takes the place of a minority image in a mini-batch that is otherwise composed as
    in training, and the network normalizes this batch with its own moments, as it does in
    training. The rest of an image's batch is the same whatever the weight.

    Parameters
    ----------
    network, data
        Several seeds, and what they were trained on.
    batch_size
        That of training.
    weight
        What the image weighs, whichever its class.

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
    """Places of the rest of a mini-batch, with as many of the minority as are to be expected."""
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

    Accuracies of each class, overall and balanced; then, of two classes, average precision,
    and of more, calibration error and negative log likelihood.
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

    Over 15 bins :math:`(b / 15, (b + 1) / 15]` of the largest probability, each with its share
    of right answers and its mean largest probability (Guo et al. 2017).

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

    :math:`P_k` and :math:`R_k` are precision and recall when everything that scores at least
    the k-th largest value counts as positive.

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
