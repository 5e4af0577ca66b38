"""The counting model against batch normalization itself, and its invariants."""

import math

import pytest
import torch

from wbn.analysis.counting import batch_loss, equilibrium, positions, predicted, threshold
from wbn.core import moments, normalize
from wbn.experiments.protocol import Protocol
from wbn.loss import weighted_cross_entropy

SEEDS = range(2)


def two_classes(n, k, weight):
    """A signal of n samples without spread, the last k of the minority, and their weights."""
    x = torch.zeros(n, 1, dtype=torch.float64)
    x[n - k :] = 3.7
    w = torch.ones_like(x)
    w[n - k :] = weight
    return x, w


@pytest.mark.parametrize(("k", "weight"), [(1, 1.0), (1, 160.0), (3, 160.0), (40, 2.0)])
def test_positions_are_those_of_batch_normalization(k, weight):
    x, w = two_classes(100, k, weight)
    m = moments(x, w, (0,), "none")
    y = normalize(m.centered, m.var, None, None, 0.0)
    first, second = positions(w[100 - k :].sum() / w.sum())
    torch.testing.assert_close(y[0, 0], first)
    torch.testing.assert_close(y[-1, 0], second)


def test_a_lone_sample_is_bounded_by_9_9_with_standard_bn_and_below_1_with_weights():
    _, standard = positions(torch.tensor(1 / 100))
    heavy = 6265 / 39  # experiment (iii)
    _, weighted = positions(torch.tensor(heavy / (heavy + 99)))
    assert round(standard.item(), 1) == 9.9
    assert 0.7 < weighted.item() < 0.9


def test_loss_is_the_weighted_cross_entropy_of_two_opposite_logits():
    x, w = two_classes(10, 2, 5.0)
    m = moments(x, w, (0,), "none")
    signal = normalize(m.centered, m.var, None, None, 0.0)
    gains, shifts = torch.tensor([-0.7, 1.1]).double(), torch.tensor([0.2, -0.5]).double()
    labels = torch.tensor([0] * 8 + [1] * 2)
    expected = weighted_cross_entropy(signal * gains + shifts, labels, w[:, 0])
    share = (w[8:].sum() / w.sum()).reshape(1)
    found = batch_loss(torch.tensor([-0.7]).double(), torch.tensor([1.8]).double(), share, share)
    torch.testing.assert_close(found[0], expected)


@pytest.mark.parametrize("method", ["wlf_sbn", "wlf_wbn"])
def test_the_first_steps_are_adam_s(method):
    """Adam's first steps have the size of its rate: a shift moves by at most two rates a step."""
    table = predicted(Protocol.paper("i", method, epochs=1), SEEDS)
    steps = math.ceil((5923 + 45) / 100)
    assert table["shift"].between(-2e-3 * steps, 0).all()
    assert table["gain"].between(2, 2 + 2e-3 * steps).all()


def test_weighted_bn_drifts_less_than_standard_and_less_with_the_data_set_s_normalizer():
    def drift(method, **changes):
        protocol = Protocol.paper("iii", method, epochs=3, **changes)
        return predicted(protocol, SEEDS)["shift"].iloc[-1]

    far = drift("wlf_sbn")
    assert far < drift("wlf_wbn") < drift("wlf_wbn", loss_normalizer="dataset") < 0
    assert drift("wlf_sbn", output_shift_rate=0.0) == 0
    assert drift("wlf_sbn", output_shift_start=-1.0) < far - 0.9


def test_a_seed_does_not_depend_on_the_others():
    protocol = Protocol.paper("ii", "wlf_wbn", epochs=1)
    both, one = predicted(protocol, SEEDS), predicted(protocol, range(1, 2))
    assert both[both.seed == 1]["shift"].tolist() == one["shift"].tolist()


def test_threshold_is_where_the_signal_is_zero():
    shift, gain, share = -0.8, 3.1, 0.3
    low, high = (gain * p.item() + shift for p in positions(torch.tensor(share).double()))
    assert threshold(shift, gain, share) == pytest.approx(-low / (high - low))


@pytest.mark.parametrize("weighted", [True, False])
def test_at_equilibrium_drawn_batches_pull_neither_way(weighted):
    majority, minority, n, gain = 300, 12, 25, torch.tensor([2.5]).double()
    labels = torch.tensor([0] * majority + [1] * minority)
    generator = torch.Generator().manual_seed(0)
    rest = torch.tensor([equilibrium((majority, minority), n, gain.item(), weighted)])
    shift, slopes = rest.double().requires_grad_(), []
    for _ in range(2000):
        k = labels[torch.randperm(len(labels), generator=generator)[:n]].sum()
        heavy = (k * majority / minority / (k * majority / minority + n - k)).double().reshape(1)
        loss = batch_loss(shift, gain, heavy if weighted else (k / n).double().reshape(1), heavy)
        slopes.append(torch.autograd.grad(loss.sum(), shift)[0].item())
    slopes = torch.tensor(slopes)
    assert slopes.mean().abs() < 3 * slopes.std() / math.sqrt(len(slopes))
    assert slopes.std() > 0.01
