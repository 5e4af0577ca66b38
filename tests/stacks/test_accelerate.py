"""accelerate: a prepared model, and gradients accumulated over micro-batches."""

import pytest
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

import wbn


@pytest.fixture(autouse=True)
def fresh():
    """Accelerators share their settings, and refuse to change them."""
    yield
    AcceleratorState._reset_state(reset_partial_state=True)


@pytest.mark.parametrize("mixed_precision", ["no", "bf16"])
def test_a_prepared_model_trains_as_the_plain_loop(images, small, by_hand, mixed_precision):
    start = {name: value.clone() for name, value in small.state_dict().items()}
    wbn.convert(small)
    accelerator = Accelerator(cpu=True, mixed_precision=mixed_precision)
    model, optimizer, loader = accelerator.prepare(
        small, torch.optim.SGD(small.parameters(), lr=0.1), images.loader()
    )
    for x, labels in loader:
        with wbn.sample_weights(images.weights(labels)):
            loss = wbn.weighted_cross_entropy(model(x), labels)
        optimizer.zero_grad()
        accelerator.backward(loss)
        optimizer.step()
    trained = {n: v.clone() for n, v in accelerator.unwrap_model(model).state_dict().items()}
    assert all(value.dtype == start[name].dtype for name, value in trained.items())
    small.load_state_dict(start)
    tolerance = {} if mixed_precision == "no" else {"rtol": 0.05, "atol": 0.02}
    torch.testing.assert_close(trained, dict(by_hand(small)), **tolerance)


def test_accumulated_gradients_are_those_of_the_batch(images):
    """A model without batch norm; with it, each micro-batch has moments of its own."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 2))
    weight = images.weights(images.labels)
    wbn.weighted_cross_entropy(model(images.x), images.labels, weight).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=3)
    model, loader = accelerator.prepare(model, images.loader(batch_size=5))
    total = weight.sum()
    for x, labels in loader:  # of 5, 5 and 2
        w = images.weights(labels)
        with accelerator.accumulate(model):
            loss = wbn.weighted_cross_entropy(model(x), labels, w)
            # accelerate divides by the number of micro-batches
            accelerator.backward(3 * loss * w.sum() / total)
    torch.testing.assert_close([p.grad for p in model.parameters()], whole)
