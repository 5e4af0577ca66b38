"""Statistics for inference against the paper's averages and against the whole set at once."""

import copy
from datetime import timedelta
from functools import partial
from itertools import pairwise

import pytest
import torch
import torch.distributed as dist
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.optim.swa_utils import update_bn
from torch.testing import assert_close

from wbn.context import sample_weights
from wbn.functional import weighted_moments
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d
from wbn.population import population_statistics as set_statistics
from wbn.weights import class_counts, inverse_frequency, per_sample

population_statistics = partial(set_statistics, unpack=lambda pair: pair)
MODES = ("batch_average", "weight_average", "pooled")
CORRECTIONS = ("frequency", "reliability", "none")
N = 24


def data(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn((N, *shape), generator=generator, dtype=torch.float64)
    return 3 * x + 5, 0.5 + 2 * torch.rand(N, generator=generator, dtype=torch.float64)


def cut(x, w, sizes):
    return list(zip(x.split(sizes), w.split(sizes), strict=True))


def network(correction="frequency", **options):
    torch.manual_seed(1)
    layers = [WeightedBatchNorm1d(width, correction=correction, **options) for width in (3, 2)]
    model = nn.Sequential(nn.Linear(4, 3), layers[0], nn.ReLU(), nn.Linear(3, 2), layers[1])
    return model.double(), layers


def statistics(layers):
    return [(layer.running_mean.clone(), layer.running_var.clone()) for layer in layers]


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_batch_average_is_the_paper(correction):
    """Averages of what each layer computes in training, over batches of different sizes."""
    model, layers = network(correction)
    batches = cut(*data(4), [10, 10, 4])
    stored = "reliability" if correction == "none" else correction
    records = {layer: [] for layer in layers}
    hooks = [
        layer.register_forward_pre_hook(lambda layer, args: records[layer].append(args[0]))
        for layer in layers
    ]
    for x, w in batches:
        with sample_weights(w):
            model(x)
    for hook in hooks:
        hook.remove()
    population_statistics(model, batches, "batch_average")
    for layer in layers:
        moments = [
            weighted_moments(x, w, stored)
            for x, (_, w) in zip(records[layer], batches, strict=True)
        ]
        assert_close(layer.running_mean, sum(mean for mean, _ in moments) / 3)
        assert_close(layer.running_var, sum(var for _, var in moments) / 3)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_batch_average_is_the_cumulative_average_of_training(correction):
    model, layers = network(correction)
    cumulative, others = network(correction, momentum=None)
    batches = cut(*data(4), [9, 8, 7])
    population_statistics(model, batches, "batch_average")
    for x, w in batches:
        with sample_weights(w):
            cumulative(x)
    assert_close(statistics(layers), statistics(others))
    assert [layer.num_batches_tracked for layer in layers] == [3, 3]


def test_plain_layers_are_those_of_torch():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.BatchNorm1d(3))
    twin = copy.deepcopy(model.double())
    x, _ = data(4)
    set_statistics(model, x.split(8), "batch_average")
    update_bn(x.split(8), twin)
    for name, value in twin.state_dict().items():
        assert_close(model.state_dict()[name], value)
    set_statistics(model, x.split(8), "pooled")
    var, mean = torch.var_mean(model[0](x), 0)
    assert_close([model[1].running_mean, model[1].running_var], [mean.detach(), var.detach()])


def test_weight_average_counts_a_batch_by_its_weight():
    layer = WeightedBatchNorm2d(3, correction="frequency").double()
    x, w = data(3, 2, 2)
    batches = cut(x, w, [11, 11, 2])
    population_statistics(layer, batches, "weight_average")
    moments = [weighted_moments(x, w, "frequency") for x, w in batches]
    shares = torch.stack([w.sum() for _, w in batches]) / w.sum()
    assert_close(layer.running_mean, shares @ torch.stack([mean for mean, _ in moments]))
    assert_close(layer.running_var, shares @ torch.stack([var for _, var in moments]))


