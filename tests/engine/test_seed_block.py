"""What is trained and evaluated on, against the raw files."""

import numpy as np
import pytest
import torch
from plain import load_toy, toy

from study.engine.data import MNIST, load_split
from study.engine.protocol import Protocol
from study.engine.seed_block import Block


@pytest.mark.parametrize(("experiment", "digits"), [("i", (0, 1)), ("ii", (1, 8)), ("iii", (4, 7))])
def test_file_order_puts_test_images_back_as_in_the_file(experiment, digits):
    block = Block(Protocol.paper(experiment, "wlf_wbn").resolved(), [0, 1])
    images, labels = MNIST.load(False)
    kept = np.isin(labels.numpy(), digits)
    in_file = labels.numpy()[kept]
    found = np.array(digits)[block.eval_labels[1, block.file_order].numpy()]
    assert found.tolist() == in_file.tolist()
    expected = images.numpy()[kept].reshape(len(in_file), 784) / np.float32(255)
    assert np.array_equal(block.eval_images[1, block.file_order].numpy(), expected)
    stored = np.array(digits)[block.eval_labels[0].numpy()]
    assert stored.tolist() == sorted(in_file.tolist())


def standardized(images):
    """Column by column with numpy; one that does not vary becomes 0."""
    out = np.zeros_like(images)
    for column in range(images.shape[1]):
        values = images[:, column]
        if values.min() < values.max():
            out[:, column] = (values - values.mean()) / values.std()
    return out


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("experiment", ["toy", "toy3"])
def test_training_and_test_images_are_standardized_apart(experiment):
    block = Block(toy(experiment=experiment, input_scaling="standardized_apart"), [3, 4, 5])
    raw = load_toy(True)[0].double().numpy()
    everything = torch.arange(block.rows.shape[1]).expand_as(block.rows)
    batch = torch.stack([torch.randperm(block.rows.shape[1])[:7] for _ in range(3)])
    whole, part = block.batch(everything)[0], block.batch(batch)[0]
    for s, seed in enumerate((3, 4, 5)):
        split = load_split(experiment, seed)
        expected = standardized(raw[split.train_index.numpy()] / 40)
        np.testing.assert_allclose(whole[s], expected, atol=1e-12)
        np.testing.assert_allclose(part[s], expected[batch[s]], atol=1e-12)
        test = load_toy(False)[0].double().numpy()[split.test_index.numpy()]
        np.testing.assert_allclose(block.eval_images[s], standardized(test / 40), atol=1e-12)
    assert not torch.allclose(block.standard[1][0], block.standard[1][1])  # seeds differ


def test_standardized_digits_are_finite_in_single_precision():
    """Most pixels near the border never vary, and some are rare."""
    apart = {"input_scaling": "standardized_apart"}
    block = Block(Protocol.paper("iii", "wlf_wbn", **apart).resolved(), [0, 1])
    images = block.batch(torch.arange(block.rows.shape[1]).expand_as(block.rows))[0]
    for given in (images, block.eval_images):
        assert given.isfinite().all()
        assert given.mean(1).abs().max() < 1e-3
        deviation = given.double().std(1, correction=0)
        assert ((deviation == 0) | ((deviation - 1).abs() < 1e-3)).all()
        assert (deviation > 0).sum() > 800


@pytest.mark.usefixtures("toys")
def test_weights_are_those_of_the_loss_or_of_the_layers():
    kinds = {
        "none": toy("lf_sbn"),
        "loss": toy("wlf_sbn"),
        "layers": toy("lf_sbn", norm_weighting="inverse_frequency", scale="classes"),
    }
    blocks = {name: Block(protocol, [3, 4]) for name, protocol in kinds.items()}
    assert [block.plain for block in blocks.values()] == [True, False, True]
    assert blocks["none"].class_weight is blocks["none"].weights is None
    for name in ("loss", "layers"):
        expected = torch.tensor([74 / 14, 74 / 60]).double()
        torch.testing.assert_close(blocks[name].class_weight, expected)
        torch.testing.assert_close(blocks[name].weights[1, :, 0], expected[blocks[name].labels[1]])
        assert blocks[name].normalizer == "batch"
