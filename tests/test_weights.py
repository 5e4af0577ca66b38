"""Oracles (mpmath, fractions, scikit-learn's formula) and invariants for wbn.weights."""

import math
from fractions import Fraction
from typing import get_args

import mpmath
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from wbn import arrays
from wbn.weights import (
    SCHEMES,
    Scale,
    class_balanced,
    class_counts,
    effective_class_sizes,
    effective_sample_size,
    inverse_frequency,
    logit_adjustment,
    per_sample,
    rescale,
    uniform,
)

TABLE_1 = [[5923, 45], [45, 5851], [39, 6265]]
counts_lists = st.lists(st.integers(1, 10**7), min_size=1, max_size=12)
schemes = st.sampled_from(
    [
        uniform,
        inverse_frequency,
        *(lambda c, b=b: class_balanced(c, b) for b in (0, 0.9, 0.9999, 1)),
    ]
)


def assert_close(actual, expected, rtol=1e-12):
    expected = torch.as_tensor(expected, dtype=torch.float64)
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=0)


# Eqs. 3 and 4 --------------------------------------------------------------------------


@settings(deadline=None)
@given(counts_lists)
def test_inverse_frequency_is_the_exact_ratio(counts):
    exact = [float(Fraction(sum(counts), n)) for n in counts]
    assert_close(inverse_frequency(counts), exact, rtol=1e-15)


@settings(deadline=None)
@given(counts_lists)
def test_inverse_frequency_makes_every_effective_class_size_n(counts):
    sizes = effective_class_sizes(inverse_frequency(counts), counts)
    assert_close(sizes, [float(sum(counts))] * len(counts), rtol=1e-14)


@settings(deadline=None)
@given(counts_lists, schemes)
def test_effective_class_sizes_are_sums_of_sample_weights(counts, scheme):
    counts = [n % 50 + 1 for n in counts]
    labels = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    w = per_sample(scheme(counts), labels)
    sums = torch.zeros(len(counts), dtype=torch.float64).index_add(0, labels, w)
    assert_close(effective_class_sizes(scheme(counts), counts), sums)


# Eq. 13 --------------------------------------------------------------------------------


def exact_class_balanced(n, beta):
    with mpmath.workdps(60):
        b = mpmath.mpf(beta)
        return float(mpmath.mpf(1) / n if beta == 1 else (1 - b) / (1 - b**n))


@settings(deadline=None)
@given(st.integers(1, 10**7), st.floats(-15, 0))
def test_class_balanced_agrees_with_mpmath_near_one(n, exponent):
    beta = 1 - 10**exponent
    assert_close(class_balanced([n], beta), [exact_class_balanced(n, beta)])


@settings(deadline=None)
@given(st.integers(1, 10**7), st.floats(0, 1))
def test_class_balanced_agrees_with_mpmath_everywhere(n, beta):
    assert_close(class_balanced([n], beta), [exact_class_balanced(n, beta)])


@pytest.mark.parametrize("n", [1, 2, 45, 5923, 10**7])
@pytest.mark.parametrize("beta", [1 - 1e-15, float(np.nextafter(1, 0)), 1e-300, 0.5])
def test_class_balanced_agrees_with_mpmath_at_the_edges(n, beta):
    assert_close(class_balanced([n], beta), [exact_class_balanced(n, beta)])


@settings(deadline=None)
@given(counts_lists)
def test_class_balanced_ends(counts):
    assert torch.equal(class_balanced(counts, 0), uniform(counts))
    assert_close(class_balanced(counts, 1), [float(Fraction(1, n)) for n in counts], rtol=1e-15)


@settings(deadline=None)
@given(counts_lists, st.floats(0, 1))
def test_class_balanced_lies_between_its_ends(counts, beta):
    w = class_balanced(counts, beta)
    assert (w >= class_balanced(counts, 1) * (1 - 1e-14)).all()
    assert (w <= 1 + 1e-14).all()


# rescale -------------------------------------------------------------------------------


