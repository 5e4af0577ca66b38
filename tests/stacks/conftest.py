"""Real training stacks: `make test-stacks` installs and runs them, and nothing else collects them.

Warnings of these packages are theirs to mend; one of wbn's in normal use is an error.
"""

import copy

import pytest
import torch
from torch import nn

import wbn


def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.filterwarnings("default", r"error:.*wbn\."))


class Images:
    """A few images of two classes, one of them rare, as a loader of (images, labels)."""

    x = torch.randn(12, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0])
    class_weight = wbn.inverse_frequency(wbn.class_counts(labels)).float()

    def weights(self, labels):
        return wbn.per_sample(self.class_weight, labels).float()

    def loader(self, batch_size=4):
        data = torch.utils.data.TensorDataset(self.x, self.labels)
        return torch.utils.data.DataLoader(data, batch_size=batch_size)


@pytest.fixture
def images():
    return Images()


@pytest.fixture
def goes_there_and_back():
    """Check a model: converted without weights, with whole weights, and reverted.

    Weights of whole numbers are replication: each sample has the output, and the parameters the
    gradient, that the plain model in training mode has for as many copies.
    """

    def check(model, x, forward=lambda model, x: model(x), resize=None):
        torch.manual_seed(0)
        model, x, copies = model.double().train(), x[:3].double(), torch.tensor([1, 3, 2])
        plain, keys = copy.deepcopy(model), list(model.state_dict())
        classes = [type(m) for m in model.modules()]
        wbn.convert(model)
        assert list(model.state_dict()) == keys
        assert torch.equal(forward(model, x), forward(copy.deepcopy(plain), x))

        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        plain.load_state_dict(model.state_dict())
        replicated = forward(plain, x.repeat_interleave(copies, 0))
        with wbn.sample_weights(copies.double(), resize):
            y = forward(model, x)
        torch.testing.assert_close(y.repeat_interleave(copies, 0), replicated)
        each = copies.view(-1, *(1 for _ in y.shape[1:])).double()
        (each * y.square()).sum().backward()
        replicated.square().sum().backward()
        grads = [[p.grad for p in m.parameters() if p.grad is not None] for m in (model, plain)]
        largest = max(grad.abs().max().item() for grad in grads[1])
        torch.testing.assert_close(*grads, rtol=1e-6, atol=1e-10 * largest)
        optimizer.step()

        model.eval()
        with torch.no_grad():
            expected = forward(model, x)
            wbn.revert(model)
            assert torch.equal(forward(model, x), expected)
        assert [type(m) for m in model.modules()] == classes
        assert list(model.state_dict()) == keys

    return check


class Small(nn.Sequential):
    """A network that trains in no time."""

    def __init__(self):
        super().__init__(
            nn.Conv2d(3, 4, 3, stride=4), nn.BatchNorm2d(4), nn.ReLU(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2),
        )  # fmt: skip


@pytest.fixture
def small():
    torch.manual_seed(0)
    return Small()


@pytest.fixture
def by_hand(images):
    """Train a converted model in the loop that everybody writes, for the stacks to equal."""

    def train(model, epochs=1, lr=0.1):
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        model.train()
        for _ in range(epochs):
            for x, labels in images.loader():
                with wbn.sample_weights(images.weights(labels)):
                    loss = wbn.weighted_cross_entropy(model(x), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return model.state_dict()

    return train
