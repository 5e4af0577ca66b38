"""The convolutional network against modules of torch and of the package, with autograd."""

import pytest
import torch
from torch import nn

from study.engine.protocol import INFERENCE, METHODS, Protocol
from study.engine.seed_block import batch_orders, cut_batches
from study.engine.training import Trainer, run
from wbn.layers import WeightedBatchNorm1d, WeightedBatchNorm2d
from wbn.loss import weighted_cross_entropy
from wbn.population import population_statistics

CLOSE = {"rtol": 1e-7, "atol": 1e-9}


def trainer(method="wlf_wbn", seeds=(4,), samples=300, **changes):
    """A trainer in double precision on a few samples, three batches and 50 test images."""
    options = {"experiment": "lt200", "network": "conv", "dtype": "float64"} | changes
    protocol = Protocol.paper(method=method, **options).resolved()
    made = Trainer(protocol, list(seeds))
    data = made.data
    order = next(batch_orders(protocol, list(seeds), data.labels))[:, :samples]
    data.rows, data.labels = data.rows.gather(1, order), data.labels.gather(1, order)
    if data.weights is not None:
        data.weights = data.weights.gather(1, order[..., None])
    some = torch.arange(0, data.eval_labels.shape[1], 200)
    data.eval_images, data.eval_labels = data.eval_images[:, some], data.eval_labels[:, some]
    made.orders = batch_orders(protocol, list(seeds), data.labels)
    return made


class Plain(nn.Sequential):
    """The network as a person would write it, with the first replica's initial weights."""

    def __init__(self, made, norm_2d=WeightedBatchNorm2d, norm_1d=WeightedBatchNorm1d, **options):
        p = made.protocol
        options |= {"eps": p.eps, "momentum": p.momentum}

        def norm(layer, kind, channels):
            return nn.Identity() if kind == "none" else layer(channels, **options)

        bias, last = p.hidden_norm == "none", p.output_norm == "none"
        super().__init__(
            nn.Conv2d(1, 24, 5, bias=bias), norm(norm_2d, p.hidden_norm, 24),
            nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(24, 64, 5, bias=bias), norm(norm_2d, p.hidden_norm, 64),
            nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(1024, made.data.classes, bias=last),
            norm(norm_1d, p.output_norm, made.data.classes),
        )  # fmt: skip
        self.double()
        self.linears, self.norms = (self[0], self[4], self[9]), (self[1], self[5], self[10])
        self.kinds = (p.hidden_norm, p.hidden_norm, p.output_norm)
        with torch.no_grad():
            for linear, stage in zip(self.linears, made.network.replicas[0], strict=True):
                linear.weight.copy_(stage.linear)
                if linear.bias is not None:
                    linear.bias.zero_()

    def logits(self, x, w):
        weighted = {n for n, k in zip(self.norms, self.kinds, strict=True) if k == "weighted"}
        for module in self:
            x = module(x, w) if module in weighted else module(x)
        return x

    @property
    def in_order(self):
        modules = (m for pair in zip(self.linears, self.norms, strict=True) for m in pair)
        return [p for module in modules for p in module.parameters()]


def images(made, index):
    x, y, w = made.data.batch(index)
    return x[0].view(-1, 1, 28, 28), y[0], None if w is None else w[0, :, 0]


def train_both(made, plain):
    optimizer = torch.optim.Adam(plain.parameters(), lr=made.protocol.learning_rate)
    for _ in range(2):
        made.batches = cut_batches(next(made.orders), made.protocol)
        made.statistics.start_epoch()
        for index in made.batches:
            x, y, w = images(made, index)
            loss = weighted_cross_entropy(plain.logits(x, w), y, w, made.data.normalizer)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            torch.testing.assert_close(made.step(index)[0], loss.detach())


def check_parameters(made, plain):
    for ours, theirs in zip(made.network.parameters, plain.in_order, strict=True):
        torch.testing.assert_close(ours, theirs, **CLOSE)


