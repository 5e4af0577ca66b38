"""The context of sample weights: nesting, errors, threads, tasks."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch

from wbn.context import current_sample_weight, sample_weights

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
