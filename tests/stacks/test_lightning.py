"""Lightning: weights in `training_step`, its averaging of weights, its synchronized batch norm."""

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import StochasticWeightAveraging
from lightning.pytorch.plugins.layer_sync import TorchSyncBatchNorm

import wbn


class Classifier(lightning.LightningModule):
    def __init__(self, model, weights):
        super().__init__()
        self.model, self.weights = model, weights

    def training_step(self, batch, index):
        x, labels = batch
        with wbn.sample_weights(self.weights(labels)):
            return wbn.weighted_cross_entropy(self.model(x), labels)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit(model, images, folder, **options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = lightning.Trainer(
        accelerator="cpu", enable_checkpointing=False, default_root_dir=folder, **quiet, **options
    )
    trainer.fit(Classifier(model, images.weights), images.loader())
    return model


def test_fit_is_the_plain_loop(images, small, by_hand, tmp_path):
    state = small.state_dict()
    start = {name: value.clone() for name, value in state.items()}
    fitted = fit(wbn.convert(small), images, tmp_path, max_epochs=2).state_dict()
    fitted = {name: value.clone() for name, value in fitted.items()}
    small.load_state_dict(start)
    torch.testing.assert_close(fitted, dict(by_hand(small, epochs=2)))


def test_averaged_weights_have_weighted_statistics(images, small, tmp_path):
    """Lightning renews the statistics with `training_step`, so that weights get through."""
    averaging = StochasticWeightAveraging(swa_lrs=0.01, swa_epoch_start=1)
    fit(wbn.convert(small), images, tmp_path, max_epochs=3, callbacks=[averaging])
    found = small[1].running_mean.clone()

    def off(weights):
        """How far they are from those with these weights."""

        def unpack(batch):
            return batch[0], weights(batch[1])

        wbn.population_statistics(small, images.loader(), "batch_average", unpack)
        return (small[1].running_mean - found).abs().max()

    # Not exactly: Lightning makes a small step after renewing them, also with plain layers.
    assert off(images.weights) < 1e-3
    assert off(lambda labels: None) > 5e-3


def test_its_synchronized_batch_norm_is_noticed(small):
    with pytest.warns(UserWarning, match=r"sync_batchnorm=True .*wbn\.convert"):
        TorchSyncBatchNorm().apply(wbn.convert(small))
