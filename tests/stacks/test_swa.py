"""torch's averaging of weights: its own statistics are noticed, ours take its place."""

import pytest
import torch
from torch.optim.swa_utils import AveragedModel, update_bn

import wbn


def test_averaged_weights_and_their_statistics(images, small, by_hand):
    wbn.convert(small)
    averaged = AveragedModel(small)
    for _ in range(2):
        by_hand(small)
        averaged.update_parameters(small)
    with pytest.warns(UserWarning, match=r"update_bn .*wbn\.population_statistics"):
        update_bn(images.loader(), averaged)
    unweighted = averaged.module[1].running_mean.clone()

    def unpack(batch):
        return batch[0], images.weights(batch[1])

    wbn.population_statistics(averaged, images.loader(), "batch_average", unpack)
    means = []
    for batch in images.loader():
        x, w = unpack(batch)
        means.append(wbn.weighted_moments(averaged.module[0](x), w)[0])
    expected = torch.stack(means).mean(0).detach()
    torch.testing.assert_close(averaged.module[1].running_mean, expected)
    assert not torch.allclose(unweighted, expected)
    assert type(wbn.revert(averaged).module[1]) is torch.nn.BatchNorm2d
