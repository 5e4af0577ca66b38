"""What processes that share a batch are asked, and the program of all of them but the first.

The test process is the first of three; it names a function of this file, all of them call it with
the same arguments, and it gets what each returned, or what each was refused with. A case computes
its expectation alone, on the whole batch, and returns how far the process's part is from it.
"""

import copy
import os
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import nn
from torch.autograd import forward_ad
from torch.nn.parallel import DistributedDataParallel

from wbn import (
    WeightedBatchNorm1d,
    convert,
    population_statistics,
    sample_weights,
    weighted_cross_entropy,
)

WORLD = 3
PAIR = None  # the first two processes, a group of its own


def join(rank, path, timeout=120):
    global PAIR
    store = f"file://{path}"
    dist.init_process_group(
        "gloo", init_method=store, rank=rank, world_size=WORLD, timeout=timedelta(seconds=timeout)
    )
    PAIR = dist.new_group([0, 1], timeout=timedelta(seconds=60))


def ask(name, *args):
    """What all processes return; called by the first."""
    dist.broadcast_object_list([name, args], src=0)
    return _answer(name, args)


def _answer(name, args):
    try:
        own = globals()[name](*args)
    except Exception as error:  # whatever it is, the others wait for an answer
        own = error
    answers = [None] * WORLD
    dist.all_gather_object(answers, own)
    return answers


def serve():
    while True:
        question = [None, None]
        dist.broadcast_object_list(question, src=0)
        if question[0] is None:
            return
        _answer(*question)


def group_of(processes):
    return PAIR if processes == 2 else "world"