@settings(deadline=None)
@given(counts_lists, schemes, st.floats(1e-6, 1e6))
def test_each_scale_has_its_total_and_forgets_the_old_one(counts, scheme, factor):
    w, n, k = scheme(counts), float(sum(counts)), float(len(counts))

    def total(scale):
        return effective_class_sizes(rescale(factor * w, counts, scale), counts).sum()

    assert_close(total("paper"), k * n)
    assert_close(total("mean_one"), n)
    assert_close(rescale(factor * w, counts, "classes").sum(), k)
    assert torch.equal(rescale(w, counts, "raw"), w)
    for scale in ("paper", "mean_one", "classes"):
        assert_close(rescale(factor * w, counts, scale), rescale(w, counts, scale))


@pytest.mark.parametrize("counts", TABLE_1)
def test_scales_of_table_1(counts):
    w = inverse_frequency(counts)
    assert_close(rescale(w, counts, "paper"), w, rtol=1e-15)
    balanced = [sum(counts) / (len(counts) * n) for n in counts]  # scikit-learn's "balanced"
    assert_close(rescale(w, counts, "mean_one"), balanced)
    assert torch.equal(rescale(class_balanced(counts, 0), counts, "mean_one"), uniform(counts))


@pytest.mark.parametrize("scale", get_args(Scale))
def test_every_named_scale_is_known_and_others_are_refused(scale):
    assert rescale([1.0, 2.0], [60, 20], scale).shape == (2,)
    with pytest.raises(ValueError, match=f"'{scale}'.*got '{scale}s'"):
        rescale([1.0, 2.0], [60, 20], f"{scale}s")


# schemes by name -----------------------------------------------------------------------


def test_schemes_are_the_public_functions_and_one_takes_a_beta():
    for counts in TABLE_1:
        assert torch.equal(SCHEMES["uniform"](counts, 0.9), uniform(counts))
        assert torch.equal(SCHEMES["inverse_frequency"](counts, 0.9), inverse_frequency(counts))
        assert torch.equal(SCHEMES["class_balanced"](counts, 0.9), class_balanced(counts, 0.9))
    assert [name for name, scheme in SCHEMES.items() if scheme.takes_beta] == ["class_balanced"]


# per_sample and class_counts -----------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(0, 9)), st.integers(10, 12))
def test_class_counts_count(labels, num_classes):
    expected = [float(labels.count(k)) for k in range(num_classes)]
    assert class_counts(labels, num_classes).tolist() == expected
    if labels:
        assert class_counts(labels).tolist() == expected[: max(labels) + 1]


def test_labels_of_positions():
    labels = torch.tensor([[[0, 1], [2, 0]], [[1, 1], [1, 2]]])
    w = per_sample([10.0, 20.0, 30.0], labels)
    assert w.tolist() == [[[10, 20], [30, 10]], [[20, 20], [20, 30]]]
    assert class_counts(labels).tolist() == [2, 4, 2]


def test_per_sample_compiles_without_a_graph_break_and_maps():
    class_weight, labels = torch.tensor([1.0, 3.0]), torch.tensor([[0, 1], [1, 1]])
    expected = class_weight.double()[labels]
    compiled = torch.compile(per_sample, fullgraph=True, backend="eager")
    assert torch.equal(compiled(class_weight, labels), expected)
    assert torch.equal(torch.func.vmap(per_sample, (None, 0))(class_weight, labels), expected)


# effective_sample_size -----------------------------------------------------------------


@settings(deadline=None)
@given(
    st.lists(st.fractions(0, 100, max_denominator=99), min_size=1).filter(any),
    st.sampled_from([1.0, 1e-250, 1e250]),
)
def test_effective_sample_size_is_kish(w, scale):
    exact = float(sum(w) ** 2 / sum(x * x for x in w))
    size = effective_sample_size([float(x) * scale for x in w])
    assert_close(size, exact)
    assert 1 - 1e-12 <= size <= len(w) * (1 + 1e-12)


# inputs --------------------------------------------------------------------------------


def read_only(values):
    array = np.array(values)
    array.setflags(write=False)
    return array


