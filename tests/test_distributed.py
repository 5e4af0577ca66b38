"""Processes that share a batch against one process that has it all, on gloo."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.distributed.fsdp as fsdp
from hypothesis import given, settings
from hypothesis import strategies as st
from shared_batches import WORLD, ask, join

from wbn.core import Sums
from wbn.distributed import merge_all

PROGRAM = Path(__file__).parent / "distributed" / "shared_batches.py"
CORRECTIONS = ("frequency", "reliability", "none")
KINDS = ("random", "ones", "zero", "small", "majority")


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    """Two more processes, that do what the first asks them to."""
    path = tmp_path_factory.mktemp("processes") / "store"
    others = [
        subprocess.Popen([sys.executable, PROGRAM, str(rank), path]) for rank in range(1, WORLD)
    ]
    join(0, path)
    yield ask
    dist.broadcast_object_list([None, None], src=0)
    dist.destroy_process_group()
    assert [other.wait(60) for other in others] == [0] * len(others)


def assert_small(answers, tolerance):
    for rank, errors in enumerate(answers):
        assert not isinstance(errors, Exception), (rank, errors)
        assert all(error <= tolerance for error in errors.values()), (rank, errors)


@st.composite
def spread_batches(draw):
    """Sizes of the parts, positions, the weights' kind in each process, and the layer."""
    count = draw(st.sampled_from([2, 3]))
    sizes = draw(st.lists(st.integers(0, 4), min_size=count, max_size=count))
    positions = draw(st.sampled_from([(), (3,), (1,)]))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=count, max_size=count))
    if draw(st.booleans()) and positions:
        kinds[0] = "positions"
    options = {
        "correction": draw(st.sampled_from(CORRECTIONS)),
        "momentum": draw(st.sampled_from([0.1, None])),
        "affine": draw(st.booleans()),
    }
    return sizes, positions, kinds, draw(st.integers(0, 2**20)), torch.float64, options


@settings(deadline=None, max_examples=120)
@given(batch=spread_batches())
def test_parts_of_a_batch_are_the_batch(processes, batch):
    if sum(batch[0]) * max(1, *batch[1], 1) < 2:
        return  # one process refuses it by its shape, which a process of several can't
    assert_small(processes("layer_on_parts", *batch), 1e-9)


CASES = {
    "uneven": ((1, 5, 2), (), ("random",) * 3),
    "one has the majority only": ((4, 4, 4), (), ("majority", "random", "random")),
    "one has no weight": ((4, 4, 4), (2,), ("zero", "random", "random")),
    "one has no samples": ((4, 0, 4), (2,), ("random",) * 3),
    "only one has samples": ((0, 6), (2,), ("random",) * 2),
    "one has no weight, the other tiny ones": ((4, 4), (), ("zero", "tiny")),
    "only one has weight": ((3, 3), (), ("zero", "random")),
    "one has no weights given": ((3, 3), (), ("ones", "random")),
    "positions": ((3, 2, 2), (4,), ("positions",) * 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("case", CASES)
def test_cases_in_lower_precision(processes, case, correction, dtype):
    options = {"correction": correction}
    tolerance = {torch.float32: 1e-5, torch.bfloat16: 0.1}[dtype]
    answers = processes("layer_on_parts", *CASES[case], 5, dtype, options)
    assert_small(answers, tolerance)


def test_less_weight_than_one_point_in_all(processes):
    """Refused by all processes with one message, or no matter, as on one process."""
    for correction in CORRECTIONS:
        case = (2, 2, 2), (), ("small",) * 3
        answers = processes("layer_on_parts", *case, 1, torch.float64, {"correction": correction})
        assert [list(errors) == ["refused"] for errors in answers] == [
            correction == "frequency"
        ] * 3
        assert_small(answers, 1e-9)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_no_usable_weight_where_values_cant_be_read(processes, correction):
    assert_small(processes("without_weight_where_values_cant_be_read", correction), 0.0)


@pytest.mark.parametrize("normalizer", ["batch", 0.7])
@pytest.mark.parametrize(
    "kinds",
    [("random", "small", "majority"), ("random", "zero", "random"), ("ones", "random", "ones")],
)
def test_averaged_gradients_are_those_of_the_whole_loss(processes, kinds, normalizer):
    assert_small(processes("training_step", (2, 7, 3), kinds, normalizer), 1e-12)


@pytest.mark.skipif(not hasattr(fsdp, "fully_shard"), reason="PyTorch has FSDP2 from 2.6 on")
def test_sharded_parameters(processes):
    assert_small(processes("sharded_step", (2, 7, 3), ("random", "zero", "random")), 1e-12)


@pytest.mark.parametrize(
    ("mode", "cuts"),
    [("batch_average", [1, 3, 2]), ("weight_average", [2, 0, 4]), ("pooled", [5, 1, 6])],
)
def test_statistics_for_inference(processes, mode, cuts):
    assert_small(processes("statistics", mode, cuts), 1e-12)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # inside forward_ad
@pytest.mark.parametrize(
    ("case", "message"), [("second_derivative", "second"), ("forward_mode", "forward-mode")]
)
def test_what_one_process_alone_can_do(processes, case, message):
    for error in processes(case):
        assert isinstance(error, ValueError)
        assert message in str(error)


@pytest.mark.parametrize("channels", [1, 64])
def test_two_collectives_of_a_few_numbers_a_channel(processes, channels):
    assert processes("elements_on_the_wire", channels) == [[2 * channels + 4, 2 * channels]] * WORLD


@pytest.mark.parametrize("fullgraph", [False, True])
def test_compiles(processes, fullgraph):
    assert_small(processes("compiled", fullgraph), 1e-5)


ORPHAN = """
import os, sys, torch, torch.distributed as dist
from datetime import timedelta
from wbn import WeightedBatchNorm1d

rank, limit = int(sys.argv[1]), timedelta(seconds=3)
dist.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=rank, world_size=2)
layer = WeightedBatchNorm1d(2, process_group=dist.new_group(timeout=limit))
layer(torch.randn(4, 2))
if rank == 1:
    os._exit(7)
try:
    layer(torch.randn(4, 2))
except RuntimeError:
    print(layer.num_batches_tracked.item(), flush=True)
    os._exit(0)
"""


def test_a_process_that_dies_does_not_leave_the_others_waiting(tmp_path):
    """They fail within the time that their group allows, with their statistics as they were."""
    command = [sys.executable, "-c", ORPHAN]
    with (
        subprocess.Popen([*command, "1", tmp_path / "store"]) as dying,
        subprocess.Popen([*command, "0", tmp_path / "store"], stdout=subprocess.PIPE) as other,
    ):
        told, _ = other.communicate(timeout=120)
    assert (dying.returncode, other.returncode, told.strip()) == (7, 0, b"1")


@pytest.mark.parametrize("count", range(1, 8))
def test_any_number_of_parts_merge(count):
    x = torch.randn(count, 5, generator=torch.Generator().manual_seed(count)).double() + 100
    total = torch.arange(count).double()[:, None] + (count == 1)
    merged = merge_all(
        Sums(total, x, torch.ones(count, 5).double(), torch.zeros(count, 1).double())
    )
    mean = (total * x).sum(0) / total.sum()
    torch.testing.assert_close(merged.total, total.sum(0))
    torch.testing.assert_close(merged.mean, mean)
    scatter = (total * (x - mean).square()).sum(0) + (total > 0).sum()
    torch.testing.assert_close(merged.scatter, scatter)
    torch.testing.assert_close(merged.pairs, total.sum(0) ** 2 - total.square().sum(0))
