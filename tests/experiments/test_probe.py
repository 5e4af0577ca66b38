"""Test images among training images, under either weight."""

import pandas as pd
import pytest

from wbn.experiments.probe import taken_for_minority
from wbn.experiments.protocol import Protocol
from wbn.experiments.training import Trainer


def trained(method, **changes):
    protocol = Protocol.paper("iii", method, **changes).resolved()
    trainer = Trainer(protocol, seeds=[0, 1])
    for _ in range(5):
        trainer.train_epoch()
    return trainer


def shares(trainer):
    return {w: taken_for_minority(trainer, w, every=50) for w in ("minority", "majority")}


def test_standard_bn_does_not_see_the_weight():
    found = shares(trained("wlf_sbn"))
    pd.testing.assert_frame_equal(found["minority"], found["majority"])
    assert found["minority"].minority.gt(0.5).all()
    assert found["minority"].majority.lt(0.5).all()


def test_weighted_bn_does():
    found = shares(trained("wlf_wbn"))
    assert found["minority"].majority.gt(found["majority"].majority).all()


@pytest.mark.parametrize(("size", "minority"), [(100, 1), (500, 3)])
def test_batches_are_composed_as_in_training(size, minority, monkeypatch):
    trainer = trained("wlf_wbn", batch_size=size, last_batch="drop")
    seen = []
    forward = trainer.network.forward
    monkeypatch.setattr(trainer.network, "forward", lambda x, w: seen.append(w) or forward(x, w))
    for weigh_as, heavy in (("minority", minority), ("majority", minority - 1)):
        taken_for_minority(trainer, weigh_as, every=1000)
        assert seen[-1].shape == (2, size, 1)
        assert (seen[-1] == trainer.data.weights.max()).sum(1).flatten().tolist() == [heavy] * 2
