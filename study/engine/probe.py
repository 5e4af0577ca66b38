"""Does a network read the image, or the weight that comes with it?"""

from __future__ import annotations

import torch
from torch import Tensor

from study.engine.draw import stream
from study.engine.network import ReplicaNetwork
from study.engine.seed_block import Block


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
