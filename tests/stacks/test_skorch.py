"""skorch: scikit-learn's interface, with the weights of each training step."""

import torch
from skorch import NeuralNetClassifier

import wbn


def test_fit_is_the_plain_loop(images, small, by_hand):
    class Weighted(NeuralNetClassifier):
        def train_step_single(self, batch, **fit_params):
            with wbn.sample_weights(images.weights(batch[1])):
                return super().train_step_single(batch, **fit_params)

    start = {name: value.clone() for name, value in small.state_dict().items()}
    net = Weighted(
        wbn.convert(small), criterion=wbn.WeightedCrossEntropyLoss, optimizer=torch.optim.SGD,
        lr=0.1, max_epochs=2, batch_size=4, train_split=None, verbose=0,
    )  # fmt: skip
    net.fit(images.x, images.labels)
    assert net.predict(images.x).shape == (12,)
    trained = {name: value.clone() for name, value in net.module_.state_dict().items()}
    small.load_state_dict(start)
    torch.testing.assert_close(trained, dict(by_hand(small, epochs=2)))
