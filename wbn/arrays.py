"""Labels, counts and weights as lists, arrays or tensors: taken as tensors, or refused."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

ArrayLike = Tensor | np.ndarray | Sequence
WITHOUT_DOUBLE = {"mps"}  # types of devices


def as_tensor(values: ArrayLike) -> Tensor:
    """A tensor as it is, and anything else copied to one."""
    return values if isinstance(values, Tensor) else torch.tensor(np.asarray(values))


def precise(values: Tensor, device: torch.device | None = None) -> Tensor:
    """On the device, by default their own, in double precision, or single if it has no double."""
    device = values.device if device is None else device
    return values.to(torch.float32 if device.type in WITHOUT_DOUBLE else torch.float64).to(device)


def check_soft(labels: Tensor) -> None:
    """Refuse soft labels of shape (N, K, \\*positions) that are not probabilities."""
    wrong = ~(((labels.sum(1) - 1).abs() < 1e-2) & (labels >= 0).all(1))
    if wrong.any():
        raise ValueError(
            "soft labels must be probabilities that sum to 1 over the classes, got "
            f"{labels.movedim(1, -1)[wrong][0].tolist()}: for samples of several classes, weight "
            "the losses of the classes, wbn.weighted_mean(losses * class_weight)"
        )


def check_not_hot(labels: Tensor, num_classes: int | None) -> None:
    """Refuse rows of zeros and ones with one 1 each, or of as many numbers as classes."""
    if labels.dim() != 2 or labels.shape[1] < 2 or len(labels) == 0:
        return
    as_many = labels.shape[1] == num_classes and num_classes > 2
    if ((labels == 0) | (labels == 1)).all() and (as_many or (labels.sum(1) == 1).all()):
        raise ValueError(
            f"labels of shape {tuple(labels.shape)} with zeros and ones only look one-hot or "
            "multi-hot, and would be taken for classes 0 and 1: make indices of one-hot labels "
            "with .argmax(1), count samples of several classes with labels.sum(0), and if these "
            "are indices, give them flat"
        )


def as_labels(labels: ArrayLike) -> Tensor:
    """Class indices; anything else is refused."""
    labels = as_tensor(labels)
    if (labels.is_floating_point() or labels.is_complex()) and labels.numel() > 0:
        raise ValueError(
            f"labels must be class indices of an integer type, got {labels.dtype}: "
            "convert them, for example with .long(), or give per_sample probabilities of shape "
            "(N, K)"
        )
    return labels.long()


def outside(labels: Tensor, num_classes: int) -> str:
    """The message for labels that are none of the classes."""
    wrong = labels[(labels < 0) | (labels >= num_classes)].unique().tolist()
    return (
        f"labels must be at least 0 and below the number of classes, {num_classes}, "
        f"got {', '.join(map(str, wrong[:5]))}{', ...' if len(wrong) > 5 else ''}"
    )


def as_vector(values: ArrayLike, name: str) -> Tensor:
    """Numbers of shape (K,)."""
    vector = precise(as_tensor(values))
    if vector.ndim != 1 or len(vector) == 0:
        raise ValueError(
            f"{name} must have the shape (K,), one number a class, got {tuple(vector.shape)}"
        )
    return vector


def as_nonnegative(values: ArrayLike, name: str) -> Tensor:
    """Numbers that are finite and not negative."""
    values = precise(as_tensor(values))
    wrong = values[~(values.isfinite() & (values >= 0))]
    if len(wrong) > 0:
        raise ValueError(f"{name} must be finite and not negative, got {wrong[0].item()}")
    return values


def as_counts(counts: ArrayLike) -> Tensor:
    """Class sizes, whole and positive."""
    counts = as_vector(counts, "counts")
    for k, count in enumerate(counts.tolist()):
        if count == 0:
            raise ValueError(
                f"class {k} has no data point (a count of 0), so its weight is undefined: "
                "merge it with another class, drop it, or give it a count"
            )
        if not (count > 0 and count.is_integer()):
            raise ValueError(
                f"counts must be whole positive numbers of data points, got {count} for class "
                f"{k}: see class_counts(labels)"
            )
    return counts


def as_matching(class_weight: ArrayLike, counts: ArrayLike) -> tuple[Tensor, Tensor]:
    """Weights and sizes of the same classes."""
    class_weight = as_nonnegative(as_vector(class_weight, "class_weight"), "class_weight")
    counts = precise(as_counts(counts), class_weight.device)
    if len(class_weight) != len(counts):
        raise ValueError(
            f"class_weight has {len(class_weight)} classes and counts has {len(counts)}: "
            "they must describe the same classes"
        )
    return class_weight, counts
