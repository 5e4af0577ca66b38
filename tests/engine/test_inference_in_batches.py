"""Test images in batches of their own, against each batch by hand."""

from dataclasses import replace

import pytest
import torch
from plain import EXPERIMENTS, Plain, toy

from study.engine.inference import logits_in_batches
from study.engine.protocol import IN_BATCHES
from study.engine.training import Trainer

pytestmark = pytest.mark.usefixtures("toys")
NORM_WEIGHTS = {
    "hidden_norm": "weighted", "output_norm": "weighted", "norm_weighting": "inverse_frequency"
}  # fmt: skip


def trained(protocol):
    trainer, alone = Trainer(protocol, [3, 4]), [Plain(protocol, seed) for seed in (3, 4)]
    for each in (trainer, *alone):
        each.train_epoch()
    return trainer, alone


@pytest.mark.parametrize("experiment", EXPERIMENTS)
@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("lf_sbn", {}),
        ("wlf_sbn", {"correction": "none"}),
        ("wlf_wbn", {}),
        ("wlf_wbn", {"statistics": "detached", "activation": "tanh"}),
        ("wlf_wbn", {"input_scaling": "standardized_apart"}),
        ("lf_sbn", NORM_WEIGHTS),
    ],
)
def test_each_batch_is_normalized_by_itself(method, changes, experiment):
    trainer, alone = trained(toy(method, experiment, inference=IN_BATCHES, **changes))
    for kind in IN_BATCHES:
        logits = trainer.logits(kind)
        for s, plain in enumerate(alone):
            order = plain.file
            if kind.startswith("sorted"):
                order = sorted(order, key=lambda place: plain.test_y[place])
                order = sorted(order)  # within a class too, as stored
                assert plain.test_y[order].diff().min() >= 0
            size = int(kind.split("_")[-1]) if "batches" in kind else len(order)
            expected = plain.in_batches(order, size, kind.startswith("weighted"))
            torch.testing.assert_close(logits[s], expected.detach(), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("kind", "sizes"), [("test_batches_10", [10, 10, 10, 11]),
                                             ("test_batches_20", [20, 21]),
                                             ("sorted_test_batches_100", [41]),
                                             ("weighted_test", [41])])  # fmt: skip
def test_batches_hold_each_image_once_and_a_single_last_one_joins(kind, sizes, monkeypatch):
    trainer, seen = Trainer(toy(inference=IN_BATCHES), [3, 4]), []
    monkeypatch.setattr(
        trainer.network, "forward", lambda x, w: seen.append((x, w)) or x[..., 2:4] + 0.0
    )
    logits = logits_in_batches(trainer.network, trainer.data, kind)
    assert [x.shape[1] for x, _ in seen] == sizes
    assert torch.equal(logits, trainer.data.eval_images[..., 2:4])  # each at its own place
    assert all((w is None) != kind.startswith("weighted") for _, w in seen)


def test_images_come_in_the_order_of_the_file_or_of_the_classes(monkeypatch):
    trainer, seen = Trainer(toy(inference=IN_BATCHES), [3, 4]), []
    data = trainer.data
    monkeypatch.setattr(trainer.network, "forward", lambda x, w: seen.append(x) or x[..., :2])
    images, labels = data.data_set.load(False)
    of_both = images[(labels == 1) | (labels == 3)].double() / 40
    for kind, expected in (("test_batches_10", of_both), ("sorted_test_batches_10", None)):
        seen.clear()
        logits_in_batches(trainer.network, data, kind)
        for s in (0, 1):
            given = torch.cat(seen, 1)[s]
            if expected is None:
                expected = torch.cat([images[labels == digit].double() / 40 for digit in (3, 1)])
            assert torch.equal(given, expected)


def test_standard_bn_does_not_see_weights_and_weighted_bn_does():
    for method, same in (("lf_sbn", True), ("wlf_sbn", True), ("wlf_wbn", False)):
        trainer, _ = trained(toy(method, inference=IN_BATCHES))
        for kind in ("test_batches_100", "weighted_test_batches_100", "weighted_test"):
            pairs = trainer.logits(kind), trainer.logits("test_batches_100")
            assert torch.equal(*pairs) == (same or kind == "test_batches_100")


def test_all_images_as_one_batch_without_weights_is_the_evaluation_set():
    trainer, _ = trained(toy(inference=["evaluation_set", "test_batches_100"]))
    pairs = (trainer.logits(kind) for kind in trainer.protocol.inference)
    torch.testing.assert_close(*pairs)


def test_a_look_at_test_batches_changes_nothing_that_follows():
    protocol = toy(inference=["batch_average", "moving_average", "weighted_test", *IN_BATCHES[:3]])
    looking, blind = Trainer(protocol, [3]), Trainer(replace(protocol), [3])
    for _ in range(2):
        looking.train_epoch()
        blind.train_epoch()
        for kind in IN_BATCHES:
            looking.logits(kind)
    for kind in ("batch_average", "moving_average"):
        assert torch.equal(looking.logits(kind), blind.logits(kind))