@pytest.mark.parametrize(
    "as_input", [list, tuple, np.array, read_only, torch.tensor, lambda v: np.array(v, "uint8")]
)
def test_lists_arrays_and_tensors_give_float64_tensors(as_input):
    counts, labels = as_input([3, 1]), as_input([0, 1, 0, 0])
    results = {
        "class_counts": (class_counts(labels), [3.0, 1.0]),
        "uniform": (uniform(counts), [1.0, 1.0]),
        "inverse_frequency": (inverse_frequency(counts), [4 / 3, 4.0]),
        "class_balanced": (class_balanced(counts, 1), [1 / 3, 1.0]),
        "rescale": (rescale(counts, counts, "classes"), [1.5, 0.5]),
        "effective_class_sizes": (effective_class_sizes(counts, counts), [9.0, 1.0]),
        "effective_sample_size": (effective_sample_size(counts), 1.6),
        "per_sample": (per_sample(counts, labels), [3.0, 1.0, 3.0, 3.0]),
    }
    for name, (result, expected) in results.items():
        assert result.dtype == torch.float64, name
        assert_close(result, expected)


def test_inputs_are_left_alone():
    counts, w = torch.tensor([3.0, 1.0]).double(), torch.tensor([2.0, 5.0]).double()
    rescale(w, counts, "raw").mul_(7)
    assert w.tolist() == [2, 5]


takes_counts = pytest.mark.parametrize(
    "function",
    [
        uniform,
        inverse_frequency,
        lambda counts: class_balanced(counts, 0.9),
        lambda counts: rescale([1, 1, 1], counts, "paper"),
        lambda counts: effective_class_sizes([1, 1, 1], counts),
    ],
    ids=["uniform", "inverse_frequency", "class_balanced", "rescale", "effective_class_sizes"],
)


@takes_counts
@pytest.mark.parametrize(
    ("counts", "message"),
    [
        ([5, 3, 0], "class 2 has no data point .* merge it .*, drop it, or give it a count"),
        ([5, -3, 1], "got -3.0 for class 1"),
        ([0.7, 0.2, 0.1], "whole positive numbers .* got 0.7 for class 0: see class_counts"),
        ([5, float("nan"), 1], "got nan for class 1"),
        ([5, 1, float("inf")], "got inf for class 2"),
        ([[5, 3, 1]], r"counts must have the shape \(K,\).* got \(1, 3\)"),
        (7, r"got \(\)"),
        ([], r"got \(0,\)"),
    ],
)
def test_bad_counts(function, counts, message):
    with pytest.raises(ValueError, match=message):
        function(counts)


@pytest.mark.parametrize("beta", [-0.1, 1.0000001, float("nan"), float("inf")])
def test_bad_beta(beta):
    with pytest.raises(ValueError, match=rf"beta must lie in \[0, 1\], got {beta}"):
        class_balanced([3, 4], beta)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([0, 2, 1], "below the number of classes, 2, got 2$"),
        ([0, -1, -100, -7], "at least 0 .* got -7, -1$"),
        (list(range(9)), "got 2, 3, 4, 5, 6, ...$"),
        ([0.0, 1.0], "integer type, got torch.float64: convert them"),
        (np.array([1j]), "integer type, got torch.complex128"),
    ],
)
def test_bad_labels(labels, message):
    with pytest.raises(ValueError, match=message):
        class_counts(labels, num_classes=2)
    with pytest.raises(ValueError, match=message):
        per_sample([1.0, 2.0], labels)


def test_labels_that_leave_the_classes_open():
    with pytest.raises(ValueError, match="pass num_classes"):
        class_counts([])
    with pytest.raises(ValueError, match=r"at least 0 .* got -1$"):
        class_counts([-1])
    assert class_counts([], num_classes=2).tolist() == [0, 0]
    assert per_sample([1.0, 2.0], []).shape == (0,)


