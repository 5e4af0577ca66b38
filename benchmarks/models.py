"""A whole model, and the memory that a layer takes."""

import ctypes
import re
from collections.abc import Iterator
from pathlib import Path

import torch
from torchvision.models import resnet18

import wbn
from benchmarks.layers import inputs, step, told
from benchmarks.timing import Run, compare


def rows(threads: tuple[int, ...], rounds: int) -> Iterator[dict]:
    """A training step of ResNet-18 on 64 images of 32 x 32, as it is and with weighted layers."""
    for number in threads:
        torch.set_num_threads(number)
        found = compare({"nn.BatchNorm": training(False), "weights": training(True)}, rounds, 0.0)
        yield from told(found, "ResNet-18", (64, 3, 32, 32), number)


def training(weighted: bool) -> Run:
    """One step of SGD, with the weights of a context around a converted model."""
    torch.manual_seed(0)
    model, x, y = resnet18(num_classes=10), torch.randn(64, 3, 32, 32), torch.arange(64) % 10
    w = torch.rand(64) + 0.5
    if weighted:
        model = wbn.convert(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def run() -> None:
        optimizer.zero_grad()
        if weighted:
            with wbn.sample_weights(w):
                loss = wbn.weighted_cross_entropy(model(x), y)
        else:
            loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()

    return run


def memory(shape: tuple[int, ...] = (64, 64, 32, 32)) -> list[dict]:
    """Largest memory of a training step of a layer, in MB above what was there before it."""
    x, grad, w = inputs(shape)
    layers = {
        "nn.BatchNorm": (torch.nn.BatchNorm2d(shape[1]), ()),
        "weights": (wbn.WeightedBatchNorm2d(shape[1]), (w,)),
    }
    peaks = {}
    for name, (layer, weights) in layers.items():
        run = step(layer, x, grad, *weights)
        run()
        x.grad = None
        peaks[name] = peak(run)
    about = {"use": "memory", "shape": " x ".join(map(str, shape)), "threads": 1}
    base = peaks["nn.BatchNorm"]
    return [
        about | {"candidate": name, "megabytes": round(mb, 2), "ratio": round(mb / base, 4)}
        for name, mb in peaks.items()
    ]


def peak(run: Run) -> float:
    """How far the resident memory of the process rises (Linux tells)."""
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # sets the high-water mark to what there is
    before = status("VmRSS")
    run()
    return (status("VmHWM") - before) / 1024


def status(field: str) -> int:
    """A number of kilobytes that the system knows about this process."""
    return int(re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())[1])
