"""timm: models of many families, whose batch norm comes with activation and drop."""

import pickle

import pytest
import timm
import torch
from timm.layers import BatchNormAct2d, convert_sync_batchnorm

import wbn

MODELS = (
    "resnet18", "efficientnet_b0", "mobilenetv3_small_100", "densenet121", "regnety_002",
    "resnetv2_50d", "legacy_seresnet18", "dla34", "ghostnet_100", "repvgg_a0", "levit_128s",
    "cspresnet50", "tf_efficientnetv2_b0", "mobilevit_xxs",
)  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_a_model_goes_there_and_back(name, images, goes_there_and_back):
    torch.manual_seed(0)
    model = timm.create_model(name, num_classes=2, drop_rate=0.0)
    if name != "levit_128s":
        return goes_there_and_back(model, images.x)
    # It has one size of images, and normalizes the tokens of all images as one batch.
    x = torch.nn.functional.interpolate(images.x[:3], 224)
    goes_there_and_back(model, x, resize=lambda w, shape: w.repeat_interleave(shape[0] // len(w)))


def test_activation_and_drop_stay():
    layer = BatchNormAct2d(3, act_layer=torch.nn.SiLU, drop_layer=torch.nn.Dropout)
    x = torch.randn(2, 3, 4, 4)
    torch.manual_seed(0)
    expected = layer(x)
    wbn.convert(layer)
    torch.manual_seed(0)
    assert torch.equal(layer(x), expected)
    assert isinstance(layer, wbn.WeightedBatchNorm2d)
    assert isinstance(layer, BatchNormAct2d)
    assert [name for name, _ in layer.named_children()] == ["drop", "act"]
    assert torch.equal(pickle.loads(pickle.dumps(layer)).eval()(x), layer.eval()(x))


def test_synchronized_layers_of_timm_are_noticed():
    model = wbn.convert(timm.create_model("mobilenetv3_small_100"))
    with pytest.warns(UserWarning, match=r"convert_sync_batchnorm .*wbn\.convert"):
        convert_sync_batchnorm(model)


@pytest.mark.parametrize("name", ["resnet18", "densenet121", "efficientnet_b0"])
def test_its_checkpoints_compute_with_the_weights(name, images):
    """With the backward pass outside of the context."""
    found = []
    for checkpointed in (False, True):
        torch.manual_seed(0)
        model = wbn.convert(timm.create_model(name, num_classes=2, drop_rate=0.0))
        model.set_grad_checkpointing(checkpointed)
        with wbn.sample_weights(torch.linspace(1, 3, len(images.x))):
            y = model(images.x)
        y.pow(2).sum().backward()
        found.append([p.grad for p in model.parameters()])
    torch.testing.assert_close(*found)
