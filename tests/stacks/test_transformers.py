"""Hugging Face: a small ResNet, its Trainer, and batches that are dicts."""

import pytest
import torch
from transformers import ResNetConfig, ResNetForImageClassification, Trainer, TrainingArguments

import wbn


@pytest.fixture
def resnet():
    torch.manual_seed(0)
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", num_labels=2
    )
    return ResNetForImageClassification(config)


def test_a_model_goes_there_and_back(resnet, images, goes_there_and_back):
    goes_there_and_back(resnet, images.x, lambda model, x: model(pixel_values=x).logits)


def test_the_trainer_and_statistics_from_batches_that_are_dicts(resnet, images, tmp_path):
    class Weighted(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **options):
            with wbn.sample_weights(images.weights(inputs["labels"])):
                outputs = model(pixel_values=inputs["pixel_values"])
                loss = wbn.weighted_cross_entropy(outputs.logits, inputs["labels"])
            return (loss, outputs) if return_outputs else loss

    data = [
        {"pixel_values": x, "labels": label}
        for x, label in zip(images.x, images.labels, strict=True)
    ]
    wbn.convert(resnet)
    arguments = TrainingArguments(
        tmp_path, per_device_train_batch_size=4, max_steps=3, use_cpu=True, report_to=[],
        save_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    before = resnet.classifier[1].weight.clone()
    trainer = Weighted(resnet, arguments, train_dataset=data)
    trainer.train()
    assert not torch.equal(resnet.classifier[1].weight, before)

    def unpack(batch):
        return {"pixel_values": batch["pixel_values"]}, images.weights(batch["labels"])

    loader = trainer.get_train_dataloader()
    wbn.population_statistics(resnet, loader, "pooled", unpack)
    stem = resnet.resnet.embedder.embedder
    mean, _ = wbn.weighted_moments(stem.convolution(images.x), images.weights(images.labels))
    torch.testing.assert_close(stem.normalization.running_mean, mean.detach())
