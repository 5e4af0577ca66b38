"""Oracles (torch's cross entropy, replication, Eq. 2 by hand) and invariants for wbn.loss."""

import re
from itertools import pairwise

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck

from wbn.context import sample_weights
from wbn.loss import WeightedCrossEntropyLoss, weighted_cross_entropy, weighted_mean
from wbn.weights import class_counts, inverse_frequency, per_sample, rescale

SHAPES = [(), (5,), (4, 3)]  # positions
NORMALIZERS = ["batch", 1.7]


def batch(seed=0, n=12, classes=3, positions=()):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n, classes, *positions, dtype=torch.float64, generator=generator)
    target = torch.randint(classes, (n, *positions), generator=generator)
    weight = torch.rand(n, *positions, dtype=torch.float64, generator=generator) + 0.1
    return logits, target, weight


def by_hand(logits, target, weight, normalizer="batch"):
    """Eq. 2 on a mini-batch, one sample or position at a time."""
    rows = logits.movedim(1, -1).reshape(-1, logits.shape[1])
    total, loss = 0.0, 0.0
    for row, label, w in zip(rows, target.flatten(), weight.flatten(), strict=True):
        loss += w * (row.exp().sum().log() - row[label])
        total += w if normalizer == "batch" else normalizer
    return loss / total


@pytest.mark.parametrize("positions", SHAPES)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_is_eq_2_by_hand(positions, normalizer):
    logits, target, weight = batch(positions=positions)
    torch.testing.assert_close(
        weighted_cross_entropy(logits, target, weight, normalizer),
        by_hand(logits, target, weight, normalizer),
        rtol=1e-13,
        atol=0,
    )


@pytest.mark.parametrize("positions", SHAPES)
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_a_samples_weight_counts_for_each_of_its_positions(positions, normalizer):
    logits, target, weight = batch(positions=positions)
    weight = weight.reshape(len(weight), -1)[:, 0]
    of_positions = weight.reshape(-1, *(1 for _ in positions)).expand_as(target)
    torch.testing.assert_close(
        weighted_cross_entropy(logits, target, weight, normalizer),
        by_hand(logits, target, of_positions, normalizer),
    )


@pytest.mark.parametrize("positions", SHAPES)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_without_weights_is_torchs_cross_entropy(positions, smoothing, normalizer):
    logits, target, _ = batch(positions=positions)
    for t in (target, logits.softmax(1).flip(0)):
        loss = weighted_cross_entropy(logits, t, normalizer=normalizer, label_smoothing=smoothing)
        assert torch.equal(loss, F.cross_entropy(logits, t, label_smoothing=smoothing))


@pytest.mark.parametrize("positions", SHAPES)
def test_batch_normalizer_is_torchs_class_weighted_mean(positions):
    logits, target, _ = batch(positions=positions)
    class_weight = inverse_frequency(class_counts(target))
    target[0] = -100  # torch's ignored label
    weight = per_sample(class_weight, target.clamp_min(0))
    torch.testing.assert_close(
        weighted_cross_entropy(logits, target, weight),
        F.cross_entropy(logits, target, class_weight),
    )


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_ignored_positions_are_left_out(normalizer):
    logits, target, weight = batch()
    kept = weighted_cross_entropy(logits[3:], target[3:], weight[3:], normalizer)
    target[:3] = -100
    loss = weighted_cross_entropy(logits, target, weight, normalizer)
    torch.testing.assert_close(loss, kept)


def test_label_smoothing_is_weighted_by_the_sample():
    logits, target, weight = batch()
    smooth = 0.8 * F.one_hot(target, 3) + 0.2 / 3
    losses = -(smooth * logits.log_softmax(1)).sum(1)
    loss = weighted_cross_entropy(logits, target, weight, label_smoothing=0.2)
    torch.testing.assert_close(loss, (weight * losses).sum() / weight.sum())
    torch.testing.assert_close(loss, weighted_cross_entropy(logits, smooth, weight))


# Normalizers ---------------------------------------------------------------------------


