"""Where the time of a training step goes: the operators that it calls."""

from collections import Counter

import torch
from torch.profiler import profile

from benchmarks.layers import LAYERS, inputs, step

SHAPE = (256, 1024)


def counted() -> list[dict]:
    """Operators of a training step, those that others call left out."""
    x, grad, w = inputs(SHAPE)
    plain, ours = (layer(SHAPE[1]) for layer in LAYERS[len(SHAPE)])
    runs = {
        "nn.BatchNorm": step(plain, x, grad),
        "weights": step(ours, x, grad, w),
        "no weights": step(LAYERS[len(SHAPE)][1](SHAPE[1]), x, grad),
    }
    return [
        {"candidate": name, "operator": operator, "calls": calls}
        for name, run in runs.items()
        for operator, calls in sorted(operators(run).items())
    ]


def operators(run) -> Counter:
    """How often each operator of torch is called from Python or by autograd."""
    for _ in range(3):
        run()
    with profile(activities=[torch.profiler.ProfilerActivity.CPU]) as events:
        run()
    names = (e.name for e in events.events() if e.name.startswith("aten::") and outer(e))
    return Counter(name.removeprefix("aten::") for name in names)


def outer(event) -> bool:
    """Whether no other operator called this one."""
    while event.cpu_parent is not None:
        event = event.cpu_parent
        if event.name.startswith("aten::"):
            return False
    return True
