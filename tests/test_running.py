"""Running statistics: as in torch, and never infinite, NaN or negative."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from wbn.layers import WeightedBatchNorm1d
from wbn.running import normalize_as_torch, update_running

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("mean", "var"), [(NAN, 1.0), (0.0, NAN), (INF, 1.0), (0.0, INF), (0.0, -20.0), (-3e38, 1.0)]
)
def test_what_is_not_stored(mean, var):
    running_mean, running_var, count = torch.full((2,), 3e38), torch.ones(2), torch.tensor(5)
    batch = torch.tensor([0.0, mean]), torch.tensor([1.0, var])
    update_running(running_mean, running_var, *batch, 0.5, count)
    assert torch.equal(running_mean, torch.full((2,), 3e38))
    assert torch.equal(running_var, torch.ones(2))
    assert count == 5


def test_what_is_finite_is_stored_though_its_products_are_not():
    running_mean, running_var, count = torch.zeros(2), torch.ones(2), torch.tensor(5)
    update_running(
        running_mean, running_var, torch.full((2,), 1e30), torch.full((2,), 1e30), 1.0, count
    )
    assert torch.equal(running_mean, torch.full((2,), 1e30))
    assert torch.equal(running_var, torch.full((2,), 1e30))
    assert count == 6


@pytest.mark.parametrize("scale", [1.0, 1e15])
@pytest.mark.parametrize("momentum", [0.1, 1.0, None])
def test_without_weights_they_are_those_of_torch(scale, momentum):
    ours, theirs = WeightedBatchNorm1d(3, momentum=momentum), nn.BatchNorm1d(3, momentum=momentum)
    for seed in range(3):
        x = scale * torch.randn(20, 3, generator=torch.Generator().manual_seed(seed))
        assert torch.equal(ours(x), theirs(x))
    for a, b in zip(ours.buffers(), theirs.buffers(), strict=True):
        assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("momentum", [0.1, 0.5, 0.9, None])
def test_with_weights_they_are_interpolated(momentum, dtype):
    running = torch.tensor([1.0, -2.0], dtype=dtype), torch.tensor([3.0, 0.5], dtype=dtype)
    batch, count = (torch.tensor([4.0, 2.0]), torch.tensor([1.0, 8.0])), torch.tensor(3)
    alpha = 1 / 4 if momentum is None else momentum
    expected = [
        (1 - alpha) * old.double() + alpha * new for old, new in zip(running, batch, strict=True)
    ]
    update_running(*running, *batch, momentum, count)
    assert_close(
        [old.double() for old in running],
        expected,
        rtol=1e-2 if dtype == torch.bfloat16 else 1e-6,
        atol=0,
    )
    assert count == 4


def test_a_momentum_above_one_stores_no_negative_variance():
    running, count = (torch.zeros(2), torch.full((2,), 9.0)), torch.tensor(0)
    x = torch.tensor([[0.0, 0.0], [1.0, 100.0]])
    normalize_as_torch(x, *running, None, None, 1.5, 1e-5, count)
    assert torch.equal(running[0], torch.zeros(2))
    assert torch.equal(running[1], torch.full((2,), 9.0))
    assert count == 0


@pytest.mark.parametrize("weights", [(), (torch.tensor([1.0, 2.0, 3.0]),)])
def test_a_batch_that_is_not_stored_has_a_gradient(weights):
    x = torch.tensor([[NAN], [1.0], [2.0]], requires_grad=True)
    layer = WeightedBatchNorm1d(1)
    layer(x, *weights).sum().backward()
    assert x.grad.isnan().all()
    assert layer.running_mean.item() == 0
    assert layer.num_batches_tracked == 0


def test_autograd_notices_that_they_have_changed():
    layer = WeightedBatchNorm1d(2).eval()
    x = torch.randn(4, 2, requires_grad=True)
    y = layer(x)
    layer.train()(x.detach(), torch.ones(4))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_mean_and_variance_may_be_of_different_precision():
    running = torch.zeros(2), torch.ones(2, dtype=torch.bfloat16)
    update_running(*running, torch.ones(2), torch.full((2,), 3.0), 0.5)
    assert_close(running[0], torch.full((2,), 0.5))
    assert_close(running[1], torch.full((2,), 2.0, dtype=torch.bfloat16))


def test_a_batch_that_torch_refuses_is_not_counted():
    running, count = (torch.zeros(2), torch.ones(2)), torch.tensor(3)
    with pytest.raises(RuntimeError):
        normalize_as_torch(torch.randn(4, 2), *running, torch.ones(7), None, 0.1, 1e-5, count)
    assert count == 3
    assert torch.equal(running[0], torch.zeros(2))
