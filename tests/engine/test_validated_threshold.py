"""A validated threshold, against all thresholds there are and against five runs of its own."""

from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain import toy

from study.engine.seed_block import Block
from study.engine.training import Trainer, run
from study.engine.validated_threshold import ValidatedThreshold, best_threshold

SAMPLES = st.lists(st.tuples(st.integers(-6, 6), st.booleans()), min_size=2, max_size=40)


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
    for fold in trainer.threshold.folds:
        held_out = fold.data.eval_images
        assert held_out.shape[1] + fold.data.rows.shape[1] == 74
        whole = Block(trainer.protocol, [3, 4])
        for s in (0, 1):
            trained_on = {tuple(row) for row in whole.pool[whole.rows[s]].tolist()}
            assert {tuple(row) for row in held_out[s].tolist()} <= trained_on
    assert trainer.threshold.at(1).isfinite().all()


@pytest.mark.usefixtures("toys")
def test_networks_for_validation_have_the_choices_of_the_others():
    protocol = toy(inference=("validated_threshold", "pooled"), diagnosis="none", activation="tanh")
    for number, fold in enumerate(ValidatedThreshold(protocol, [3], Trainer).folds):
        changed = {k: v for k, v in vars(fold.protocol).items() if v != vars(protocol)[k]}
        expected = {"evaluate_on": "validation", "inference": ("batch_average",), "fold": number}
        assert changed == {k: v for k, v in expected.items() if v != vars(protocol)[k]}
