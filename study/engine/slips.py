"""Ways to normalize test images that the paper does not describe: in batches of their own."""

from __future__ import annotations

import torch
from torch import Tensor

from study.engine.network import ReplicaNetwork
from study.engine.seed_block import Block
from wbn.weights import per_sample


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