@settings(deadline=None)
@given(st.integers(0, 1000), st.integers(1, 31), st.sampled_from(["raw", "paper", "mean_one"]))
def test_number_normalizer_averages_to_eq_2_with_short_batches(seed, batch_size, scale):
    logits, target, _ = batch(seed, n=30)
    counts = class_counts(target, 3).clamp_min(1)
    class_weight = rescale(torch.tensor([0.3, 1.0, 7.0]), counts, scale)
    weight = per_sample(class_weight, target)
    parts = zip(*(t.split(batch_size) for t in (logits, target, weight)), strict=True)
    mean_weight = weight.mean().item()
    average = sum(
        len(part[0]) / 30 * weighted_cross_entropy(*part, normalizer=mean_weight) for part in parts
    )
    torch.testing.assert_close(average, by_hand(logits, target, weight))


def test_batch_normalizer_does_not_average_to_eq_2():
    logits, target, weight = batch(n=30)
    weight[:10] *= 100
    parts = zip(*(t.split(10) for t in (logits, target, weight)), strict=True)
    average = sum(weighted_cross_entropy(*part) for part in parts) / 3
    assert (average / by_hand(logits, target, weight) - 1).abs() > 0.01


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=12, max_size=12).filter(any))
def test_integer_weights_are_replication(copies):
    logits, target, _ = batch()
    logits.requires_grad_()
    copies = torch.tensor(copies)
    loss = weighted_cross_entropy(logits, target, copies.double())
    replicated = F.cross_entropy(
        logits.repeat_interleave(copies, 0), target.repeat_interleave(copies)
    )
    torch.testing.assert_close(loss, replicated)
    grads = (torch.autograd.grad(x, logits)[0] for x in (loss, replicated))
    torch.testing.assert_close(*grads)


@settings(deadline=None)
@given(st.floats(1e-9, 1e9))
def test_scale_of_the_weights(factor):
    logits, target, weight = batch()
    scaled = weighted_cross_entropy(logits, target, factor * weight)
    torch.testing.assert_close(scaled, weighted_cross_entropy(logits, target, weight))
    scaled = weighted_cross_entropy(logits, target, factor * weight, normalizer=1.7)
    unscaled = weighted_cross_entropy(logits, target, weight, normalizer=1.7)
    torch.testing.assert_close(scaled, factor * unscaled)


@pytest.mark.parametrize("factor", [1e-8, 0.3, 7.0, 1e5])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_ordinary_weights_give_the_bits_of_eq_2_as_it_stands(factor, normalizer):
    """Stored results of the experiments depend on it."""
    logits, target, weight = (t.float() if t.is_floating_point() else t for t in batch())
    logits.requires_grad_()
    loss = weighted_cross_entropy(logits, target, factor * weight, normalizer)
    total = (factor * weight).sum() if normalizer == "batch" else torch.tensor(12.0) * normalizer
    plain = (factor * weight * F.cross_entropy(logits, target, reduction="none")).sum() / total
    assert torch.equal(loss, plain)
    assert torch.equal(*(torch.autograd.grad(x, logits)[0] for x in (loss, plain)))


@pytest.mark.parametrize("factor", [1e-45, 1e-42, 1e-36, 1e37, 1e38])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("half", [False, True])
def test_weights_at_the_ends_of_the_single_precision_range(factor, dtype, half):
    logits, target, weight = batch()
    logits, weight = logits.to(torch.bfloat16 if half else torch.float32), (factor * weight)
    weight = weight.to(dtype)
    exact = by_hand(logits.double(), target, weight.double())
    tolerance = 2e-2 if half else 1e-6
    mean = weight.double().mean().item()
    for normalizer in ("batch", mean) if factor > 1e-37 else ("batch",):
        loss = weighted_cross_entropy(logits, target, weight, normalizer)
        torch.testing.assert_close(loss.double(), exact, rtol=tolerance, atol=0)


def test_an_empty_batch_and_one_of_ignored_targets():
    logits, target, weight = batch()
    with pytest.raises(ValueError, match="all zero"):
        weighted_cross_entropy(logits[:0], target[:0], weight[:0])
    assert weighted_cross_entropy(logits[:0], target[:0], weight[:0], 1.7) == 0
    assert weighted_cross_entropy(logits, 0 * target - 100, weight, 1.7) == 0


def test_a_number_may_be_a_scalar_tensor():
    logits, target, weight = batch()
    torch.testing.assert_close(
        weighted_cross_entropy(logits, target, weight, normalizer=weight.mean()),
        weighted_cross_entropy(logits, target, weight),
    )


