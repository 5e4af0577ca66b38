"""Where the threshold lies, by definition, by brute force and by the theory of pooled moments."""

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from study.engine.diagnosis import best_balanced_accuracy, diagnose, relative_threshold
from study.engine.inference import everything
from study.engine.protocol import Protocol
from study.engine.training import Trainer


@given(st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=2, max_size=25))
def test_the_best_threshold_is_the_best_of_all(pairs):
    """Ties in the signal, and thresholds below and above everything, are among them."""
    signal, minority = (torch.tensor(column) for column in zip(*pairs, strict=True))
    if minority.all() or not minority.any():
        return
    best = 0.0
    for threshold in (-4, *sorted(set(signal.tolist()))):
        taken = (signal > threshold).double()
        best = max(best, (taken[minority].mean() + 1 - taken[~minority].mean()).item() / 2)
    assert best_balanced_accuracy(signal.double(), minority) == pytest.approx(best)


def test_the_best_threshold_of_a_reversed_or_constant_signal_is_at_an_end():
    minority = torch.tensor([True, False, False])
    assert best_balanced_accuracy(torch.tensor([-1.0, 2.0, 3.0]), minority) == 0.5
    assert best_balanced_accuracy(torch.ones(3), minority) == 0.5
    assert best_balanced_accuracy(torch.tensor([9.0, 2.0, 3.0]), minority) == 1


@pytest.mark.parametrize("at", [-0.5, 0.0, 0.3, 1.0, 2.0])
def test_the_relative_threshold_is_where_zero_lies_between_the_means(at):
    """Means are at -at and 1 - at on a scale of their own for each replica."""
    noise = torch.tensor([[-1.0, 1.0, 0.0, -2.0, 2.0]]).double()
    minority = torch.tensor([[False, False, False, True, True], [True, True, False, False, False]])
    noise = torch.cat([noise, noise[:, [3, 4, 0, 1, 2]]])
    scale = torch.tensor([[2.0], [5.0]]).double()
    tau, separation = relative_threshold(noise + scale * (minority.double() - at), minority)
    torch.testing.assert_close(tau, torch.full((2,), at).double())
    torch.testing.assert_close(separation, scale[:, 0])


@pytest.mark.parametrize("minority", [0, 1])
def test_the_diagnosis_is_of_the_minority_whichever_class_it_is(minority):
    labels = torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0]])
    data = SimpleNamespace(minority=minority, labels=labels, eval_labels=labels.flip(0))
    signal = torch.where(labels == minority, 3.0, -1.0)  # of the minority minus the majority
    trained = torch.stack([signal, torch.zeros_like(signal)], -1) + 7
    trained = trained if minority == 0 else trained.flip(-1)
    found = {name: v.tolist() for name, v in diagnose(trained.flip(0), trained, data).items()}
    assert found == {
        "accuracy_best_threshold": [1, 1], "relative_threshold": [0.25] * 2, "separation": [4, 4],
    }  # fmt: skip


@pytest.fixture(scope="module", params=["lf_sbn", "wlf_sbn", "wlf_wbn"])
def trained(request):
    """Three seeds after an epoch, their rows with pooled statistics, and the minority's share."""
    changes = {"hidden": 6, "inference": "pooled", "diagnosis": "threshold", "dtype": "float64"}
    trainer = Trainer(Protocol.paper("ii", request.param, **changes).resolved(), [0, 1, 2])
    trainer.train_epoch()
    return trainer, trainer.evaluate("pooled")


def test_threshold_of_pooled_statistics_is_the_theory(trained):
    """The weighted mean of the logits is the shift: tau = share of the minority - shift / sep."""
    trainer, rows = trained
    weighted = trainer.protocol.output_norm == "weighted"
    share = 1 / 2 if weighted else 45 / (45 + 5851)
    expected = share - rows["shift"] / rows.separation
    assert rows.relative_threshold.to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-9)
    assert (rows["shift"].abs() > 1e-3).all()


def test_recall_is_the_share_of_the_minority_above_the_threshold(trained):
    """With positions between the classes, 0 and 1 the means of training images."""
    trainer, rows = trained
    data, network = trainer.data, trainer.network
    statistics = trainer.statistics.get("pooled", data, trainer.batches)
    images, labels, _ = data.batch(everything(data))
    for s, row in rows.iterrows():
        training, test = (network.infer(x, statistics)[s] for x in (images, data.eval_images))
        training, test = (logits[:, 0] - logits[:, 1] for logits in (training, test))
        low, high = (training[labels[s] == k].mean() for k in (1, 0))  # the minority is class 0
        position = (test - low) / (high - low)
        above = (position > row.relative_threshold).double()
        members = data.eval_labels[s] == 0
        assert row.separation == pytest.approx((high - low).item())
        assert row.accuracy_minority == pytest.approx(above[members].mean().item())
        assert row.accuracy_majority == pytest.approx(1 - above[~members].mean().item())
        assert row.accuracy_best_threshold >= row.accuracy_balanced


def test_shift_and_gain_are_those_of_the_output(trained):
    trainer, rows = trained
    gamma, b = (p[:, 0] for p in trainer.network.parameters[-2:])
    assert rows["shift"].tolist() == (b[:, 0] - b[:, 1]).tolist()
    assert rows.gain.tolist() == (gamma[:, 0] + gamma[:, 1]).tolist()


def test_an_output_without_normalization_has_a_shift_and_no_gain():
    changes = {"hidden": 6, "output_norm": "none", "diagnosis": "threshold"}
    trainer = Trainer(Protocol.paper("i", "wlf_wbn", **changes).resolved(), [0])
    trainer.train_epoch()
    row = trainer.evaluate("batch_average").iloc[0]
    assert row["gain"] != row["gain"]
    assert row["shift"] == trainer.network.layers[1].bias[0, 0].diff().double().item()
