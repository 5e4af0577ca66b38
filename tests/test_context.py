"""The context of sample weights: nesting, errors, threads, tasks, use, resolution."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from wbn.context import current_sample_weight, sample_weights
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d
from wbn.loss import weighted_cross_entropy

A, B = torch.tensor([1.0, 2.0]), torch.tensor([3.0])


def test_nests_and_restores():
    assert current_sample_weight() is None
    with sample_weights(A):
        with sample_weights(B):
            assert current_sample_weight() is B
            with sample_weights(None):
                assert current_sample_weight() is None
            assert current_sample_weight() is B
        assert current_sample_weight() is A
    assert current_sample_weight() is None


def test_restores_on_error():
    with sample_weights(A):
        with pytest.raises(KeyError), sample_weights(B):
            raise KeyError
        assert current_sample_weight() is A
    assert current_sample_weight() is None


def test_threads_see_their_own():
    barrier = Barrier(2)

    def inside(weight):
        before = current_sample_weight()
        with sample_weights(weight):
            barrier.wait(timeout=60)
            seen = current_sample_weight()
            barrier.wait(timeout=60)
        return before, seen

    with sample_weights(A), ThreadPoolExecutor(2) as pool:
        (_, first), (_, second) = pool.map(inside, (A, B))
        assert first is A
        assert second is B
        assert current_sample_weight() is A


def test_tasks_see_their_own():
    async def inside(weight, entered, other):
        with sample_weights(weight):
            entered.set()
            await other.wait()
            return current_sample_weight()

    async def both():
        events = asyncio.Event(), asyncio.Event()
        return await asyncio.gather(inside(A, *events), inside(B, *events[::-1]))

    first, second = asyncio.run(both())
    assert first is A
    assert second is B


# Use -----------------------------------------------------------------------------------


def test_weights_that_nobody_asks_for_are_noticed():
    message = r"no weighted layer or loss.*wbn\.convert"
    with pytest.warns(UserWarning, match=message) as caught, sample_weights(A):
        torch.nn.BatchNorm1d(3)(torch.randn(2, 3))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=message), sample_weights(A), sample_weights(B):
        current_sample_weight()


def test_normal_use_does_not_warn():
    layer, x = WeightedBatchNorm1d(3), torch.randn(2, 3)
    with sample_weights(None):
        pass
    with sample_weights(A):
        layer(x)
    with sample_weights(A):
        layer(x, A)
    with sample_weights(A):
        layer.eval()(x)
    with sample_weights(A):
        weighted_cross_entropy(x, torch.tensor([0, 2]))
    with pytest.raises(KeyError), sample_weights(A):
        raise KeyError


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_compiles_around_the_context_and_inside_it(mode):
    torch._dynamo.reset()
    torch.manual_seed(0)
    layer, x, w = WeightedBatchNorm1d(3), torch.randn(4, 3), torch.arange(1.0, 5)
    layer.train(mode == "train")

    def inside(x, w):
        with sample_weights(w):
            y = layer(x)
            with sample_weights(None):
                return y, layer(x)

    function = torch.compile(inside, fullgraph=True, backend="eager")
    compiled_layer = torch.compile(layer, fullgraph=True, backend="eager")
    for weights in (w, w.flip(0), None):
        torch.testing.assert_close(function(x, weights), inside(x, weights))
        with sample_weights(A):  # of two samples, which would be refused
            assert torch.equal(function(x, weights)[0], function(x, weights)[0])
            current_sample_weight()
    with sample_weights(w):
        torch.testing.assert_close(compiled_layer(x), layer(x, w))
    with sample_weights(w):
        compiled_layer(x)
    assert current_sample_weight() is None


def test_contexts_in_compiled_code_are_on_a_stack(monkeypatch):
    """What `torch.compile` traces, run as it stands."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with sample_weights(A):
        with sample_weights(B):
            assert current_sample_weight() is B
        with pytest.raises(KeyError), sample_weights(B):
            raise KeyError
        assert current_sample_weight() is A
    assert current_sample_weight() is None


# Resolution ----------------------------------------------------------------------------

MASK = torch.tensor([[1, 1, 1, 0, 0, 0], [1, 1, 1, 1, 1, 0]], dtype=torch.bool)