def test_a_batch_of_one_loses_its_weight_only_with_the_batch_normalizer():
    logits, target, weight = (t[:1] for t in batch())
    plain = F.cross_entropy(logits, target)
    torch.testing.assert_close(weighted_cross_entropy(logits, target, weight), plain)
    loss = weighted_cross_entropy(logits, target, weight, normalizer=1.0)
    torch.testing.assert_close(loss, weight[0] * plain)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_permuting_the_batch_changes_nothing(normalizer):
    logits, target, weight = batch(positions=(5,))
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(
        weighted_cross_entropy(logits[order], target[order], weight[order], normalizer),
        weighted_cross_entropy(logits, target, weight, normalizer),
    )


def test_zero_weights_mask():
    logits, target, weight = batch()
    logits.requires_grad_()
    masked = weight.clone()
    masked[:4] = 0
    loss = weighted_cross_entropy(logits, target, masked)
    torch.testing.assert_close(loss, weighted_cross_entropy(logits[4:], target[4:], weight[4:]))
    (grad,) = torch.autograd.grad(loss, logits)
    assert (grad[:4] == 0).all()
    assert (grad[4:] != 0).all()


def test_a_batch_without_weight_is_zero_with_a_number():
    logits, target, weight = batch()
    logits.requires_grad_()
    loss = weighted_cross_entropy(logits, target, 0 * weight, normalizer=1.7)
    (grad,) = torch.autograd.grad(loss, logits)
    assert loss == 0
    assert (grad == 0).all()


# Autograd, dtypes, transforms ----------------------------------------------------------


@pytest.mark.parametrize("positions", SHAPES[:2])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_gradients(positions, normalizer, smoothing):
    logits, target, weight = batch(n=4, positions=positions)

    def loss(logits):
        return weighted_cross_entropy(logits, target, weight, normalizer, smoothing)

    logits.requires_grad_()
    assert gradcheck(loss, logits)
    assert gradgradcheck(loss, logits)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_the_dtype_is_that_of_torch_and_sums_are_not_in_half_precision(dtype, normalizer):
    logits, target, weight = batch(n=300)
    weight *= 1000  # a sum that float16 can't hold
    loss = weighted_cross_entropy(logits.to(dtype), target, weight, normalizer)
    assert loss.dtype == dtype
    expected = weighted_cross_entropy(logits, target, weight, normalizer)
    tolerance = 4 * torch.finfo(dtype).eps
    torch.testing.assert_close(loss.double(), expected, rtol=tolerance, atol=0)


def test_autocast_gives_float32():
    logits, target, weight = batch()
    with torch.autocast("cpu", torch.bfloat16):
        loss = weighted_cross_entropy(logits.bfloat16(), target, weight)
    assert loss.dtype == torch.float32


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_compiles_without_a_graph_break(normalizer):
    logits, target, weight = batch()
    compiled = torch.compile(weighted_cross_entropy, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(
        compiled(logits, target, weight, normalizer),
        weighted_cross_entropy(logits, target, weight, normalizer),
    )
    with sample_weights(weight**2):
        torch.testing.assert_close(
            compiled(logits, target, None, normalizer),
            weighted_cross_entropy(logits, target, None, normalizer),
        )
    assert compiled(logits, target, 0 * weight, normalizer) == 0
    with pytest.raises(Exception, match="has shape"):
        compiled(logits, target, weight[1:], normalizer)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_maps_with_vmap_and_grad(normalizer):
    parts = [batch(seed) for seed in range(3)]
    logits, target, weight = (torch.stack(t) for t in zip(*parts, strict=True))

    def loss(logits, target, weight):
        return weighted_cross_entropy(logits, target, weight, normalizer)

    mapped = torch.func.vmap(torch.func.grad(loss))(logits, target, weight)
    single = torch.stack([torch.func.grad(loss)(*part) for part in parts])
    torch.testing.assert_close(mapped, single)


# Context and module --------------------------------------------------------------------


def test_context_weights_and_an_argument_that_wins():
    logits, target, weight = batch()
    given = weighted_cross_entropy(logits, target, weight)
    with sample_weights(weight):
        assert torch.equal(weighted_cross_entropy(logits, target), given)
        assert not torch.equal(weighted_cross_entropy(logits, target, weight**2), given)
        with sample_weights(None):
            plain = weighted_cross_entropy(logits, target)
    assert torch.equal(plain, F.cross_entropy(logits, target))
    assert torch.equal(weighted_cross_entropy(logits, target), plain)


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_module_is_the_function(normalizer):
    logits, target, weight = batch()
    module = WeightedCrossEntropyLoss(normalizer, label_smoothing=0.1)
    expected = weighted_cross_entropy(logits, target, weight, normalizer, 0.1)
    assert torch.equal(module(logits, target, weight), expected)
    with sample_weights(weight):
        assert torch.equal(module(logits, target), expected)
    assert repr(module) == (
        f"WeightedCrossEntropyLoss(normalizer={normalizer!r}, label_smoothing=0.1, "
        "ignore_index=-100)"
    )
    assert module.state_dict() == {}


# Bad input -----------------------------------------------------------------------------


@pytest.mark.parametrize("as_context", [False, True])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w[1:], r"has shape \(11,\), but .* needs \(12,\)"),
        (lambda w: w[:, None], r"has shape \(12, 1\)"),
        (lambda w: w.index_fill(0, torch.tensor(3), -1.0), "not negative, got -1"),
        (lambda w: w.index_fill(0, torch.tensor(3), torch.nan), "got nan"),
        (lambda w: w.index_fill(0, torch.tensor(3), torch.inf), "got inf"),
        (torch.zeros_like, "all zero, and the normalizer 'batch' divides by its sum"),
        (lambda w: w.clone().requires_grad_(), "requires a gradient.* detach"),
        (torch.Tensor.tolist, "is a list"),
    ],
)
def test_bad_weights(change, message, as_context):
    logits, target, weight = batch()
    weight = change(weight)
    with (
        sample_weights(weight if as_context else None),
        pytest.raises(ValueError, match=message),
    ):
        weighted_cross_entropy(logits, target, None if as_context else weight)