def normal(*shape, seed, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def parts(tensor, sizes):
    return tensor.split(list(sizes))


def weights_of(kinds, sizes, positions, seed):
    """Weights of each process: all 1, random, on another scale, zero, or those of a majority."""
    made = []
    for rank, (kind, n) in enumerate(zip(kinds, sizes, strict=True)):
        w = 0.1 + torch.rand(n, generator=torch.Generator().manual_seed(seed + rank)).double()
        if kind == "positions":
            w = w.view(n, *(1 for _ in positions)) + normal(n, *positions, seed=seed).abs()
        w = {
            "zero": 0 * w,
            "small": 1e-3 * w,
            "tiny": 1e-60 * w,
            "majority": 0 * w + 0.5,
            "ones": 0 * w + 1,
        }.get(kind, w)
        made.append(w)
    return made


def difference(ours, theirs):
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return float("inf")
    return (ours.double() - theirs.double()).abs().max().item() if ours.numel() > 0 else 0.0


def whole(w, positions):
    """The weights of all processes as those of one batch, also where only some have positions."""
    if all(part.dim() == 1 for part in w):
        return torch.cat(w)
    ones = torch.ones(positions)
    return torch.cat(
        [part.view(len(part), *part.shape[1:] or (1,) * ones.dim()) * ones for part in w]
    )


def layer_on_parts(sizes, positions, kinds, seed, dtype, options):
    """Errors of output, gradients and statistics, in the group and against one process."""
    rank, processes = dist.get_rank(), len(sizes)
    if rank >= processes:
        return {}
    x, grad = (normal(sum(sizes), 2, *positions, seed=s, dtype=dtype) for s in (seed, seed + 1))
    w = weights_of(kinds, sizes, positions, seed)
    alone = WeightedBatchNorm1d(2, dtype=dtype, **options)
    shared = copy.deepcopy(alone)
    shared.process_group = group_of(processes)
    own_x, own_grad = parts(x, sizes)[rank].clone().requires_grad_(), parts(grad, sizes)[rank]
    own_w = None if kinds[rank] == "ones" else w[rank]
    try:
        x.requires_grad_()
        y = alone(x, whole(w, positions))
    except ValueError as expected:
        before = copy.deepcopy(shared.state_dict())
        try:
            shared(own_x, own_w)
        except ValueError as error:
            same = all(torch.equal(v, before[k]) for k, v in shared.state_dict().items())
            return {"refused": float(str(error) != str(expected) or not same)}
        return {"refused": float("inf")}
    y.backward(grad)
    own_y = shared(own_x, own_w)
    own_y.backward(own_grad)
    errors = {
        "output": difference(own_y, parts(y, sizes)[rank]),
        "gradient": difference(own_x.grad, parts(x.grad, sizes)[rank]),
    }
    for name, parameter in shared.named_parameters():
        total = parameter.grad.clone()
        dist.all_reduce(total, group=PAIR if processes == 2 else None)
        errors[name] = difference(total, alone.get_parameter(name).grad)
    for name, buffer in shared.named_buffers():
        errors[name] = difference(buffer, alone.get_buffer(name))
    return errors


def network():
    torch.manual_seed(0)
    return convert(
        nn.Sequential(
            nn.Linear(4, 6, bias=False),
            nn.BatchNorm1d(6),
            nn.ReLU(),
            nn.Linear(6, 3),
            nn.BatchNorm1d(3),
        ).double()
    )


def set_group(model, process_group):
    for module in model.modules():
        if isinstance(module, WeightedBatchNorm1d):
            module.process_group = process_group
    return model


def step(model, x, target, w, normalizer, process_group=None):
    with sample_weights(w):
        loss = weighted_cross_entropy(
            model(x), target, None, normalizer, process_group=process_group
        )
    loss.backward()
    return loss


def training_step(sizes, kinds, normalizer):
    """Gradients that DistributedDataParallel averages, against those of one process."""
    rank = dist.get_rank()
    x, target = normal(sum(sizes), 4, seed=0), torch.arange(sum(sizes)) % 3
    w = weights_of(kinds, sizes, (), seed=2)
    alone = network()
    step(alone, x, target, torch.cat(w), normalizer)
    model = DistributedDataParallel(set_group(network(), "world"))
    own = None if kinds[rank] == "ones" else w[rank]
    step(model, parts(x, sizes)[rank], parts(target, sizes)[rank], own, normalizer, "world")
    errors = {
        n: difference(p.grad, alone.get_parameter(n).grad)
        for n, p in model.module.named_parameters()
    }
    return errors | {n: difference(b, alone.get_buffer(n)) for n, b in model.module.named_buffers()}


def sharded_step(sizes, kinds):
    """The same with FSDP2, which shards the parameters, the layers' too."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    rank = dist.get_rank()
    x, target = normal(sum(sizes), 4, seed=0), torch.arange(sum(sizes)) % 3
    w = weights_of(kinds, sizes, (), seed=2)
    alone = network()
    step(alone, x, target, torch.cat(w), "batch")
    model = fully_shard(set_group(network(), "world"), mesh=init_device_mesh("cpu", (WORLD,)))
    step(model, parts(x, sizes)[rank], parts(target, sizes)[rank], w[rank], "batch", "world")
    errors = {
        n: difference(p.grad.full_tensor(), alone.get_parameter(n).grad)
        for n, p in model.named_parameters()
    }
    return errors | {n: difference(b, alone.get_buffer(n)) for n, b in model.named_buffers()}


def statistics(mode, cuts):
    """Statistics for inference of batches that are spread over processes, or of other batches."""
    rank = dist.get_rank()
    x, w = (
        normal(12, 4, seed=0),
        0.5 + torch.rand(12, generator=torch.Generator().manual_seed(1)).double(),
    )
    alone, shared = network(), set_group(network(), "world")
    batches = list(zip(x.split(6), w.split(6), strict=True))
    population_statistics(alone, batches, mode, unpack=lambda batch: batch)
    if mode == "pooled":  # any batches will do
        own = list(zip(x.split(cuts)[rank].split(2), w.split(cuts)[rank].split(2), strict=True))
    else:  # parts of the same batches
        own = [(a.split(cuts)[rank], b.split(cuts)[rank]) for a, b in batches]
    population_statistics(shared, own, mode, unpack=lambda batch: batch)
    return {
        n: difference(b, alone.get_buffer(n))
        for n, b in shared.named_buffers()
        if mode != "pooled" or "num_batches" not in n
    }


def without_weight_where_values_cant_be_read(correction):
    """Output, gradients and whether the state is as it was; the weights of all are too few."""
    import wbn.checks

    readable, wbn.checks.values_checkable = wbn.checks.values_checkable, lambda tensor: False
    try:
        layer = WeightedBatchNorm1d(2, correction=correction, process_group="world")
        layer.bias.data.copy_(torch.tensor([3.0, 4.0]))
        before = copy.deepcopy(layer.state_dict())
        x = normal(3, 2, seed=dist.get_rank(), dtype=torch.float32).requires_grad_()
        y = layer(x, torch.full((3,), 0.01 if correction == "frequency" else 0.0))
        y.pow(3).sum().backward()
    finally:
        wbn.checks.values_checkable = readable
    gradients = x.grad, layer.weight.grad, layer.bias.grad
    return {
        "output": difference(y, layer.bias.expand(3, 2)),
        "gradients": max(g.abs().max().item() for g in gradients),
        "state": max(difference(v, before[k]) for k, v in layer.state_dict().items()),
    }


def second_derivative():
    x = normal(3, 2, seed=0).requires_grad_()
    y = WeightedBatchNorm1d(2, process_group="world", dtype=torch.float64)(x)
    torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)


def forward_mode():
    layer = WeightedBatchNorm1d(2, process_group="world")
    with forward_ad.dual_level():
        layer(forward_ad.make_dual(torch.ones(3, 2), torch.ones(3, 2)))


def compiled(fullgraph):
    """Errors of a compiled layer that shares a batch against one that is not compiled."""
    torch._dynamo.reset()
    layer = WeightedBatchNorm1d(2, process_group="world")
    twin = copy.deepcopy(layer)
    x, w = normal(3, 2, seed=dist.get_rank(), dtype=torch.float32), torch.rand(3)
    leaves = [x.clone().requires_grad_() for _ in "ab"]
    outputs = [
        torch.compile(layer, fullgraph=fullgraph, backend="aot_eager")(leaves[0], w),
        twin(leaves[1], w),
    ]
    for y in outputs:
        y.pow(3).sum().backward()
    return {
        "output": difference(*outputs),
        "gradient": difference(leaves[0].grad, leaves[1].grad),
        "variance": difference(layer.running_var, twin.running_var),
    }


def elements_on_the_wire(channels):
    """How many numbers a process hands to the collectives of one step of a layer."""
    counted, gather, reduce = [], dist.all_gather, dist.all_reduce
    dist.all_gather = lambda rows, row, **kw: (counted.append(row.numel()), gather(rows, row, **kw))
    dist.all_reduce = lambda flat, **kw: (counted.append(flat.numel()), reduce(flat, **kw))
    try:
        layer = WeightedBatchNorm1d(channels, process_group="world")
        layer(torch.randn(5, channels, requires_grad=True), torch.rand(5)).sum().backward()
    finally:
        dist.all_gather, dist.all_reduce = gather, reduce
    return counted


if __name__ == "__main__":
    torch.set_num_threads(1)
    join(int(sys.argv[1]), sys.argv[2])
    serve()
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # without waiting for what else torch has started
