"""The replica engine against the straightforward way, and its invariants."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from study.engine.inference import average_precision
from study.engine.network import Network
from study.engine.protocol import INFERENCE, METHODS, PROBES, Protocol
from study.engine.seed_block import Block, batch_orders, cut_batches, fold_numbers
from study.engine.training import Trainer, blocks, run
from study.stores.plan import RESULTS
from study.stores.store import Store
from study.stores.verify import REPRODUCED, agreement
from wbn.context import sample_weights
from wbn.layers import WeightedBatchNorm1d
from wbn.loss import weighted_cross_entropy
from wbn.population import population_statistics
from wbn.weights import SCHEMES, Scheme


def tiny(method="wlf_wbn", experiment="i", **changes):
    return Protocol.paper(experiment, method, **{"hidden": 6, "epochs": 1} | changes)


class PlainLoop:
    """One seed, one mini-batch after the other, with modules and torch's own Adam."""

    def __init__(self, protocol, seed):
        p = protocol.resolved()
        self.data, self.protocol = Block(p, [seed]), p
        labels = self.data.labels[0]
        prior = torch.bincount(labels).double() / len(labels)
        self.adjustment, classes = p.logit_adjustment * prior.log(), len(prior)
        start = Network(p, [seed], self.data.data_set.shape, classes)
        options = {"eps": p.eps, "correction": p.correction, "dtype": torch.float64}
        self.hidden_weighted = p.hidden_norm == "weighted"
        self.model = nn.Sequential(
            nn.Linear(self.data.pool.shape[1], p.hidden, bias=False, dtype=torch.float64),
            WeightedBatchNorm1d(p.hidden, momentum=p.momentum, **options),
            nn.ReLU(),
            nn.Linear(p.hidden, classes, bias=False, dtype=torch.float64),
            WeightedBatchNorm1d(classes, momentum=p.momentum, **options),
        )
        with torch.no_grad():
            for module, layer in zip((self.model[0], self.model[3]), start.layers, strict=True):
                module.weight.copy_(layer.linear[0])
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=p.learning_rate)
        order = next(batch_orders(p, [seed], self.data.labels))
        self.batches = [index[0] for index in order.split(p.batch_size, dim=1)]

    def batch(self, index):
        x = self.data.pool[self.data.rows[0, index]]
        w = None if self.data.weights is None else self.data.weights[0, index, 0]
        return x, self.data.labels[0, index], w

    def train(self):
        for index in self.batches:
            x, y, w = self.batch(index)
            with sample_weights(w if self.hidden_weighted else None):
                logits = self.model(x)
            loss = weighted_cross_entropy(logits + self.adjustment, y, w, self.data.normalizer)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    @property
    def parameters(self):
        linear = (self.model[0].weight, self.model[3].weight)
        norm = [(m.weight, m.bias) for m in (self.model[1], self.model[4])]
        return [linear[0], *norm[0], linear[1], *norm[1]]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    "changes", [{}, {"loss_normalizer": "dataset", "correction": "reliability"}]
)
def test_sixty_steps_equal_the_plain_loop(method, changes):
    protocol = Protocol.paper("i", method, epochs=1, hidden=50, dtype="float64", **changes)
    plain = PlainLoop(protocol, seed=4)
    plain.train()
    trainer = Trainer(protocol.resolved(), [3, 4])
    trainer.train_epoch()
    assert len(trainer.batches) == 60
    for ours, theirs in zip(trainer.network.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(ours[1].view_as(theirs), theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("method", "changes"),
    [
        ("lf_sbn", {"logit_adjustment": 1.5}),
        ("wlf_sbn", {"weighting": "class_balanced", "beta": 0.999}),
        ("wlf_wbn", {"loss_normalizer": "dataset", "batch_order": "balanced"}),
    ],
)
def test_ten_classes_equal_the_plain_loop(method, changes):
    protocol = tiny(method, "lt200", dtype="float64", **changes)
    plain = PlainLoop(protocol, seed=4)
    plain.train()
    trainer = Trainer(protocol.resolved(), [3, 4])
    trainer.train_epoch()
    assert trainer.network.layers[1].linear.shape == (2, 10, 6)
    for ours, theirs in zip(trainer.network.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(ours[1].view_as(theirs), theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("rate", [0, 3])
def test_a_rate_of_the_output_shift_is_a_parameter_group_of_adam(rate):
    protocol = tiny("wlf_wbn", dtype="float64", output_shift_rate=rate)
    plain = PlainLoop(protocol, seed=4)
    *rest, shift = plain.parameters
    groups = [{"params": rest}, {"params": [shift], "lr": rate * 1e-3}]
    plain.optimizer = torch.optim.Adam(groups, lr=1e-3)
    plain.train()
    trainer = Trainer(protocol.resolved(), [3, 4])
    trainer.train_epoch()
    for ours, theirs in zip(trainer.network.parameters, plain.parameters, strict=True):
        torch.testing.assert_close(ours[1].view_as(theirs), theirs, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("experiment", "minority"), [("i", 1), ("ii", 0)])
def test_the_output_shift_starts_and_stays_where_it_is_put(experiment, minority):
    put = tiny("wlf_wbn", experiment, output_shift_start=-1.5, output_shift_rate=0)
    trainer = Trainer(put.resolved(), [0, 1])
    expected = torch.full((2, 1, 2), 0.75)
    expected[..., minority] = -0.75
    before = [p.clone() for p in trainer.network.parameters]
    assert torch.equal(before[-1], expected)
    for start in (0, 100):
        trainer.step(torch.arange(start, start + 5000, 50).expand(2, -1))
    after = trainer.network.parameters
    moved = [not torch.equal(a, b) for a, b in zip(after, before, strict=True)]
    assert moved == [True] * 5 + [False]


def test_logit_adjustment_adds_the_log_prior_in_training_only():
    adjusted, plain = (
        Trainer(tiny("lf_sbn", "lt100", logit_adjustment=tau, dtype="float64").resolved(), [0])
        for tau in (2.0, 0.0)
    )
    index = torch.tensor([[0, 4999, 5000, 12400]])  # of classes 0, 0, 1 and 9
    x, y, _ = plain.data.batch(index)
    logits = plain.network.forward(x, None)[0]
    prior = torch.tensor([5000, 2997, 1797, 1077, 646, 387, 232, 139, 83, 50]).double() / 12408
    odds = logits.exp() * prior**2
    expected = -(odds[range(4), y[0]] / odds.sum(1)).log().mean()
    torch.testing.assert_close(adjusted.step(index)[0], expected)
    plain.network, plain.batches, adjusted.batches = adjusted.network, [index], [index]
    plain.statistics.network = adjusted.network
    tables = [trainer.evaluate("batch_average") for trainer in (adjusted, plain)]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


@pytest.mark.parametrize("method", METHODS)
def test_inference_statistics_equal_the_layers(method):
    protocol = tiny(method, dtype="float64", inference=INFERENCE)
    plain = PlainLoop(protocol, seed=2)
    plain.train()
    trainer = Trainer(protocol.resolved(), [2])
    trainer.train_epoch()
    weighted = plain.hidden_weighted

    def statistics(inference):
        return trainer.statistics.get(inference, trainer.data, trainer.batches)

    def check(inference):
        for module, (mean, var) in zip(
            (plain.model[1], plain.model[4]), statistics(inference), strict=True
        ):
            torch.testing.assert_close(mean.flatten(), module.running_mean, rtol=1e-7, atol=1e-9)
            torch.testing.assert_close(var.flatten(), module.running_var, rtol=1e-7, atol=1e-9)

    check("moving_average")
    batches = [(x, w if weighted else None) for x, _, w in map(plain.batch, plain.batches)]
    for kind in ("batch_average", "pooled"):
        population_statistics(plain.model, batches, kind, unpack=tuple)
        check(kind)
    population_statistics(plain.model, [trainer.data.eval_images[0]], "pooled")
    check("evaluation_set")


def test_last_epoch_averages_what_training_saw():
    trainer = Trainer(tiny(inference="last_epoch").resolved(), [0])
    seen = []
    for _ in range(2):
        trainer.batches = cut_batches(next(trainer.orders), trainer.protocol)
        trainer.statistics.start_epoch()
        seen = []
        for index in trainer.batches:
            trainer.step(index)
            seen.append(trainer.network.statistics()[0][1])
    (_, var), _ = trainer.statistics.get("last_epoch", trainer.data, trainer.batches)
    torch.testing.assert_close(var, torch.stack(seen).mean(0))


def test_a_seed_does_not_depend_on_the_seeds_beside_it():
    protocol = Protocol.paper("ii", "wlf_wbn", hidden=40, epochs=1, dtype="float64").resolved()
    together = Trainer(protocol, list(range(8)))
    together.train_epoch()
    assert len(together.batches) == 59
    for seed in range(8):
        alone = Trainer(protocol, [seed])
        alone.train_epoch()
        for a, b in zip(together.network.parameters, alone.network.parameters, strict=True):
            torch.testing.assert_close(a[seed], b[0], rtol=1e-9, atol=1e-11)


def test_methods_of_a_seed_share_split_initialization_and_order():
    a, b = (Trainer(tiny(m).resolved(), [5]) for m in ("lf_sbn", "wlf_wbn"))
    assert torch.equal(a.data.rows, b.data.rows)
    assert torch.equal(a.network.layers[0].linear, b.network.layers[0].linear)
    assert torch.equal(next(a.orders), next(b.orders))


def test_same_call_same_bits_whatever_else_is_run():
    alone = run(tiny(), range(3), progress=False)
    with_others = run(tiny(), [*range(3), 10, 11], progress=False)
    pd.testing.assert_frame_equal(alone, with_others[with_others.seed < 10].reset_index(drop=True))


def test_table_has_the_promised_shape():
    protocol = tiny(epochs=3, eval_epochs=(1, 3), inference=("pooled", "batch_average"))
    table = run(protocol, [1, 0], progress=False)
    assert list(table.columns) == [
        "protocol", "experiment", "method", "inference", "evaluated_on", "seed", "epoch",
        "accuracy_majority", "accuracy_minority", "accuracy_overall", "accuracy_balanced",
        "average_precision", "train_loss",
    ]  # fmt: skip
    assert len(table) == 2 * 2 * 2
    assert set(table.protocol) == {protocol.hash}
    sizes = np.array([980, 1135])
    accuracies = table[["accuracy_majority", "accuracy_minority"]].to_numpy()
    np.testing.assert_allclose(table.accuracy_overall, accuracies @ sizes / sizes.sum())
    np.testing.assert_allclose(table.accuracy_balanced, accuracies.mean(1))


def test_table_of_ten_classes_has_the_promised_shape():
    table = run(tiny(experiment="lt200"), [0, 1], progress=False)
    by_class = [f"accuracy_{k}" for k in range(10)]
    assert list(table.columns)[7:] == [
        *by_class, "accuracy_overall", "accuracy_balanced", "calibration_error", "nll",
        "train_loss",
    ]  # fmt: skip
    sizes = np.array([980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009])
    accuracies = table[by_class].to_numpy()
    np.testing.assert_allclose(table.accuracy_overall, accuracies @ sizes / 10000)
    np.testing.assert_allclose(table.accuracy_balanced, accuracies.mean(1))


def test_kinds_of_inference_are_evaluated_on_the_same_networks():
    both = run(tiny(inference=("pooled", "batch_average")), [0], progress=False)
    alone = run(tiny(inference="pooled"), [0], progress=False)
    columns = ["seed", "epoch", "accuracy_overall", "average_precision", "train_loss"]
    pd.testing.assert_frame_equal(
        both[both.inference == "pooled"][columns].reset_index(drop=True), alone[columns]
    )


@pytest.mark.parametrize("inference", [*INFERENCE, *PROBES])
def test_logits_are_what_is_evaluated(inference):
    trainer = Trainer(tiny("wlf_wbn", "iii", inference=[inference]).resolved(), [0, 1])
    data = trainer.data
    some = torch.arange(0, data.eval_labels.shape[1], 50)
    data.eval_images, data.eval_labels = data.eval_images[:, some], data.eval_labels[:, some]
    trainer.train_epoch()
    logits = trainer.logits(inference)
    assert logits.shape == (2, len(some), 2)
    right = (logits.argmax(-1) == data.eval_labels).double().mean(1)
    assert trainer.evaluate(inference).accuracy_overall.tolist() == right.tolist()


def test_a_stored_run_has_the_bits_of_its_first_epoch():
    store = Store(RESULTS / "family")
    unit = next(unit for unit, _ in store.units() if unit.protocol.method == "wlf_wbn")
    first = replace(unit.protocol, epochs=1, eval_epochs=(1,))
    kept, fresh = store.read(unit), run(first, unit.seeds, progress=False)
    kept = kept[kept.epoch == 1].reset_index(drop=True).assign(protocol=first.hash)
    assert agreement(kept, fresh) in REPRODUCED  # identical, on the machine that stored it


def test_training_learns():
    table = run(tiny("lf_sbn", hidden=30, epochs=3), [0, 1], progress=False)
    assert table[table.epoch == 3].average_precision.min() > 0.99
    losses = table.pivot_table(index="epoch", values="train_loss")
    assert losses.train_loss.is_monotonic_decreasing


def test_a_scheme_is_a_function_and_an_entry(monkeypatch):
    scheme = Scheme(lambda counts, beta: counts**-beta, takes_beta=True)
    monkeypatch.setitem(SCHEMES, "power", scheme)
    with pytest.raises(ValueError, match="class_balanced, power needs a beta"):
        tiny(weighting="power")
    protocol = tiny(weighting="power", beta=0.5, scale="raw", correction="none")
    data = Block(protocol.resolved(), [0])
    expected = torch.tensor([5923, 45]).double() ** -0.5
    assert torch.equal(data.weights[0, :, 0], expected.float()[data.labels[0]])
    assert run(protocol, [0], progress=False).accuracy_overall.item() > 0.5


def test_validation_holds_a_stratified_fold_out():
    parts = [
        Block(tiny(evaluate_on="validation", fold=fold).resolved(), [0, 1]) for fold in range(5)
    ]
    for part in parts:
        assert part.rows.shape[1] + part.eval_labels.shape[1] == 5968
        assert set((part.eval_labels == part.minority).sum(1).tolist()) == {9}
        assert all(len(rows.unique()) == len(rows) for rows in part.rows)
    whole = Block(tiny().resolved(), [0])
    trained = torch.cat([part.rows[0] for part in parts])
    counts = torch.bincount(trained, minlength=len(whole.pool))[whole.rows[0]]
    assert set(counts.tolist()) == {4}


def test_folds_are_equal_shares_of_each_class():
    labels = torch.tensor([0] * 103 + [1] * 39)
    folds = fold_numbers(labels, seed=1)
    for label in (0, 1):
        sizes = torch.bincount(folds[labels == label], minlength=5)
        assert sizes.max() - sizes.min() <= 1
    assert not torch.equal(folds, fold_numbers(labels, seed=2))


@pytest.mark.parametrize(
    ("order", "repeats", "permutes"),
    [
        ("reshuffle", False, True),
        ("fixed", True, True),
        ("sorted", True, True),
        ("replacement", False, False),
        ("stratified", False, True),
        ("balanced", False, False),
    ],
)
def test_batch_orders(order, repeats, permutes):
    labels = (torch.arange(50) < 5).long().expand(2, -1)
    orders = batch_orders(tiny(batch_order=order), [0, 1], labels)
    first, second = next(orders), next(orders)
    assert torch.equal(first, second) == repeats
    assert torch.equal(first[0].sort().values, torch.arange(50)) == permutes
    assert torch.equal(first[0], first[1]) == (order == "sorted")


def test_stratified_order_spreads_each_class_evenly():
    labels = (torch.arange(1000) < 20).long().expand(3, -1)
    orders = batch_orders(tiny(batch_order="stratified"), [0, 1, 2], labels)
    for order, _ in zip(orders, range(5), strict=False):
        dealt = labels.gather(1, order).view(3, -1, 100).sum(-1)
        assert dealt.min() >= 1
        assert dealt.max() <= 3
        gaps = labels[0, order[0]].nonzero().squeeze(1).diff()
        assert gaps.min() >= 49
        assert gaps.max() <= 51


def test_balanced_order_draws_classes_equally_often():
    labels = (torch.arange(4000) < 20).long().expand(2, -1)
    order = next(batch_orders(tiny(batch_order="balanced"), [0, 1], labels))
    share = labels.gather(1, order).double().mean(1)
    assert ((share - 0.5).abs() < 5 * 0.5 / 4000**0.5).all()
    drawn = torch.bincount(order[0][order[0] < 20], minlength=20)
    assert drawn.min() > 50  # 100 times each on average: all minority samples, equally likely


def test_last_batch_is_kept_or_dropped():
    order = torch.arange(250).expand(2, -1)
    sizes = {
        last: [b.shape[1] for b in cut_batches(order, tiny(last_batch=last))]
        for last in ("keep", "drop")
    }
    assert sizes == {"keep": [100, 100, 50], "drop": [100, 100]}


@pytest.mark.parametrize(("n", "last"), [(201, "keep"), (50, "drop")])
def test_a_last_batch_without_variance_is_refused(n, last):
    with pytest.raises(ValueError, match="batch_size or last_batch"):
        cut_batches(torch.arange(n).expand(1, -1), tiny(last_batch=last))


def test_raw_class_balanced_weights_are_refused_by_the_frequency_correction():
    raw = tiny(weighting="class_balanced", beta=0.999, scale="raw")
    with pytest.raises(ValueError, match="they must sum to at least 2"):
        run(raw, [0], progress=False)
    run(
        tiny(weighting="class_balanced", beta=0.999, scale="raw", correction="reliability"),
        [0],
        False,
    )


def test_beta_zero_is_the_plain_loss_with_plain_bn():
    balanced = tiny(weighting="class_balanced", beta=0.0, scale="mean_one", dtype="float64")
    plain = tiny("lf_sbn", dtype="float64")
    tables = [run(p, [0, 1], progress=False) for p in (balanced, plain)]
    np.testing.assert_allclose(tables[0].train_loss, tables[1].train_loss, rtol=1e-9)


def test_networks_without_normalization_have_a_bias_and_no_scale():
    trainer = Trainer(tiny("lf_sbn", hidden_norm="none", output_norm="none").resolved(), [0])
    trainer.train_epoch()
    assert len(trainer.network.parameters) == 4
    assert trainer.statistics.get("batch_average", trainer.data, trainer.batches) == [None, None]
    assert trainer.network.layers[1].bias.abs().min() > 0


def test_gradient_without_normalization_equals_autograd():
    trainer = Trainer(
        tiny("lf_sbn", hidden_norm="none", output_norm="none", dtype="float64").resolved(), [0]
    )
    x, y, _ = trainer.data.batch(torch.arange(100).expand(1, -1))
    grad, _ = trainer.loss_gradient(trainer.network.forward(x, None), y, None)
    trainer.network.backward(grad)
    leaves = [p[0].clone().requires_grad_() for p in trainer.network.parameters]
    hidden = (x[0] @ leaves[0].T + leaves[1]).relu()
    loss = nn.functional.cross_entropy(hidden @ leaves[2].T + leaves[3], y[0])
    for ours, theirs in zip(
        trainer.network.parameters, torch.autograd.grad(loss, leaves), strict=True
    ):
        torch.testing.assert_close(ours.grad[0].view_as(theirs), theirs)


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=30))
def test_average_precision_equals_its_definition(pairs):
    score, positive = (torch.tensor(column) for column in zip(*pairs, strict=True))
    if not positive.any():
        return
    expected, recall = 0.0, 0.0
    for threshold in sorted(set(score.tolist()), reverse=True):
        taken = score >= threshold
        hits = (taken & positive).sum().item()
        expected += (hits / positive.sum().item() - recall) * hits / taken.sum().item()
        recall = hits / positive.sum().item()
    assert average_precision(score.double(), positive) == pytest.approx(expected)


def test_blocks_are_fixed():
    assert blocks(range(8, 22)) == [[8, 9], list(range(10, 20)), [20, 21]]
    with pytest.raises(ValueError, match="at least one"):
        blocks([])
    with pytest.raises(ValueError, match="negative"):
        blocks([-1])
