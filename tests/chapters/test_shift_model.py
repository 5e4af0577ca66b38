"""The counting model against batch normalization, torch's Adam and drawn batches."""

import math

import numpy as np
import pytest
import torch

from study.chapters.why.shift_model import (
    _Adam,
    equilibrium,
    lone_positions,
    positions,
    predicted,
    slopes,
    threshold,
)
from study.engine.protocol import Protocol
from wbn.core import moments, normalize
from wbn.loss import weighted_cross_entropy

SEEDS = range(2)
COUNTS = (6265, 39)  # of (iii)


def normalized(n, k, weight):
    """Two classes without spread in weighted BN, the last k of n samples heavy; and weights."""
    x = torch.zeros(n, 1, dtype=torch.float64)
    x[n - k :] = 3.7
    w = torch.ones_like(x)
    w[n - k :] = weight
    m = moments(x, w, (0,), "none")
    return normalize(m.centered, m.var, None, None, 0.0), w


@pytest.mark.parametrize(("k", "weight"), [(1, 1.0), (1, 160.0), (3, 160.0), (40, 2.0)])
def test_positions_are_those_of_batch_normalization(k, weight):
    y, w = normalized(100, k, weight)
    first, second = positions((w[100 - k :].sum() / w.sum()).numpy())
    assert y[0].item() == pytest.approx(first)
    assert y[-1].item() == pytest.approx(second)


def test_a_lone_sample_is_bounded_by_9_9_with_standard_bn_and_below_1_with_weights():
    table = lone_positions(COUNTS, 100)
    for k, row in table.iterrows():
        assert row["standard"] == pytest.approx(normalized(100, k, 1.0)[0].max().item())
        heavy = COUNTS[0] / COUNTS[1]
        assert row["weighted"] == pytest.approx(normalized(100, k, heavy)[0].max().item())
    assert table["standard"][1] > 9.9
    assert table["weighted"][1] < 0.9


@pytest.mark.parametrize("k", [0, 2])
def test_slopes_are_those_of_the_weighted_cross_entropy_of_two_opposite_logits(k):
    signal, w = normalized(10, k, 5.0) if k else (torch.zeros(10, 1).double(), torch.ones(10, 1))
    shift, gain = (torch.tensor(v).double().requires_grad_() for v in (-0.7, 1.8))
    logits = torch.cat([-gain / 2 * signal - shift / 2, gain / 2 * signal + shift / 2], 1)
    labels = torch.tensor([0] * (10 - k) + [1] * k)
    loss = weighted_cross_entropy(logits, labels, w[:, 0].double())
    expected = torch.autograd.grad(loss, (shift, gain))
    share = (w[10 - k :].sum() / w.sum()).double().numpy()
    found = slopes(-0.7, 1.8, share, share)
    assert found == pytest.approx([g.item() for g in expected])


def test_steps_are_those_of_torch_s_adam():
    protocol = Protocol.paper("i", "wlf_wbn", adam_betas=(0.8, 0.95))
    parameter = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([parameter], lr=1.0, betas=(0.8, 0.95), eps=1e-8)
    ours, adam = np.zeros(3), _Adam(protocol)
    for gradient in np.random.default_rng(0).normal(size=(20, 3)):
        ours -= adam.step(gradient)
        parameter.grad = torch.from_numpy(gradient)
        optimizer.step()
    np.testing.assert_allclose(ours, parameter.detach().numpy(), rtol=1e-10)


@pytest.mark.parametrize("method", ["wlf_sbn", "wlf_wbn"])
def test_no_step_is_longer_than_adam_s(method):
    table = predicted(Protocol.paper("i", method, epochs=1), SEEDS)
    steps = math.ceil((5923 + 45) / 100)
    assert table["shift"].between(-2e-3 * steps, -1e-3).all()
    assert table["gain"].between(2.001, 2 + 2e-3 * steps).all()


def test_weighted_bn_drifts_less_than_standard_and_less_with_the_data_set_s_normalizer():
    def drift(method, **changes):
        protocol = Protocol.paper("iii", method, epochs=3, **changes)
        return predicted(protocol, SEEDS)["shift"].iloc[-1]

    far = drift("wlf_sbn")
    assert far < drift("wlf_wbn") < drift("wlf_wbn", loss_normalizer="dataset") < 0
    assert drift("wlf_wbn") < drift("wlf_wbn", statistics="running_sums") < 0
    assert drift("wlf_sbn", output_shift_rate=0.0) == 0
    assert drift("wlf_sbn", output_shift_start=-1.0) < far - 0.9


def test_a_seed_does_not_depend_on_the_others():
    protocol = Protocol.paper("ii", "wlf_wbn", epochs=1)
    both, one = predicted(protocol, SEEDS), predicted(protocol, range(1, 2))
    assert both[both.seed == 1]["shift"].tolist() == one["shift"].tolist()


@pytest.mark.parametrize("weighted", [True, False])
def test_at_equilibrium_drawn_batches_pull_neither_way(weighted):
    majority, minority, n, gain = 300, 12, 25, 2.5
    labels = np.repeat([0, 1], [majority, minority])
    random = np.random.default_rng(0)
    k = np.array([random.permutation(labels)[:n].sum() for _ in range(4000)])
    weight = k * majority / minority
    heavy = weight / (weight + n - k)
    rest = equilibrium((majority, minority), n, gain, weighted)
    pulls, _ = slopes(rest, gain, heavy if weighted else k / n, heavy)
    assert abs(pulls.mean()) < 3 * pulls.std() / math.sqrt(len(pulls))
    assert pulls.std() > 0.01


def test_threshold_is_where_the_signal_is_zero():
    shift, gain, share = -0.8, 3.1, 0.3
    low, high = (gain * p + shift for p in positions(np.array(share)))
    assert threshold(shift, gain, share) == pytest.approx(-low / (high - low))