@pytest.mark.parametrize(
    "normalizer", [0, -1.0, 1e-40, 1e39, float("nan"), float("inf"), "dataset"]
)
def test_bad_normalizers(normalizer):
    message = "normalizer must be 'batch' or a positive number, .* got " + re.escape(
        repr(normalizer)
    )
    with pytest.raises(ValueError, match=message):
        weighted_cross_entropy(*batch(), normalizer=normalizer)
    with pytest.raises(ValueError, match=message):
        WeightedCrossEntropyLoss(normalizer)


@pytest.mark.parametrize("change", [lambda x: x[0], torch.Tensor.long])
def test_bad_logits(change):
    logits, target, weight = batch()
    with pytest.raises(ValueError, match=r"needs floating point of shape \(N, K\)"):
        weighted_cross_entropy(change(logits), target, weight)


# Any losses ----------------------------------------------------------------------------


def focal(logits, target):
    f = F.cross_entropy(logits, target, reduction="none")
    return (1 - (-f).exp()) ** 2 * f


@pytest.mark.parametrize("normalizer", NORMALIZERS)
@pytest.mark.parametrize("positions", SHAPES)
def test_a_mean_is_eq_2_for_losses_of_any_kind(positions, normalizer):
    logits, target, weight = batch(positions=positions)
    hot = F.one_hot(target, 3).movedim(-1, 1).double()
    kinds = {
        "focal": focal(logits, target),
        "squares": (logits - hot).square().sum(1),
        "binary": F.binary_cross_entropy_with_logits(logits, hot, reduction="none").sum(1),
    }
    for losses in kinds.values():
        total = weight.sum() if normalizer == "batch" else normalizer * losses.numel()
        expected = (weight * losses).sum() / total
        torch.testing.assert_close(weighted_mean(losses, weight, normalizer), expected)
        with sample_weights(weight):
            torch.testing.assert_close(weighted_mean(losses, normalizer=normalizer), expected)
        assert weighted_mean(losses, normalizer=normalizer) == losses.mean()


def test_a_samples_weight_counts_for_each_of_its_losses():
    logits, target, weight = batch()
    hot = F.one_hot(target, 3).double()
    losses = F.binary_cross_entropy_with_logits(logits, hot, reduction="none")
    expected = F.binary_cross_entropy_with_logits(logits, hot, weight[:, None], reduction="sum")
    torch.testing.assert_close(weighted_mean(losses, weight), expected / (3 * weight.sum()))