@pytest.mark.parametrize("function", [effective_class_sizes, lambda w, n: rescale(w, n, "raw")])
@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ([1.0, -2.0], "class_weight must be finite and not negative, got -2.0"),
        ([float("nan"), 1.0], "got nan"),
        ([1.0, float("inf")], "got inf"),
        ([[1.0, 2.0]], r"class_weight must have the shape \(K,\)"),
        ([1.0, 2.0, 3.0], "class_weight has 3 classes and counts has 2"),
    ],
)
def test_bad_class_weights(function, class_weight, message):
    with pytest.raises(ValueError, match=message):
        function(class_weight, [3, 4])


def test_bad_scales_and_totals():
    with pytest.raises(ValueError, match="'raw', 'paper', 'mean_one', 'classes', got 'balanced'"):
        rescale([1, 1], [3, 4], "balanced")
    with pytest.raises(ValueError, match="all class weights are zero"):
        rescale([0, 0], [3, 4], "paper")
    with pytest.raises(ValueError, match="no positive weight"):
        effective_sample_size([0.0, 0.0])
    with pytest.raises(ValueError, match="no positive weight"):
        effective_sample_size([])
    with pytest.raises(ValueError, match="sample_weight must be finite and not negative, got -1"):
        effective_sample_size([2.0, -1.0])
    with pytest.raises(ValueError, match=r"class_weight must have the shape \(K,\)"):
        per_sample([[1.0]], [0])


@pytest.mark.parametrize("factor", [1e-320, 1e-305, 1e307])
def test_weights_at_the_ends_of_the_float_range_are_not_rescaled(factor):
    """Their factor would be infinite or zero."""
    with pytest.raises(ValueError, match="divide them by the largest"):
        rescale([factor, 1.5 * factor], [60, 20], "mean_one")


# Ignored, soft and multi-hot labels ------------------------------------------------------


@pytest.mark.parametrize("ignore_index", [-100, 255])
def test_ignored_labels_do_not_count_and_have_no_weight(ignore_index):
    labels = torch.tensor([[0, 1, ignore_index], [2, ignore_index, 0]])
    kept = labels[labels != ignore_index]
    options = {} if ignore_index == -100 else {"ignore_index": ignore_index}
    assert class_counts(labels, **options).tolist() == [2, 1, 1]
    assert_close(class_counts(labels, 3, **options), class_counts(kept, 3))
    w = per_sample([1.0, 2.0, 5.0], labels, **options)
    assert w.tolist() == [[1, 2, 0], [5, 0, 1]]


def test_a_class_can_be_ignored():
    assert class_counts([0, 1, 1, 2], ignore_index=1).tolist() == [1, 0, 1]
    assert per_sample([1.0, 2.0], [0, 1], ignore_index=1).tolist() == [1, 0]


@pytest.mark.parametrize("positions", [(), (3,), (3, 2)])
def test_soft_labels_have_the_expected_weight(positions):
    torch.manual_seed(0)
    soft = torch.rand(4, 5, *positions).softmax(1)
    w = torch.tensor([1.0, 2.0, 0.0, 5.0, 7.0], dtype=torch.float64)
    expected = np.einsum("nk...,k->n...", soft.double().numpy(), w.numpy())
    assert_close(per_sample(w, soft), torch.tensor(expected))


def test_soft_labels_that_are_hard_are_indices():
    labels, w = torch.tensor([0, 2, 1, 2]), [1.0, 2.0, 5.0]
    one_hot = torch.nn.functional.one_hot(labels, 3).float()
    assert_close(per_sample(w, one_hot), per_sample(w, labels))
    mixed, w_mixed = (0.25 * t + 0.75 * t.flip(0) for t in (one_hot, per_sample(w, labels)))
    assert_close(per_sample(w, mixed), w_mixed)


@pytest.mark.parametrize(
    "soft", [[[1.0, 1.0, 0.0]], [[0.0, 0.0, 0.0]], [[1.5, -0.5, 0.0]], [[math.nan, 0.5, 0.5]]]
)
def test_multi_hot_and_other_soft_labels_are_refused(soft):
    with pytest.raises(ValueError, match=r"sum to 1 over the classes, got \[.*weighted_mean"):
        per_sample([1.0, 2.0, 3.0], soft)
    with pytest.raises(ValueError, match=r"integer type.*\(N, K\)"):
        per_sample([1.0, 2.0], soft)


