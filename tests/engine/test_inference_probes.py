"""Test images among training images, under either weight."""

import pytest

from study.engine.inference import logits_among_training_images
from study.engine.protocol import PROBES, Protocol
from study.engine.training import Trainer


def shares_of_majority_weight(method):
    """Both classes' accuracies under either weight, of one seed after five epochs."""
    protocol = Protocol.paper("iii", method, epochs=5, eval_epochs=(5,), inference=PROBES)
    trainer = Trainer(protocol.resolved(), [0])
    for _ in range(5):
        trainer.train_epoch()
    data = trainer.data  # one test image in ten is enough to tell
    data.eval_images, data.eval_labels = data.eval_images[:, ::10], data.eval_labels[:, ::10]
    scores = ["accuracy_minority", "accuracy_majority"]
    return (trainer.evaluate(probe).loc[0, scores] for probe in PROBES)


def test_standard_bn_does_not_see_the_weight():
    heavy, light = shares_of_majority_weight("wlf_sbn")
    assert heavy.equals(light)
    assert heavy.min() > 0.8


def test_weighted_bn_does():
    heavy, light = shares_of_majority_weight("wlf_wbn")
    assert heavy.accuracy_minority > light.accuracy_minority
    assert heavy.accuracy_majority < light.accuracy_majority


@pytest.mark.parametrize("fold", [{}, {"evaluate_on": "validation"}])
@pytest.mark.parametrize(("size", "minority"), [(100, 1), (500, 3)])
def test_batches_are_composed_as_in_training(size, minority, fold, monkeypatch):
    trainer = Trainer(Protocol.paper("iii", "wlf_wbn", batch_size=size, **fold).resolved(), [0, 1])
    data, network, seen = trainer.data, trainer.network, []
    forward, least, most = network.forward, data.weights.min(), data.weights.max()
    monkeypatch.setattr(network, "forward", lambda x, w: seen.append((x, w)) or forward(x, w))
    data.eval_images = data.eval_images[:, :2]
    for weight, heavy in ((most, minority), (least, minority - 1)):
        logits = logits_among_training_images(network, data, size, weight)
        assert logits.shape == (2, 2, 2)
        (image, first), (_, second) = seen[-2:]
        assert image.shape[:2] == (2, size)
        assert image[:, 0].equal(data.eval_images[:, 0])
        assert (first == most).sum(1).flatten().tolist() == [heavy] * 2
        assert (second == most).sum(1).flatten().tolist() == [heavy] * 2
    assert seen[0][0].equal(seen[2][0])  # the rest of the batch does not depend on the weight
    assert not seen[0][0][:, 1:].equal(seen[1][0][:, 1:])


def test_a_plain_loss_has_no_weights_to_probe():
    with pytest.raises(ValueError, match="need a weighted loss"):
        Protocol.paper("iii", "lf_sbn", inference="minority_weight")