@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_cross_entropy_is_a_mean_of_its_losses(normalizer):
    logits, target, weight = batch(positions=(5,))
    losses = F.cross_entropy(logits, target, reduction="none")
    assert torch.equal(
        weighted_cross_entropy(logits, target, weight, normalizer),
        weighted_mean(losses, weight, normalizer),
    )


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_what_has_no_weight_may_be_anything(bad):
    logits, target, weight = batch()
    spoiled, mask = logits.clone(), torch.arange(12) >= 4
    spoiled[:4] = bad
    spoiled.requires_grad_()
    loss = weighted_cross_entropy(spoiled, target, weight * mask)
    torch.testing.assert_close(loss, weighted_cross_entropy(logits[4:], target[4:], weight[4:]))
    (grad,) = torch.autograd.grad(loss, spoiled)
    assert grad.isfinite().all()
    assert (grad[:4] == 0).all()
    losses = F.cross_entropy(spoiled, target, reduction="none")
    torch.testing.assert_close(weighted_mean(losses, weight * mask), loss)
    torch.testing.assert_close(weighted_mean(losses, mask), losses[4:].mean())


@pytest.mark.parametrize("ignore_index", [-100, 255, 1])
@pytest.mark.parametrize("normalizer", NORMALIZERS)
def test_any_index_can_be_ignored(ignore_index, normalizer):
    logits, target, weight = batch()
    kept = (target != 1).nonzero().squeeze(1)
    expected = by_hand(logits[kept], target[kept], weight[kept], normalizer)
    target[target == 1] = ignore_index
    loss = weighted_cross_entropy(logits, target, weight, normalizer, ignore_index=ignore_index)
    torch.testing.assert_close(loss, expected)
    module = WeightedCrossEntropyLoss(normalizer, ignore_index=ignore_index)
    assert module(logits, target, weight) == loss
    plain = weighted_cross_entropy(logits, target, ignore_index=ignore_index)
    assert plain == F.cross_entropy(logits, target, ignore_index=ignore_index)


def test_losses_at_the_resolution_of_the_context():
    logits, target, _ = batch(positions=(4,))
    weight = torch.rand(12, 8, dtype=torch.float64)
    with sample_weights(weight, resize="area"):
        loss = weighted_cross_entropy(logits, target)
        mean = weighted_mean(F.cross_entropy(logits, target, reduction="none"))
    expected = by_hand(logits, target, weight.unflatten(1, (4, 2)).mean(2))
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(mean, expected)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 11), max_size=4), st.integers(0, 1000))
def test_micro_batches_that_count_by_their_weight_are_one_batch(cuts, seed):
    """The recipe of `weighted_mean`; without batch norm, which sees each micro-batch alone."""
    logits, target, weight = batch(seed)
    torch.manual_seed(seed)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 3))
    model, edges = model.double(), sorted({0, *cuts, 12})
    parts = [slice(a, b) for a, b in pairwise(edges)]
    weighted_cross_entropy(model(logits), target, weight).backward()
    whole = [p.grad.clone() for p in model.parameters()]
    for losses_of in ("cross entropy", "mean"):
        model.zero_grad()
        total = sum(weight[part].sum() for part in parts)
        for part in parts:
            x, t, w = logits[part], target[part], weight[part]
            if losses_of == "mean":
                loss = weighted_mean(F.cross_entropy(model(x), t, reduction="none"), w)
            else:
                loss = weighted_cross_entropy(model(x), t, w)
            (loss * w.sum() / total).backward()
        torch.testing.assert_close([p.grad for p in model.parameters()], whole)


@pytest.mark.parametrize("losses", [torch.tensor(1.0), torch.tensor([1, 2])])
def test_bad_losses(losses):
    with pytest.raises(ValueError, match=r"one loss for each sample, .* reduction='none'"):
        weighted_mean(losses)


@pytest.mark.parametrize("change", [torch.Tensor.long, lambda w: w[1:], torch.zeros_like])
def test_bad_weights_of_a_mean(change):
    logits, target, weight = batch()
    losses = F.cross_entropy(logits, target, reduction="none")
    with pytest.raises(ValueError, match=r"int64, as labels are|has shape \(11,\)|all zero"):
        weighted_mean(losses, change(weight))
    with pytest.raises(ValueError, match="normalizer must be"):
        weighted_mean(losses, weight, normalizer=0)
