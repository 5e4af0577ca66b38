"""Does a network read the image, or the weight that comes with it?"""

from __future__ import annotations

import pandas as pd
import torch
from torch import Tensor

from wbn.experiments.data import stream
from wbn.experiments.training import Trainer


@torch.no_grad()
def taken_for_minority(trainer: Trainer, weigh_as: str, every: int = 1) -> pd.DataFrame:
    """Share of test images taken for the minority, each in a mini-batch with training images.

    A test image takes the place of a minority image in a mini-batch that is otherwise composed
    as in training, and the network normalizes this batch with its own statistics, as it does in
    training. The image carries the weight of one of the classes, whichever its own is. Everything
    else is the same for both weights: the network, the image and the rest of its batch.

    Parameters
    ----------
    trainer
        Networks of an experiment with two classes and weights, trained for some epochs.
    weigh_as
        "minority" or "majority".
    every
        Take every so many-th test image.

    Returns
    -------
    pandas.DataFrame
        A row for each seed: the shares of `minority` and `majority` test images.
    """
    data, network = trainer.data, trainer.network
    heavy = {"minority": data.weights.max(), "majority": data.weights.min()}
    generator, seeds = stream(0, "probe"), len(trainer.seeds)
    images, labels = data.eval_images[:, ::every], data.eval_labels[0, ::every]
    answers = torch.empty(seeds, len(labels), dtype=torch.bool)
    for place, image in enumerate(images.unbind(1)):
        rest, weights = _companions(trainer, generator)
        own = heavy[weigh_as].expand(seeds, 1, 1)
        logits = network.forward(torch.cat([image[:, None], rest], 1), torch.cat([own, weights], 1))
        answers[:, place] = logits[:, 0].argmax(-1) == data.minority
    minority = labels == data.minority
    return pd.DataFrame({
        "seed": trainer.seeds,
        "minority": answers[:, minority].double().mean(1).numpy(),
        "majority": answers[:, ~minority].double().mean(1).numpy(),
    })  # fmt: skip


def _companions(trainer: Trainer, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images and weights of the rest of a mini-batch, as many of the minority as in training."""
    data, size = trainer.data, trainer.protocol.batch_size
    minority = data.labels == data.minority
    n, n_minority = minority.shape[1], int(minority[0].sum())
    expected = max(1, round(size * n_minority / n))
    drawn = [
        torch.randint(population, (number,), generator=generator)
        for population, number in ((n_minority, expected - 1), (n - n_minority, size - expected))
    ]
    # Rows of each class have the same places in every seed's training set.
    members = [mask[0].nonzero().squeeze(1) for mask in (minority, ~minority)]
    index = torch.cat([places[d] for places, d in zip(members, drawn, strict=True)])
    images, _, weights = data.batch(index.expand(len(trainer.seeds), -1))
    return images, weights