def resized(w, shape, resize):
    with sample_weights(w, resize):
        return current_sample_weight(shape)


@pytest.mark.parametrize("positions", [(6,), (4, 6), (2, 4, 6)])
@pytest.mark.parametrize("factor", [1, 2])
def test_area_is_the_mean_over_blocks_and_nearest_the_block_corner(positions, factor):
    w = torch.rand(3, *positions, dtype=torch.float64)
    shape = (3, *(p // factor for p in positions))
    blocks = w
    for d in range(1, w.dim()):
        blocks = blocks.unflatten(d, (-1, factor)).mean(d + 1)
    corners = w[(slice(None), *(slice(None, None, factor) for _ in positions))]
    torch.testing.assert_close(resized(w, shape, "area"), blocks)
    assert torch.equal(resized(w, shape, "nearest"), corners)
    torch.testing.assert_close(resized(w, (3,), "area"), w.flatten(1).mean(1))


def test_larger_weights_are_repeated():
    w = torch.tensor([[1.0, 3.0]])
    for how in ("area", "nearest"):
        assert resized(w, (1, 4), how).tolist() == [[1, 1, 3, 3]]


def test_masks():
    assert resized(MASK, (2, 3), "nearest").tolist() == [[1, 1, 0], [1, 1, 1]]
    assert resized(MASK, (2, 3), "area").tolist() == [[1, 0.5, 0], [1, 1, 0.5]]
    torch.testing.assert_close(resized(MASK, (2,), "area"), torch.tensor([0.5, 5 / 6]))


def test_weights_that_fit_stay():
    pixels = torch.rand(2, 4, 4)
    for how in ("area", "nearest", lambda w, shape: None):
        assert resized(pixels, (2, 4, 4), how) is pixels
        assert resized(A, (2, 4, 4), how) is A
        assert resized(A, None, how) is A
        assert resized(None, (2, 4), how) is None


@pytest.mark.parametrize(
    ("w", "shape"),
    [
        (A, (3, 4)),
        (torch.ones(2, 4), (3, 2)),
        (torch.ones(2, 4, 4), (2, 8)),
        (torch.ones(2, 4, dtype=torch.long), (2, 2)),
        ([1.0, 2.0], (3,)),
    ],
)
def test_weights_that_have_nothing_to_do_with_the_shape_are_left_to_be_refused(w, shape):
    for how in ("area", "nearest"):
        assert resized(w, shape, how) is w
    assert resized(torch.ones(2, 4), (2,), "nearest").shape == (2, 4)


def test_a_function_makes_weights_for_frames_and_views():
    w = torch.tensor([1.0, 3.0])
    frames, x = WeightedBatchNorm1d(3), torch.randn(6, 3)
    with sample_weights(w, resize=lambda w, shape: w.repeat_interleave(shape[0] // len(w))):
        y = frames(x)
        loss = weighted_cross_entropy(x, torch.tensor([0, 1, 2] * 2))
    each = torch.tensor([1.0, 1, 1, 3, 3, 3])
    torch.testing.assert_close(y, frames(x, each))
    assert loss == weighted_cross_entropy(x, torch.tensor([0, 1, 2] * 2), each)


def test_a_strided_stack_sees_the_weights_at_its_resolutions():
    torch.manual_seed(0)
    x, w = torch.randn(2, 1, 8, 8), torch.rand(2, 8, 8)
    stack = torch.nn.Sequential(
        WeightedBatchNorm2d(1, correction="none"), torch.nn.AvgPool2d(2),
        WeightedBatchNorm2d(1, correction="none"), torch.nn.AvgPool2d(4), torch.nn.Flatten(),
        WeightedBatchNorm1d(1, correction="none"),
    )  # fmt: skip
    with sample_weights(w, resize="area"):
        y = stack(x)
    half = torch.nn.functional.avg_pool2d(w, 2)
    hidden = stack[2](stack[1](stack[0](x, w)), half)
    torch.testing.assert_close(y, stack[5](stack[4](stack[3](hidden)), w.mean((1, 2))))
    with pytest.raises(ValueError, match="has shape"), sample_weights(w):
        stack(x)


def test_unknown_resize():
    message = "resize is 'bilinear'; choose 'area'"
    with pytest.raises(ValueError, match=message), sample_weights(A, resize="bilinear"):
        pass
