"""The threshold: by definition, by brute force, by theory, and against five runs of validation."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain import toy

from study.engine.inference import everything
from study.engine.protocol import Protocol
from study.engine.seed_block import Block
from study.engine.threshold import (
    ValidatedThreshold,
    best_balanced_accuracy,
    best_threshold,
    diagnose,
    relative_threshold,
)
from study.engine.training import Trainer, run

SAMPLES = st.lists(st.tuples(st.integers(-6, 6), st.booleans()), min_size=2, max_size=40)


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


def best_by_trial(signal, minority):
    """Every middle of two neighbors, and the share of both classes that it puts on their side."""
    levels = sorted(set(signal))
    few, many = ([s for s, m in zip(signal, minority, strict=True) if m == own] for own in (1, 0))
    return {
        (a + b) / 2: sum(s > (a + b) / 2 for s in few) * len(many)
        + sum(s < (a + b) / 2 for s in many) * len(few)
        for a, b in pairwise(levels)
    }


@given(SAMPLES)
def test_the_best_threshold_is_the_best_of_all_middles(samples):
    signal, minority = zip(*samples, strict=True)
    tried = best_by_trial(signal, minority)
    if not tried or len(set(minority)) == 1:
        return
    found = best_threshold(torch.tensor(signal).double(), torch.tensor(minority))
    assert tried[found] == max(tried.values())
    assert found == min(place for place, gain in tried.items() if gain == tried[found])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_threshold_moves_with_the_signal_and_not_with_the_order(dtype):
    generator = torch.Generator().manual_seed(0)
    signal = torch.randn(200, generator=generator, dtype=dtype)
    minority = torch.rand(200, generator=generator) < 0.1
    signal[minority] += 1
    order = torch.randperm(200, generator=generator)
    threshold = best_threshold(signal, minority)
    assert best_threshold(signal[order], minority[order]) == threshold
    assert best_threshold(4 * signal, minority) == pytest.approx(4 * threshold)
    assert best_threshold(signal + 8, minority) == pytest.approx(threshold + 8, abs=1e-5)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("method", ["lf_sbn", "wlf_wbn"])
def test_thresholds_are_those_of_five_runs_of_their_own(method):
    protocol = toy(method, epochs=3)
    validated = ValidatedThreshold(protocol, [3, 4], Trainer)
    at = {epoch: validated.at(epoch).tolist() for epoch in (1, 3)}
    folds = [
        Trainer(replace(protocol, evaluate_on="validation", fold=fold), [3, 4]) for fold in range(5)
    ]
    for epoch in (1, 2, 3):
        signals, labels = ([], []), ([], [])
        for fold in folds:
            fold.train_epoch()
            logits = fold.logits("batch_average")
            for s in (0, 1):
                signals[s].extend((logits[s, :, 0] - logits[s, :, 1]).tolist())
                labels[s].extend((fold.data.eval_labels[s] == 0).tolist())
        assert [len(own) for own in signals] == [74, 74]
        assert [sum(own) for own in labels] == [14, 14]
        for s in (0, 1) if epoch in at else ():
            tried = best_by_trial(signals[s], labels[s])
            best = max(tried.values())
            assert at[epoch][s] == pytest.approx(
                min(t for t, gain in tried.items() if gain == best), rel=1e-9
            )


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_threshold_is_subtracted_and_leaves_the_rest_alone(dtype):
    changes = {"epochs": 3, "eval_epochs": (1, 3), "dtype": dtype}
    kinds = ("validated_threshold", "batch_average", "moving_average")
    with_it = run(toy(inference=kinds, **changes), [3, 4], progress=False)
    without = run(toy(inference=kinds[1:], **changes), [3, 4], progress=False)
    moved = with_it[with_it.inference == "validated_threshold"].reset_index(drop=True)
    rest = with_it[with_it.inference != "validated_threshold"].reset_index(drop=True)
    columns = [name for name in rest if name != "protocol"]
    pd.testing.assert_frame_equal(rest[columns], without[columns], check_exact=True)
    same = ["seed", "epoch", "train_loss", "average_precision"]
    average = rest[rest.inference == "batch_average"].reset_index(drop=True)
    pd.testing.assert_frame_equal(moved[same], average[same])
    assert not moved.accuracy_minority.equals(average.accuracy_minority)


@pytest.mark.usefixtures("toys")
def test_predictions_are_those_of_the_moved_signal():
    trainer = Trainer(toy(inference="validated_threshold"), [3, 4])
    thresholds = []
    for _ in range(2):
        trainer.train_epoch()
        plain, moved = (trainer.logits(k) for k in ("batch_average", "validated_threshold"))
        threshold = ValidatedThreshold(trainer.protocol, [3, 4], Trainer).at(trainer.epoch)
        signal = plain[..., 0] - plain[..., 1]
        assert torch.equal(moved.argmax(-1) == 0, signal > threshold[:, None])
        assert torch.equal(trainer.logits("validated_threshold"), moved)  # asked twice
        thresholds.append(threshold)
    assert not torch.isclose(*thresholds).any()


@pytest.mark.usefixtures("toys")
def test_a_threshold_never_sees_the_test_set():
    trainer = Trainer(toy(inference="validated_threshold"), [3, 4])
    trainer.data.eval_images = trainer.data.eval_labels = None
    trainer.train_epoch()
    for fold in trainer.validated_threshold.folds:
        held_out = fold.data.eval_images
        assert held_out.shape[1] + fold.data.rows.shape[1] == 74
        whole = Block(trainer.protocol, [3, 4])
        for s in (0, 1):
            trained_on = {tuple(row) for row in whole.pool[whole.rows[s]].tolist()}
            assert {tuple(row) for row in held_out[s].tolist()} <= trained_on
    assert trainer.validated_threshold.at(1).isfinite().all()


@pytest.mark.usefixtures("toys")
def test_networks_for_validation_have_the_choices_of_the_others():
    protocol = toy(inference=("validated_threshold", "pooled"), diagnosis="none", activation="tanh")
    for number, fold in enumerate(ValidatedThreshold(protocol, [3], Trainer).folds):
        changed = {k: v for k, v in vars(fold.protocol).items() if v != vars(protocol)[k]}
        expected = {"evaluate_on": "validation", "inference": ("batch_average",), "fold": number}
        assert changed == {k: v for k, v in expected.items() if v != vars(protocol)[k]}