def check_statistics(made, plain, kind):
    found = made.statistics.get(kind, made.data, made.batches)
    for norm, (mean, var) in zip(plain.norms, found, strict=True):
        torch.testing.assert_close(mean[0], norm.running_mean, **CLOSE)
        torch.testing.assert_close(var[0], norm.running_var, **CLOSE)
    x = made.data.eval_images[0].view(-1, 1, 28, 28)
    with torch.no_grad():
        expected = plain.eval()(x)
    plain.train()
    torch.testing.assert_close(
        made.network.infer(made.data.eval_images, found)[0], expected, **CLOSE
    )


def test_size_is_what_the_docstring_says():
    (stages,) = trainer().network.replicas
    assert sum(p.numel() for stage in stages for p in stage.parameters()) == 49_436


@pytest.mark.parametrize(
    ("method", "correction"),
    [*((method, "frequency") for method in METHODS), ("wlf_wbn", "reliability")],
)
def test_steps_and_inference_equal_modules_of_the_package(method, correction):
    made = trainer(method, inference=INFERENCE, correction=correction)
    plain = Plain(made, correction=correction)
    train_both(made, plain)
    check_parameters(made, plain)
    check_statistics(made, plain, "moving_average")
    weighted = method == "wlf_wbn"
    batches = [(x, w if weighted else None) for x, _, w in (images(made, i) for i in made.batches)]
    for kind in ("batch_average", "pooled"):
        population_statistics(plain, batches, kind, unpack=tuple)
        check_statistics(made, plain, kind)


def test_without_weights_and_correction_it_is_torch_alone():
    made = trainer("lf_sbn", inference=INFERENCE, correction="none", experiment="ii")
    plain = Plain(made, nn.BatchNorm2d, nn.BatchNorm1d)
    train_both(made, plain)
    check_parameters(made, plain)
    check_statistics(made, plain, "moving_average")


@pytest.mark.parametrize(
    ("hidden_norm", "output_norm"),
    [("none", "none"), ("weighted", "standard"), ("standard", "weighted"), ("weighted", "none")],
)
def test_each_layer_has_its_own_normalization(hidden_norm, output_norm):
    made = trainer("wlf_sbn", hidden_norm=hidden_norm, output_norm=output_norm)
    plain = Plain(made, correction="frequency")
    train_both(made, plain)
    check_parameters(made, plain)
    found = made.statistics.get("batch_average", made.data, made.batches)
    assert [m is None for m in found] == [kind == "none" for kind in plain.kinds]
    made.evaluate("batch_average")


def test_last_epoch_averages_what_training_saw():
    made = trainer(inference="last_epoch")
    made.train_epoch()
    made.batches = cut_batches(next(made.orders), made.protocol)
    made.statistics.start_epoch()
    seen = []
    for index in made.batches:
        made.step(index)
        seen.append(made.network.statistics()[1])
    found = made.statistics.get("last_epoch", made.data, made.batches)[1]
    for average, values in zip(found, zip(*seen, strict=True), strict=True):
        torch.testing.assert_close(average, torch.stack(values).mean(0))


def test_a_seed_has_the_same_bits_whatever_seeds_are_beside_it():
    together, alone = (trainer(seeds=seeds, dtype="float32") for seeds in ((3, 4), (4,)))
    for made in (together, alone):
        made.train_epoch()
    beside = together.network.parameters[len(alone.network.parameters) :]
    for a, b in zip(beside, alone.network.parameters, strict=True):
        assert torch.equal(a, b)
    tables = [made.evaluate("batch_average") for made in (together, alone)]
    assert tables[0].iloc[1].equals(tables[1].iloc[0])


def test_inference_does_not_depend_on_how_images_are_cut(monkeypatch):
    made = trainer(dtype="float64")
    made.train_epoch()
    found = made.statistics.get("batch_average", made.data, made.batches)
    whole = made.network.infer(made.data.eval_images, found)
    monkeypatch.setattr("study.engine.convolution.INFERRED_AT_ONCE", 7)
    torch.testing.assert_close(made.network.infer(made.data.eval_images, found), whole)


def test_run_learns_the_two_classes_of_the_paper():
    protocol = Protocol.paper("i", "lf_sbn", network="conv", epochs=1)
    table = run(protocol, [0], progress=False)
    assert table.average_precision.item() > 0.99
    assert set(table.protocol) == {protocol.hash}
