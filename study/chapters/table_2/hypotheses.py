"""Hypotheses about how Table 2 was made, in the order in which they were declared.

Declared before the runs of results/forensics and results/forensics_training; the plans say what
had been seen before. A hypothesis is a way to train and a way to normalize test images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import pandas as pd

from study.engine.protocol import IN_BATCHES, MIXED, MOMENTS, Protocol
from study.stores.plan import RESULTS, load_or_run, read_plan

DECLARED = "wbn/analysis/hypotheses.py, 2026-11-17, before the runs"
EPOCHS = (1, 3, 10, 30)  # equally likely beforehand: Table 2 does not say
NETWORKS, OTHERS = "forensics", "forensics_training"
TEXT = "as the text says"
AVERAGES, TEST_SET = "averages of training", "the test set"

# How networks are trained, as differences from the reference reading.
TRAININGS: dict[str, Mapping[str, object]] = {
    "reference": {},
    "no gradient through the statistics": {"statistics": "detached"},
    "gradient descent, rate 0.01": {"optimizer": "sgd", "learning_rate": 0.01},
    "gradient descent, rate 0.1": {"optimizer": "sgd", "learning_rate": 0.1},
    "batches sorted by class": {"batch_order": "sorted"},
    "standardized apart": {"input_scaling": "standardized_apart"},
    "He's initialization": {"initialization": "he_normal"},
    "sigmoid": {"activation": "sigmoid"},
    "tanh": {"activation": "tanh"},
    "squared error": {"loss": "squared_error"},
    "loss normalized by the data set": {"loss_normalizer": "dataset"},
    "Chainer": {
        "initialization": "lecun_normal",
        "eps": 2e-5,
        "correction": "none",
        "loss_normalizer": "dataset",
    },
    "Keras and TensorFlow 1": {
        "eps": 1e-3,
        "correction": "none",
        "adam_eps": 1e-7,
        "loss_normalizer": "dataset",
    },
    "PyTorch": {"initialization": "torch_uniform", "eps": 1e-5, "correction": "none"},
}
VARIED = sorted({name for choices in TRAININGS.values() for name in choices})


@dataclass(frozen=True)
class Hypothesis:
    """One way in which Table 2 could have been made.

    Parameters
    ----------
    group, name
        What kind of a way, and which one.
    inference
        A kind of `Protocol.inference`.
    training
        A name of `TRAININGS`.
    """

    group: str
    name: str
    inference: str
    training: str = "reference"

    @property
    def by_test_images(self) -> bool:
        """Whether test images are normalized with moments of test images."""
        return not self.inference.startswith(("batch_average", "pooled", "moving", "never"))

    def runs(self, prior: bool = True) -> pd.DataFrame:
        """Stored rows of three experiments and methods, at the epochs of the prior or at all."""
        rows = _rows(NETWORKS if self.training == "reference" else OTHERS)
        rows = rows[rows.protocol.isin(protocols_of(self.training))]
        rows = rows[rows.inference == self.inference]
        return rows[rows.epoch.isin(EPOCHS)] if prior else rows


@cache
def _rows(store: str) -> pd.DataFrame:
    return load_or_run(store)


@cache
def protocols_of(training: str) -> set[str]:
    """Hashes of the nine protocols of a training, from the plan of its store."""
    store = NETWORKS if training == "reference" else OTHERS
    choices = TRAININGS[training]
    return {p.hash for p in read_plan(RESULTS / store / "plan.toml")[0] if _follows(p, choices)}


def _follows(protocol: Protocol, choices: Mapping[str, object]) -> bool:
    """Whether a protocol has these choices and else the reference's.

    Without weights a protocol has no loss normalizer, whichever was asked for.
    """
    reference = Protocol.paper(protocol.experiment, protocol.method, **choices).resolved()
    resolved = protocol.resolved()
    return all(getattr(resolved, name) == getattr(reference, name) for name in VARIED)


def _moments(kind: str) -> str:
    words = {"hm": "hidden mean", "hv": "hidden variance", "om": "output mean",
             "ov": "output variance"}  # fmt: skip
    chosen = kind.removeprefix("test_").split("_")
    return ", ".join(words[moment] for moment in MOMENTS if moment in chosen)


def _batches(kind: str) -> str:
    if kind == "weighted_test":
        return "the test set as one batch, weighted by its labels"
    size = kind.rpartition("_")[2]
    order = "sorted by class" if kind.startswith("sorted") else "in their order"
    weights = ", weighted by their labels" if kind.startswith("weighted") else ""
    return f"test batches of {size}, {order}{weights}"


def _framework(training: str, default: str, kind: str) -> tuple[Hypothesis, ...]:
    return (
        Hypothesis("framework", f"{training}, {default}", kind, training),
        Hypothesis("framework", f"{training}, {TEST_SET}", "evaluation_set", training),
        Hypothesis("framework", f"{training}, test batches of 100", "test_batches_100", training),
    )


SIXTEEN = (
    Hypothesis("text", TEXT, "batch_average"),
    *(Hypothesis("moments of the test set", _moments(kind), kind) for kind in MIXED),
    Hypothesis("moments of the test set", "all four", "evaluation_set"),
)
HYPOTHESES = (
    *SIXTEEN,
    Hypothesis("training set", "pooled over the training set", "pooled"),
    Hypothesis("training set", "moving average, momentum 0.1", "moving_average"),
    Hypothesis("training set", "moving average, momentum 0.01", "moving_average_0.01"),
    Hypothesis("training set", "moving average, momentum 0.001", "moving_average_0.001"),
    Hypothesis("training set", "never updated", "never_updated"),
    *(Hypothesis("test batches", _batches(kind), kind) for kind in IN_BATCHES),
    *(
        Hypothesis("training", f"{training}, {words}", kind, training)
        for training in list(TRAININGS)[1:11]
        for words, kind in ((AVERAGES, "batch_average"), (TEST_SET, "evaluation_set"))
    ),
    *_framework("Chainer", "its running averages", "moving_average"),
    *_framework("Keras and TensorFlow 1", "their running averages", "moving_average_0.01"),
    Hypothesis(
        "framework", "TensorFlow 1, updates forgotten", "never_updated", "Keras and TensorFlow 1"
    ),
    *_framework("PyTorch", "its running averages", "moving_average"),
)
