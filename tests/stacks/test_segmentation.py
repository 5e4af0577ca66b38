"""segmentation-models-pytorch: pixel weights at all resolutions of a U-Net, and ignored pixels."""

import pytest
import segmentation_models_pytorch as smp
import torch

import wbn


@pytest.fixture
def unet():
    torch.manual_seed(0)
    return smp.Unet(
        "resnet18", encoder_weights=None, decoder_channels=(64, 32, 16, 8, 8), classes=3
    )


def test_a_model_goes_there_and_back(unet, images, goes_there_and_back):
    goes_there_and_back(unet, images.x)


@pytest.mark.parametrize("resize", ["area", "nearest"])
def test_weights_of_pixels_reach_every_resolution(unet, images, resize):
    x = images.x[:4]
    labels = torch.randint(3, (4, 64, 64), generator=torch.Generator().manual_seed(0))
    labels[:, :8] = 255
    counts = wbn.class_counts(labels, ignore_index=255)
    w = wbn.per_sample(wbn.inverse_frequency(counts), labels, ignore_index=255)
    wbn.convert(unet)
    seen = set()
    for layer in unet.modules():
        if isinstance(layer, wbn.WeightedBatchNorm2d):
            layer.register_forward_pre_hook(lambda layer, args: seen.add(args[0].shape[-1]))
    with wbn.sample_weights(w, resize):
        loss = wbn.weighted_cross_entropy(unet(x), labels, ignore_index=255)
    loss.backward()
    assert seen == {2, 4, 8, 16, 32, 64}
    assert all(p.grad.isfinite().all() for p in unet.parameters() if p.grad is not None)
    with pytest.raises(ValueError, match="give sample_weights a resize"), wbn.sample_weights(w):
        unet(x)


def test_constant_weights_of_pixels_are_weights_of_samples(unet, images):
    x, w = images.x[:4].double(), torch.tensor([1.0, 2.0, 3.0, 0.5]).double()
    wbn.convert(unet.double())
    with wbn.sample_weights(w):
        of_samples = unet(x)
    with wbn.sample_weights(w.view(4, 1, 1).expand(4, 64, 64), "area"):
        of_pixels = unet(x)
    torch.testing.assert_close(of_pixels, of_samples)
