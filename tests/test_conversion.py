"""Models turned to weighted batch norm and back."""

import copy
import io

import pytest
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch.nn.utils import parametrize
from torch.optim.swa_utils import update_bn
from torch.testing import assert_close

from wbn import conversion
from wbn.context import sample_weights
from wbn.conversion import convert, register, revert
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
    def forward(self, x):
        return super().forward(x) + 1


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
    assert [layer.correction for layer in model] == ["reliability", "none", "none"]
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


# Classes of others ---------------------------------------------------------------------


class OtherDefaults(nn.BatchNorm2d):
    """Torch's forward, as many projects have it."""

    def __init__(self, channels):
        super().__init__(channels, eps=1e-3, momentum=0.01)


class NormAct(nn.BatchNorm2d):
    """As timm's: a forward and children of its own."""

    def __init__(self, channels):
        super().__init__(channels)
        self.drop, self.act = nn.Dropout(0.0), nn.PReLU()

    def forward(self, x):
        return self.act(self.drop(super().forward(x)))


@pytest.fixture
def registered(monkeypatch):
    for name in ("_WEIGHTED", "_PLAIN", "_AFTER"):
        monkeypatch.setattr(conversion, name, dict(getattr(conversion, name)))
    register(NormAct, lambda layer, y: layer.act(layer.drop(y)))


def trained_twins(make):
    """A model with weights of one and without, trained for a step from the same start."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), make(4))
    twin = copy.deepcopy(model)
    convert(twin)
    x = torch.randn(6, 3, 5, 5)
    for network in (model, twin):
        with sample_weights(torch.ones(6) if network is twin else None):
            network(x).square().sum().backward()
    return model, twin, x


@pytest.mark.parametrize("make", [OtherDefaults, NormAct])
def test_derived_classes_go_there_and_back(make, registered):
    model, twin, x = trained_twins(make)
    assert isinstance(twin[1], WeightedBatchNorm2d)
    assert isinstance(twin[1], make)
    assert type(twin[1]).__name__ == f"Weighted{make.__name__}"
    assert list(twin.state_dict()) == list(model.state_dict())
    for a, b in zip(model.parameters(), twin.parameters(), strict=True):
        assert_close(a.grad, b.grad, rtol=1e-3, atol=1e-4)
    assert_close(twin.state_dict(), model.state_dict())
    expected = twin.eval()(x)
    assert_close(expected, model.eval()(x))
    assert type(revert(twin)[1]) is make
    assert torch.equal(twin(x), expected)
    assert vars(twin[1]).keys() == vars(model[1]).keys()


def test_weights_reach_a_registered_class(registered):
    layer, x, w = convert(NormAct(3)), torch.randn(4, 3, 2, 2), torch.arange(1.0, 5)
    expected = layer.act(WeightedBatchNorm2d(3)(x, w))
    assert_close(layer(x, w), expected)
    with sample_weights(w):
        assert_close(layer(x), expected)


@pytest.mark.parametrize("make", [OtherDefaults, NormAct])
def test_converted_derived_classes_are_copied_and_pickled(make, registered, monkeypatch):
    layer, x = convert(make(3)), torch.randn(4, 3, 2, 2)
    layer(x)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for other in (copy.deepcopy(layer), loaded):
        assert type(other) is type(layer)
        assert torch.equal(other.eval()(x), layer.eval()(x))
    if make is NormAct:
        file.seek(0)
        monkeypatch.setattr(conversion, "_WEIGHTED", {})
        monkeypatch.setattr(conversion, "_AFTER", {})
        with pytest.raises(ValueError, match=r"NormAct has no .*wbn.register for it before load"):
            torch.load(file, weights_only=False)


def test_a_class_can_be_registered_anew(registered):
    first = convert(NormAct(3))
    register(NormAct, lambda layer, y: 0 * y)
    second = convert(NormAct(3))
    assert (second(torch.randn(4, 3, 2, 2)) == 0).all()
    assert type(revert(first)) is type(revert(second)) is NormAct


@pytest.mark.parametrize("plain", [nn.BatchNorm2d, nn.SyncBatchNorm, nn.LayerNorm])
def test_only_classes_derived_from_torchs_are_registered(plain):
    with pytest.raises(ValueError, match=f"{plain.__name__} is not derived from BatchNorm1d"):
        register(plain, lambda layer, y: y)


# Which layers --------------------------------------------------------------------------


def tower():
    block = nn.Sequential
    shared = nn.BatchNorm1d(2)
    return nn.ModuleDict(
        {"stem": nn.BatchNorm1d(2), "a": block(nn.BatchNorm1d(2), shared), "head": block(shared)}
    )


@pytest.mark.parametrize(
    ("options", "converted"),
    [
        ({}, ["stem", "a.0", "a.1"]),
        ({"only": "stem"}, {"stem"}),
        ({"only": "a"}, {"a.0", "a.1"}),
        ({"only": ["stem", "a.0"]}, {"stem", "a.0"}),
        ({"exclude": "*.0"}, {"stem"}),
        ({"exclude": "head"}, {"stem", "a.0"}),
        ({"only": "a", "exclude": ("head.0",)}, {"a.0"}),
        ({"only": lambda name, layer: name == "head.0"}, {"a.1"}),
        ({"exclude": lambda name, layer: "." in name}, {"stem"}),
    ],
)  # fmt: skip
def test_which_layers(options, converted):
    model = tower()
    convert(model, **options)
    weighted = {n for n, m in model.named_modules() if isinstance(m, WeightedBatchNorm1d)}
    assert weighted == set(converted)
    revert(model)
    assert not any(isinstance(m, WeightedBatchNorm1d) for m in model.modules())


@pytest.mark.parametrize("argument", ["only", "exclude"])
def test_a_name_that_no_layer_has(argument):
    model = tower()
    with pytest.raises(ValueError, match=rf"{argument}: .* called 'classifier', only 'stem', 'a"):
        convert(model, **{argument: ["stem", "classifier"]})
    assert type(model["stem"]) is nn.BatchNorm1d


def test_nothing_to_convert_is_noticed():
    with pytest.warns(UserWarning, match="no batch norm to .* in Linear, which has 0") as caught:
        convert(nn.Linear(2, 2))
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="in ModuleDict, which has 3"):
        convert(tower(), exclude=lambda name, layer: True)
    convert(convert(tower()))  # nothing left to do is no mistake


def test_excluded_layers_may_be_of_any_class():
    model = nn.Sequential(nn.BatchNorm1d(3), nn.SyncBatchNorm(3))
    convert(model, exclude="1")
    assert [type(m) for m in model] == [WeightedBatchNorm1d, nn.SyncBatchNorm]


def test_the_process_group_is_passed_on():
    model = convert(tower(), process_group="world")
    assert model["head"][0].process_group == "world"
    assert model["head"][0].path == "a.1"


# Those who drop the weights ------------------------------------------------------------


def test_synchronized_layers_in_place_of_ours_are_noticed():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(model))
    with pytest.warns(UserWarning, match=r"convert_sync_batchnorm .*process_group='world'"):
        nn.SyncBatchNorm.convert_sync_batchnorm(convert(model))


def test_statistics_from_torchs_averaging_of_weights_are_noticed():
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    loader = [torch.randn(4, 2)]
    update_bn(loader, model)
    with pytest.warns(UserWarning, match=r"update_bn calls .*wbn\.population_statistics"):
        update_bn(loader, convert(model))
    assert list(model[1].named_children()) == []