HOT = {
    "one-hot": ([[1, 0, 0], [0, 0, 1]], 3),
    "multi-hot": ([[1, 0, 1], [0, 0, 0]], 3),
    "one-hot of two classes": ([[1, 0], [0, 1], [0, 1]], 2),
    "booleans": ([[True, False, True]], 3),
}


@pytest.mark.parametrize("name", HOT)
def test_hot_labels_are_not_taken_for_indices(name):
    labels, classes = HOT[name]
    message = r"labels of shape .* look one-hot or multi-hot"
    with pytest.raises(ValueError, match=message):
        class_counts(labels, num_classes=classes)
    with pytest.raises(ValueError, match=message):
        per_sample([1.0] * classes, labels)
    if "one-hot" in name:
        with pytest.raises(ValueError, match=message):
            class_counts(labels)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([[0, 1, 1], [0, 0, 0]], 2),  # sequences
        ([[0, 1], [1, 1]], 2),
        ([[0, 1, 2], [0, 0, 0]], 3),
        ([[1], [0]], 2),  # a column
        ([[[0, 1], [1, 0]]], 2),  # an image
        ([1, 0, 0], 3),
        (np.zeros((0, 3), dtype=int), 3),
    ],
)
def test_indices_of_two_classes_are_indices(labels, classes):
    labels = np.asarray(labels)
    expected = [(labels == k).sum() for k in range(classes)]
    assert class_counts(labels, num_classes=classes).tolist() == expected
    assert per_sample(range(classes), labels).tolist() == labels.tolist()


# Logit adjustment --------------------------------------------------------------------------


def test_logit_adjustment_is_the_log_of_the_prior():
    counts = [5923, 45, 300]
    prior = np.array(counts) / sum(counts)
    assert_close(logit_adjustment(counts), torch.tensor(np.log(prior)))
    assert_close(logit_adjustment(counts, 0.3), torch.tensor(0.3 * np.log(prior)))
    assert (logit_adjustment(counts, 0) == 0).all()
    for tau in (math.nan, math.inf):
        with pytest.raises(ValueError, match=f"tau must be finite, got {tau}"):
            logit_adjustment(counts, tau)


def test_logit_adjustment_makes_the_bayes_rule_balanced():
    """Of logits that are log p(k | x), it leaves log p(x | k) up to a constant."""
    generator = np.random.default_rng(0)
    likelihood, counts = generator.dirichlet(np.ones(4), size=3), np.array([70, 20, 10])
    joint = counts[:, None] / 100 * likelihood  # p(k, x) of four values x
    posterior = torch.tensor((joint / joint.sum(0)).T)
    adjusted = posterior.log() - logit_adjustment(counts)
    assert_close(adjusted.softmax(1), torch.tensor((likelihood / likelihood.sum(0)).T))


# Devices without double precision ----------------------------------------------------------


def test_single_precision_where_there_is_no_double(monkeypatch):
    assert arrays.precise(torch.ones(2), torch.device("cpu")).dtype == torch.float64
    monkeypatch.setattr(arrays, "WITHOUT_DOUBLE", {"meta"})
    labels, w = torch.zeros(4, dtype=torch.long, device="meta"), torch.ones(3, device="meta")
    soft = torch.zeros(4, 3, device="meta")
    for result in (per_sample([1.0, 2.0, 3.0], labels), per_sample(w, labels), per_sample(w, soft)):
        assert result.device.type == "meta"
        assert result.dtype == torch.float32
    monkeypatch.setattr(arrays, "WITHOUT_DOUBLE", {"cpu"})
    counts, w = class_counts([0, 0, 1]), torch.tensor([1.0, 3.0])
    results = [
        counts,
        inverse_frequency(counts),
        class_balanced(counts, 0.9),
        rescale(w, counts, "mean_one"),
        effective_sample_size(w),
        logit_adjustment(counts),
    ]
    assert {result.dtype for result in results} == {torch.float32}