def test_modes_differ_when_batches_do():
    x, w = data(3)
    order = x[:, 0].argsort()
    batches = cut(x[order], w[order], [10, 10, 4])
    results = []
    for mode in MODES:
        layer = WeightedBatchNorm1d(3).double()
        population_statistics(layer, batches, mode)
        results.append(layer.running_var[0])
    assert results[2] > 2 * results[1]
    assert not torch.isclose(results[0], results[1])


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.integers(1, N - 1), max_size=N - 1, unique=True),
    st.sampled_from(CORRECTIONS),
    st.sampled_from([(4,), (4, 3)]),
)
def test_pooled_does_not_depend_on_the_cuts(cuts, correction, shape):
    x, w = data(*shape)
    x[:, 0] += 1e4
    w[:5] = 0
    edges = [0, *sorted(cuts), N]
    sizes = [b - a for a, b in pairwise(edges)]
    results = []
    for batches in (cut(x, w, sizes), cut(x, w, [N])):
        torch.manual_seed(1)
        layers = [WeightedBatchNorm1d(4, correction=correction) for _ in "ab"]
        model = nn.Sequential(layers[0], nn.Tanh(), layers[1]).double()
        population_statistics(model, batches, "pooled")
        results.append(statistics(layers))
    assert_close(*results)


@pytest.mark.parametrize("correction", CORRECTIONS)
def test_pooled_is_the_whole_set_layer_by_layer(correction):
    model, layers = network(correction)
    x, w = data(4)
    population_statistics(model, cut(x, w, [7, 1, 16]), "pooled")
    model.eval()
    stored = "reliability" if correction == "none" else correction
    hidden = model[0](x)
    assert_close(statistics(layers)[0], weighted_moments(hidden, w, stored))
    later = model[3](model[2](model[1](hidden)))
    assert_close(statistics(layers)[1], weighted_moments(later, w, stored))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("correction", ["frequency", "reliability"])
def test_one_batch_of_everything_gives_the_training_outputs(mode, correction):
    model, _ = network(correction)
    x, w = data(4)
    population_statistics(model, [(x, w)], mode)
    assert model.training
    with sample_weights(w):
        expected = model(x)
    population_statistics(model, [(x, w)], mode)
    assert_close(model.eval()(x), expected)


@pytest.mark.parametrize("mode", MODES)
def test_no_weights_are_weights_of_one(mode):
    results = []
    x, _ = data(4)
    for weights in ([None] * 3, torch.ones(N).split(8)):
        model, layers = network()
        population_statistics(model, list(zip(x.split(8), weights, strict=True)), mode)
        results.append(statistics(layers))
    assert_close(*results)


class Reversed(nn.Module):
    """The layer that is registered last comes first, and is given its weights by hand."""

    def __init__(self):
        super().__init__()
        self.second = WeightedBatchNorm1d(3, correction="frequency")
        self.first = WeightedBatchNorm1d(3, correction="frequency")
        self.unused = WeightedBatchNorm1d(3)
        self.stateless = WeightedBatchNorm1d(3, track_running_stats=False, affine=False)
        self.factor = 1.0

    def forward(self, x):
        w = self.factor * torch.ones(len(x), dtype=x.dtype)
        return self.second(torch.tanh(self.first(x, w)), sample_weight=w)


def test_layers_are_pooled_in_the_order_they_are_reached():
    model = Reversed().double()
    x, w = data(3)
    model.factor = 2.0
    population_statistics(model, cut(x, w, [5, 19]), "pooled")
    twos = torch.full((N,), 2.0, dtype=x.dtype)
    assert_close(statistics([model.first])[0], weighted_moments(x, twos, "frequency"))
    model.eval()
    hidden = torch.tanh(model.first(x))
    assert_close(statistics([model.second])[0], weighted_moments(hidden, twos, "frequency"))


@pytest.mark.parametrize("mode", MODES)
def test_layers_that_are_not_reached_are_left_alone(mode):
    model = Reversed().double()
    model.unused.running_mean.fill_(7.0)
    before = copy.deepcopy(model.unused.state_dict())
    population_statistics(model, cut(*data(3), [12, 12]), mode)
    for name, value in model.unused.state_dict().items():
        assert torch.equal(value, before[name])
    assert model.first.num_batches_tracked == 2


