"""Models turned to weighted batch norm and back."""

import copy

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.nn.utils import parametrize
from torch.testing import assert_close

from wbn.context import sample_weights
from wbn.conversion import convert, revert
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d, WeightedBatchNorm3d

WEIGHTED = {
    nn.BatchNorm1d: WeightedBatchNorm1d,
    nn.BatchNorm2d: WeightedBatchNorm2d,
    nn.BatchNorm3d: WeightedBatchNorm3d,
}


@pytest.mark.parametrize("plain", WEIGHTED)
@pytest.mark.parametrize("correction", ["frequency", "reliability", "none"])
def test_a_layer_is_a_model(plain, correction):
    options = {"eps": 0.1, "momentum": None, "affine": False}
    layer = convert(plain(3, **options), correction)
    assert type(layer) is WEIGHTED[plain]
    assert layer.correction == correction
    assert (layer.eps, layer.momentum, layer.affine) == (0.1, None, False)
    layer = revert(layer)
    assert type(layer) is plain
    assert repr(layer) == repr(plain(3, **options))
    assert vars(layer).keys() == vars(plain(3)).keys()


def test_everything_else_stays():
    model = nn.Sequential(nn.Linear(4, 3), nn.Sequential(nn.BatchNorm1d(3), nn.Dropout()))
    model = model.to(torch.float64).train()
    layer = model[1][0].eval()
    layer.bias.requires_grad_(False)
    layer.weight.data.copy_(torch.tensor([1.0, 2.0, 3.0]))
    seen = []
    layer.register_forward_hook(lambda module, args, output: seen.append(module))
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    flags = [module.training for module in model.modules()]

    for turn in (convert, revert):
        assert turn(model) is model
        after = {**dict(model.named_parameters()), **dict(model.named_buffers())}
        assert list(after) == list(tensors)
        assert all(after[name] is tensors[name] for name in tensors)
        assert [module.training for module in model.modules()] == flags
        assert [p.requires_grad for p in model.parameters()] == [True, True, True, False]
        model(torch.ones(2, 4, dtype=torch.float64))
        assert seen.pop() is model[1][0]


def test_a_shared_layer_stays_shared():
    layer = nn.BatchNorm1d(3)
    model = convert(nn.ModuleDict({"a": layer, "b": nn.Sequential(layer)}))
    assert type(model["a"]) is WeightedBatchNorm1d
    assert model["a"] is model["b"][0]


def test_an_optimizer_made_before_goes_on():
    model = nn.Sequential(nn.BatchNorm1d(3))
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    convert(model)(
        torch.randn(4, 3),
    ).sum().backward()
    optimizer.step()
    assert_close(model[0].bias.data, torch.full((3,), -4.0))


class Double(nn.Module):
    def forward(self, x):
        return 2 * x


def test_a_parametrized_layer():
    torch.manual_seed(0)
    model = nn.Sequential(nn.BatchNorm1d(3))
    parametrize.register_parametrization(model[0], "weight", Double())
    x, w = torch.randn(5, 3), torch.arange(1.0, 6)
    convert(model, "reliability")
    assert isinstance(model[0], WeightedBatchNorm1d)
    assert parametrize.is_parametrized(model[0], "weight")
    with sample_weights(w):
        y = model(x)
    assert_close(y, 2 * WeightedBatchNorm1d(3, correction="reliability")(x, w))
    assert_close(copy.deepcopy(model).eval()(x), model.eval()(x))
    expected = model(x)
    revert(model)
    assert not isinstance(model[0], WeightedBatchNorm1d)
    assert torch.equal(model(x), expected)
    parametrize.remove_parametrizations(model[0], "weight")
    assert type(model[0]) is nn.BatchNorm1d
    assert_close(model[0].weight.data, torch.full((3,), 2.0))


class Derived(nn.BatchNorm1d):
    pass


class DerivedFromOurs(WeightedBatchNorm1d):
    pass


@pytest.mark.parametrize(
    "other", [nn.LazyBatchNorm1d, lambda: nn.SyncBatchNorm(3), lambda: Derived(3)]
)
def test_layers_without_a_counterpart(other):
    model = nn.Sequential(nn.BatchNorm1d(3), nn.ModuleDict({"odd": other()}))
    with pytest.raises(ValueError, match=r"layer '1.odd' is a (Lazy|Sync|Derived).*counterpart"):
        convert(model)
    assert type(model[0]) is nn.BatchNorm1d
    convert(model[0])
    assert type(model[0]) is WeightedBatchNorm1d


def test_a_lazy_layer_after_its_first_input():
    model = nn.Sequential(nn.LazyBatchNorm1d())
    model(torch.randn(4, 3))
    assert type(convert(model)[0]) is WeightedBatchNorm1d


def test_weighted_layers_are_left_alone():
    model = nn.Sequential(
        nn.BatchNorm1d(3), WeightedBatchNorm1d(3, correction="none"), DerivedFromOurs(3)
    )
    convert(model, "reliability")
    assert [layer.correction for layer in model] == ["reliability", "none", "frequency"]
    with pytest.raises(ValueError, match="'2' is a DerivedFromOurs"):
        revert(model)
    assert type(model[0]) is WeightedBatchNorm1d


def test_unknown_correction():
    model = nn.Sequential(nn.BatchNorm1d(3))
    with pytest.raises(ValueError, match="correction is 'biased'"):
        convert(model, "biased")
    assert type(model[0]) is nn.BatchNorm1d


def test_a_resnet_from_conversion_to_export():
    torch.manual_seed(0)
    model = torchvision.models.resnet18(num_classes=4)
    names = list(model.state_dict())
    convert(model)
    layers = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    assert len(layers) == 20
    assert {type(m) for m in layers} == {WeightedBatchNorm2d}

    x, target = torch.randn(8, 3, 64, 64), torch.arange(8) % 4
    w = torch.tensor([1.0, 1.0, 2.0, 4.0] * 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    twin = copy.deepcopy(model)
    for _ in range(2):
        optimizer.zero_grad()
        with sample_weights(w):
            losses = F.cross_entropy(model(x), target, reduction="none")
        ((w * losses).sum() / w.sum()).backward()
        optimizer.step()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    twin(x)
    assert not torch.allclose(model.bn1.running_mean, twin.bn1.running_mean)

    model.eval()
    with torch.no_grad():
        expected = model(x)
        revert(model)
        assert {type(m) for m in layers} == {nn.BatchNorm2d}
        assert list(model.state_dict()) == names
        assert torch.equal(model(x), expected)
        exported = torch.export.export(model, (x,)).module()
        assert_close(exported(x), expected)
