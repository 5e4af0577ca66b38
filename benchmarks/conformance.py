"""One suite of behaviors, run on each alternative: what holds, and what does not."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import Tensor
from torch.testing import assert_close

from benchmarks.alternatives import installed, plain

Make = Callable[..., Callable]
N, CHANNELS = 8, 3
KEPT = torch.tensor([1, 1, 0, 1, 1, 0, 1, 1]).bool()


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def real_weights(make: Make) -> None:
    """A weight of 3 is three copies."""
    x, w = normal(N, CHANNELS), torch.arange(1, N + 1)
    copies = torch.arange(N).repeat_interleave(w)
    assert_close(make(CHANNELS)(x, w.float())[copies], plain(x[copies]))


def masked_samples(make: Make) -> None:
    """What is masked has no part in the moments."""
    x = normal(N, CHANNELS)
    assert_close(make(CHANNELS)(x, KEPT.float())[KEPT], plain(x[KEPT]))


def nan_under_a_mask(make: Make) -> None:
    """Not even if it is NaN."""
    x = normal(N, CHANNELS)
    x[~KEPT] = torch.nan
    assert_close(make(CHANNELS)(x, KEPT.float())[KEPT], plain(x[KEPT]))


def all_masked(make: Make) -> None:
    """A batch without weight is refused or passes, and leaves finite statistics as they were."""
    layer = make(CHANNELS)
    layer(normal(N, CHANNELS), torch.ones(N))
    before = layer.running_mean.clone(), layer.running_var.clone()
    with suppress(ValueError):
        assert layer(normal(N, CHANNELS), torch.zeros(N)).isfinite().all()
    assert_close((layer.running_mean, layer.running_var), before)


def running_statistics(make: Make) -> None:
    """They move towards the mean of what is not masked, and its variance, biased or not."""
    x, layer = normal(N, CHANNELS), make(CHANNELS)
    layer(x, KEPT.float())
    assert_close(layer.running_mean.detach(), 0.1 * x[KEPT].mean(0))
    kinds = [0.9 + 0.1 * x[KEPT].var(0, correction=c) for c in (0, 1)]
    assert any(torch.allclose(layer.running_var, kind) for kind in kinds)


def unbiased(make: Make) -> None:
    """The variance for inference is the unbiased one, as torch's is."""
    x, layer = normal(N, CHANNELS), make(CHANNELS, momentum=1.0)
    layer(x, KEPT.float())
    assert_close(layer.running_var.detach(), x[KEPT].var(0))


def gradient(make: Make) -> None:
    """It is the one of batch norm of what is not masked, and zero for what is."""
    found = []
    for normalize in (lambda x: make(CHANNELS)(x, KEPT.float())[KEPT], lambda x: plain(x[KEPT])):
        x = normal(N, CHANNELS).requires_grad_()
        normalize(x).pow(3).sum().backward()
        found.append(x.grad)
    assert_close(*found)


def masks_through_strides(make: Make) -> None:
    """A mask of all positions serves a layer that sees every second one."""
    x, mask = normal(N, CHANNELS, 6), torch.ones(N, 6)
    mask[:, 3:] = 0
    layer = make(CHANNELS, momentum=1.0)
    layer.strided(x, mask)
    assert_close(layer.running_mean.detach(), x[:, :, [0, 2]].mean((0, 2)))


def unequal_processes(make: Make) -> None:
    """Two processes with parts of unequal size normalize with the moments of the whole."""
    with tempfile.NamedTemporaryFile() as file:
        mp.spawn(_part, (f"file://{file.name}.init", make), nprocs=2)


def _part(rank: int, address: str, make: Make) -> None:
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    x, part = normal(N, CHANNELS), (slice(3), slice(3, None))[rank]
    y = make(CHANNELS, shared=True)(x[part], KEPT[part].float())
    dist.barrier()
    expected = (x - x[KEPT].mean(0)) / (x[KEPT].var(0, correction=0) + 1e-5).sqrt()
    assert_close(y.detach(), expected[part])


BEHAVIORS = {
    "real-valued weights": real_weights,
    "masked samples": masked_samples,
    "NaN under a mask": nan_under_a_mask,
    "all-zero mask": all_masked,
    "running statistics": running_statistics,
    "unbiased variance for inference": unbiased,
    "gradient": gradient,
    "masks through strides": masks_through_strides,
    "unequal processes": unequal_processes,
}


def rows() -> Iterator[dict]:
    """Whether each behavior holds, for each alternative that is installed."""
    for name, make in installed().items():
        for behavior, check in BEHAVIORS.items():
            yield {"alternative": name, "behavior": behavior, **outcome(partial(check, make))}


def outcome(check: Callable[[], None]) -> dict:
    """Whether it passes, and if not, the kind of error."""
    try:
        check()
    except Exception as error:  # of any library
        return {"passes": False, "error": type(error).__name__}
    return {"passes": True, "error": ""}