@pytest.mark.parametrize("mode", MODES)
def test_a_layer_called_twice_has_the_statistics_of_both_calls(mode):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = WeightedBatchNorm1d(3)

        def forward(self, x):
            return self.norm(x) + self.norm(x)

    model, once = Twice().double(), WeightedBatchNorm1d(3, correction="reliability").double()
    model.norm.correction = "reliability"
    x, w = data(3)
    batches = cut(x, w, [12, 12])
    population_statistics(model, batches, mode)
    population_statistics(once, batches, mode)
    assert_close(model.norm.running_mean, once.running_mean)
    if mode != "pooled":
        assert_close(model.norm.running_var, once.running_var)
    else:
        both = weighted_moments(torch.cat([x, x]), torch.cat([w, w]), "reliability")
        assert_close(model.norm.running_var, both[1])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("training", [True, False])
def test_only_statistics_change(mode, training):
    model, layers = network(momentum=0.3)
    model = nn.Sequential(*model, nn.Dropout(0.5)).train(training)
    model[0].train(not training)
    layers[0].train(not training)
    layers[1].track_running_stats = False
    flags = [module.training for module in model.modules()]
    parameters = [p.clone() for p in model.parameters()]
    population_statistics(model, cut(*data(4), [12, 12]), mode)
    assert [module.training for module in model.modules()] == flags
    assert [layer.momentum for layer in layers] == [0.3, 0.3]
    assert [layer.track_running_stats for layer in layers] == [True, False]
    assert not any(layer._forward_pre_hooks for layer in layers)
    for parameter, before in zip(model.parameters(), parameters, strict=True):
        assert torch.equal(parameter, before)
        assert parameter.grad is None
    for mean, _ in statistics(layers):
        assert mean.abs().min() > 0


@pytest.mark.parametrize("mode", MODES)
def test_dropout_is_off(mode):
    results = []
    for p in (0.9, 0.0):
        layer = WeightedBatchNorm1d(4)
        model = nn.Sequential(nn.Dropout(p), layer).double()
        population_statistics(model, cut(*data(4), [12, 12]), mode)
        results.append(statistics([layer]))
    assert_close(*results)


class FailsLate(nn.Module):
    """Works for a number of calls, then doesn't."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def forward(self, x):
        self.calls -= 1
        if self.calls < 0:
            raise KeyError("late")
        return x


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("calls", [0, 1, 3])
def test_an_error_leaves_everything_as_it_was(mode, calls):
    model, layers = network()
    fails = FailsLate(calls if mode == "pooled" else min(calls, 1))
    model = nn.Sequential(*model[:3], fails, *model[3:])
    layers[0].running_mean.fill_(3.0)
    before = copy.deepcopy(model.state_dict())
    model[0].eval()
    flags = [module.training for module in model.modules()]
    with pytest.raises(KeyError, match="late"):
        population_statistics(model, cut(*data(4), [12, 12]), mode)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])
    assert [module.training for module in model.modules()] == flags
    assert not any(layer._forward_pre_hooks for layer in layers)


def bad_weight(value):
    x, w = data(4)
    w[20] = value
    return cut(x, w, [12, 12])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("batches", "message"),
    [
        (bad_weight(-1.0), "negative"),
        (bad_weight(float("nan")), "NaN"),
        ([(data(4)[0], torch.ones(3))], r"shape \(3,\)"),
        ([(data(4)[0], torch.zeros(N))], "all zero"),
        ([(data(4)[0], torch.eye(N)[0])], "two positions"),
        ([(data(4)[0], torch.full((N,), 0.01))], "at least 2"),
        ([(data(4)[0] * float("inf"), torch.ones(N))], "not finite"),
        ([], "no batch went through"),
    ],
    ids=str,
)
def test_bad_batches(mode, batches, message):
    model, _ = network()
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(ValueError, match=message):
        population_statistics(model, batches, mode)
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_a_short_batch_that_averages_refuse_is_pooled():
    model, _ = network()
    batches = cut(*data(4), [23, 1])
    for mode in ("batch_average", "weight_average"):
        with pytest.raises(ValueError, match="two values per channel"):
            population_statistics(model, batches, mode)
    population_statistics(model, batches, "pooled")


def test_pooled_needs_batches_that_can_be_iterated_again():
    model, layers = network()
    batches = cut(*data(4), [12, 12])
    with pytest.raises(ValueError, match="list"):
        population_statistics(model, iter(batches), "pooled")
    population_statistics(model, iter(batches), "batch_average")
    assert layers[0].num_batches_tracked == 2


def test_unknown_mode():
    with pytest.raises(ValueError, match=r"mode is 'mean'; choose one of .*pooled"):
        population_statistics(network()[0], [], "mean")


@pytest.mark.parametrize("mode", MODES)
def test_nothing_to_set(mode):
    x, _ = data(4)
    with pytest.raises(ValueError, match="no batch went through"):
        population_statistics(nn.Linear(4, 2).double(), [(x, None)], mode)


def test_single_precision_with_a_large_mean():
    layer = WeightedBatchNorm1d(3)
    x, w = data(3)
    x = (x + 1e4).float()
    population_statistics(layer, cut(x, w.float(), [5, 5, 5, 9]), "pooled")
    _, exact = weighted_moments(x.double(), w, "reliability")
    assert_close(layer.running_var.double(), exact, rtol=1e-6, atol=0)


def test_an_empty_batch_changes_nothing_in_the_pool():
    torch.manual_seed(0)
    x, w = torch.randn(6, 2), torch.rand(6) + 1
    whole, with_empty = WeightedBatchNorm1d(2), WeightedBatchNorm1d(2)
    population_statistics(whole, [(x, w)], "pooled")
    population_statistics(with_empty, [(x[:0], w[:0]), (x, w)], "pooled")
    assert_close(with_empty.running_mean, whole.running_mean)
    assert_close(with_empty.running_var, whole.running_var)


@pytest.mark.parametrize("factor", [1e-42, 1e-38, 1e37])
@pytest.mark.parametrize("mode", MODES)
def test_weights_at_the_ends_of_the_single_precision_range(mode, factor):
    x, w = data(3)
    results = []
    for scale in (1, factor):
        layer = WeightedBatchNorm1d(3, correction="reliability").double()
        population_statistics(layer, cut(x, scale * w, [10, 10, 4]), mode)
        results.append(statistics([layer]))
    assert_close(*results)


@pytest.mark.parametrize("factor", [1e-200, 1e200])
def test_weights_that_cant_be_pooled(factor):
    x, w = data(3)
    with pytest.raises(ValueError, match=r"too far from 1.*divide"):
        population_statistics(WeightedBatchNorm1d(3), [(x, factor * w)], "pooled")


# What of a batch is input, and what is weight -------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_batches_are_not_taken_apart_by_guess(mode):
    x, w = data(4)
    for batch in ((x, w), [x, w], {"x": x}):
        model, _ = network()
        with pytest.raises(ValueError, match=rf"a batch is a {type(batch).__name__}: .*unpack="):
            set_statistics(model, [batch], mode)
    (model, layers), (twin, others) = network(), network()
    set_statistics(model, [x], mode)
    population_statistics(twin, [(x, None)], mode)
    assert_close(statistics(layers), statistics(others))


@pytest.mark.parametrize("mode", MODES)
def test_labels_are_not_weights(mode):
    x, _ = data(4)
    with pytest.raises(ValueError, match=r"int64, as labels are.*per_sample"):
        population_statistics(network()[0], [(x, torch.arange(N) % 2)], mode)


class TwoInputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = WeightedBatchNorm1d(3).double()

    def forward(self, x, y=None, *, scale=1.0):
        return self.norm(scale * x + y)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "unpack",
    [
        lambda batch: ((batch["x"], batch["y"]), batch["w"]),
        lambda batch: ({"x": batch["x"], "y": batch["y"], "scale": 1.0}, batch["w"]),
    ],
    ids=["arguments", "keywords"],
)
def test_models_with_several_inputs_and_batches_of_any_kind(mode, unpack):
    x, w = data(3)
    batches = [
        {"x": 0.5 * x, "y": 0.5 * x, "w": w, "id": 7} for x, w in cut(x, w, [12, 12])
    ]  # fmt: skip
    model, plain = TwoInputs(), WeightedBatchNorm1d(3).double()
    set_statistics(model, batches, mode, unpack)
    population_statistics(plain, cut(x, w, [12, 12]), mode)
    assert_close(statistics([model.norm]), statistics([plain]))


@pytest.mark.parametrize("mode", MODES)
def test_a_loader_of_images_and_labels(mode):
    x, _ = data(4)
    labels = torch.arange(N) % 3 // 2
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, labels), batch_size=8)
    class_weight = inverse_frequency(class_counts(labels))
    (model, layers), (twin, others) = network(), network()
    set_statistics(
        model, loader, mode, lambda batch: (batch[0], per_sample(class_weight, batch[1]))
    )
    population_statistics(twin, cut(x, per_sample(class_weight, labels), [8] * 3), mode)
    assert_close(statistics(layers), statistics(others))


# Passes that stop ----------------------------------------------------------------------------


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return x


def test_pooled_passes_stop_at_their_layer():
    torch.manual_seed(0)
    counters = [Counting() for _ in range(4)]
    layers = [WeightedBatchNorm1d(4) for _ in range(3)]
    model = nn.Sequential(
        counters[0], layers[0], counters[1], layers[1], counters[2], layers[2], counters[3]
    ).double()  # fmt: skip
    shown = []
    batches = cut(*data(4), [8, 8, 8])
    population_statistics(
        model, batches, "pooled", progress=lambda it: [i for i in it if not shown.append(i)]
    )
    assert shown == [0, 1, 2]
    # Three batches, the first pass to the end, the next two to the second and third layer.
    assert [counter.calls for counter in counters] == [9, 9, 6, 3]
    shown.clear()
    population_statistics(
        model, batches, "batch_average", progress=lambda it: [i for i in it if not shown.append(i)]
    )
    assert len(shown) == 3


class Views(nn.Module):
    """Calls its layers in turn, as often as the batch has views of two columns."""

    def __init__(self):
        super().__init__()
        self.first, self.second = WeightedBatchNorm1d(2), WeightedBatchNorm1d(2)
        self.after = Counting()

    def forward(self, x):
        return [self.after(self.second(self.first(v).tanh())) for v in x.split(2, 1)]


@pytest.mark.parametrize(("widths", "calls"), [((4, 4), 6), ((4, 2), 6), ((2, 4, 2), 8)])
def test_a_layer_that_batches_call_several_times(widths, calls):
    model = Views().double()
    x = data(6)[0][: 8 * len(widths)]
    batches = [b[:, :width] for b, width in zip(x.split(8), widths, strict=True)]
    set_statistics(model, batches, "pooled")
    views = torch.cat([v for b in batches for v in b.split(2, 1)])
    model.eval()
    hidden = model.first(views).tanh()
    assert_close(
        statistics([model.first, model.second]),
        [
            weighted_moments(views, None, "reliability"),
            weighted_moments(hidden, None, "reliability"),
        ],
    )
    same = len(set(widths)) == 1
    assert model.after.calls == (calls if same else 2 * sum(w // 2 for w in widths))


@pytest.mark.parametrize("mode", MODES)
def test_masked_values_may_be_anything(mode):
    x, w = data(3)
    w[::3] = 0
    spoiled, results = x.clone(), []
    spoiled[::3] = float("nan")
    for values in (x, spoiled):
        layer = WeightedBatchNorm1d(3).double()
        population_statistics(layer, cut(values, w, [12, 12]), mode)
        results.append(statistics([layer]))
    assert_close(*results)


def test_weights_for_plain_layers_are_noticed():
    x, w = data(4)
    with pytest.warns(UserWarning, match="no weighted layer"):
        population_statistics(nn.BatchNorm1d(4).double(), [(x, w)], "batch_average")


# Several processes ---------------------------------------------------------------------------


def in_a_process(rank, folder, mode):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2,
        timeout=timedelta(seconds=60),
    )  # fmt: skip
    model, layers = network()
    for layer in layers:
        layer.process_group = "world"
    x, w = data(4)
    w[:3] = 0  # all that the first process has of the first batch
    parts = [(0, 3, 10), (10, 17, 24)]  # of two batches, each cut in two
    batches = [(x[a:b], w[a:b]) for a, b in ((p[rank], p[rank + 1]) for p in parts)]
    population_statistics(model, batches, mode)
    torch.save(statistics(layers), f"{folder}/{rank}")
    dist.destroy_process_group()


@pytest.mark.parametrize("mode", MODES)
def test_processes_that_share_the_batches(mode, tmp_path):
    context = torch.multiprocessing.get_context("fork")
    processes = [context.Process(target=in_a_process, args=(r, tmp_path, mode)) for r in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
    model, layers = network()
    x, w = data(4)
    w[:3] = 0
    population_statistics(model, cut(x, w, [10, 14]), mode)
    for rank in range(2):
        assert_close(torch.load(tmp_path / str(rank), weights_only=True), statistics(layers))
