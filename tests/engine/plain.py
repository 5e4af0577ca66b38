"""One seed of a toy experiment, straight from the formulas: autograd, loops and no `Block`.

Split, first weights and order of samples are those of the engine, which have tests of their own.
"""

import torch

from study.engine.data import DataSet, load_split, stream
from study.engine.network import Network
from study.engine.protocol import Protocol
from study.engine.seed_block import batch_orders

SIZES = {True: {0: 40, 1: 60, 2: 30, 3: 30}, False: {0: 11, 1: 26, 2: 17, 3: 15}}
ACTIVATIONS = {
    "relu": lambda y: (y + y.abs()) / 2,
    "sigmoid": lambda y: 1 / (1 + torch.exp(-y)),
    "tanh": lambda y: 1 - 2 / (1 + torch.exp(2 * y)),
}
EXPERIMENTS = {"toy": {3: 14, 1: None}, "toy3": {2: 20, 0: None, 3: 9}}


def load_toy(train):
    """Rows of six whole numbers in a mixed order, one of them always 0 and one of them rare."""
    labels = torch.cat([torch.full((n,), k) for k, n in SIZES[train].items()])
    generator = stream(0, f"toy/{train}")
    labels = labels[torch.randperm(len(labels), generator=generator)]
    x = torch.randint(25, (len(labels), 6), generator=generator) + labels[:, None] * torch.arange(6)
    x[:, 0] = 0
    x[:, 1] = (x[:, 1] > 24) * 3
    return x.to(torch.uint8), labels


TOY = DataSet("toy", "made here", (6,), 4, 40.0, load_toy)


def toy(method="wlf_wbn", experiment="toy", **changes):
    """A small and quick protocol in double precision, resolved."""
    small = {"hidden": 4, "epochs": 2, "batch_size": 10, "eps": 1e-4, "dtype": "float64"}
    return Protocol.paper(
        experiment, method, **small | {"learning_rate": 0.02} | changes
    ).resolved()


def moments(x, w, correction="frequency"):
    """Of each column of x (N, C), with weights (N,): Eqs. 11 and 12."""
    divisor = {
        "frequency": w.sum() - 1,
        "reliability": w.sum() - (w * w).sum() / w.sum(),
        "none": w.sum(),
    }[correction]
    mean = (w[:, None] * x).sum(0) / w.sum()
    return mean, (w[:, None] * (x - mean) ** 2).sum(0) / divisor


def average(pairs):
    """Of means and of variances."""
    return tuple(sum(values) / len(pairs) for values in zip(*pairs, strict=True))


class Plain:
    """A network of one seed, its training and its logits of the test set."""

    def __init__(self, protocol, seed):
        self.p = p = protocol
        self.kept = "reliability" if p.correction == "none" else p.correction  # for inference
        split = load_split(p.experiment, seed)
        data = split.data_set
        self.x, self.y = split.train_images.double() / data.largest, split.train_labels
        self.test_x, self.test_y = split.test_images.double() / data.largest, split.test_labels
        self.file = sorted(range(len(self.test_y)), key=lambda place: split.test_index[place])
        if p.input_scaling == "standardized_apart":
            self.x, self.test_x = map(self.standardized, (self.x, self.test_x))
        self.classes = len(split.digits)
        self.counts = [int((self.y == k).sum()) for k in range(self.classes)]
        self.few = self.counts.index(min(self.counts))
        self.start(seed)
        self.orders = batch_orders(p, [seed], self.y[None])

    @staticmethod
    def standardized(images):
        columns = [(c - c.mean()) / (c.std(correction=0) or 1) for c in images.T]
        return torch.stack(columns, 1)

    def start(self, seed):
        layers = Network(self.p, [seed], (self.x.shape[1],), self.classes).layers
        self.w1, self.w2 = (layer.linear[0].clone().requires_grad_() for layer in layers)
        ones = [self.x.new_ones(n).requires_grad_() for n in (self.p.hidden, self.classes)]
        zeros = [self.x.new_zeros(n).requires_grad_() for n in (self.p.hidden, self.classes)]
        self.gammas, self.shifts = ones, zeros
        self.leaves = [self.w1, ones[0], zeros[0], self.w2, ones[1], zeros[1]]
        self.adam = [(torch.zeros_like(p), torch.zeros_like(p)) for p in self.leaves]
        self.steps, self.sums, self.seen = 0, {}, []

    def weight(self, labels, used):
        """Inverse frequencies, or ones where nobody has weights."""
        if not used:
            return torch.ones(len(labels), dtype=torch.float64)
        return torch.tensor([len(self.y) / self.counts[k] for k in labels], dtype=torch.float64)

    def norm_weight(self, labels, layer):
        norm = (self.p.hidden_norm, self.p.output_norm)[layer]
        known = self.p.weighting != "uniform" or self.p.norm_weighting is not None
        return self.weight(labels, norm == "weighted" and known)

    def affine(self, x, layer, mean, var):
        y = self.gammas[layer] * (x - mean) / (var + self.p.eps).sqrt() + self.shifts[layer]
        return y if layer == 1 else ACTIVATIONS[self.p.activation](y)

    def renormalized(self, x, mean, var):
        """Values by M and V, the gradient by the plain moments of the mini-batch."""
        m, v = moments(x, torch.ones(len(x), dtype=torch.float64), "none")
        r = ((v + self.p.eps) / (var + self.p.eps)).sqrt().detach()
        d = ((m - mean) / (var + self.p.eps).sqrt()).detach()
        y = self.gammas[0] * ((x - m) / (v + self.p.eps).sqrt() * r + d) + self.shifts[0]
        return ACTIVATIONS[self.p.activation](y)

    def class_moments(self, latest):
        """M and V from running sums of each class that was seen, one column after the other."""
        sums = self.sums or latest
        share = {k: self.counts[k] * (len(self.y) / self.counts[k]) for k in sums}
        share = {k: value / sum(share.values()) for k, value in share.items()}
        mean = sum(share[k] * first / n for k, (n, first, _) in sums.items())
        square = sum(share[k] * second / n for k, (n, _, second) in sums.items())
        return mean, square - mean**2

    def class_sums(self, x, labels):
        found = {}
        for row, label in zip(x.detach(), labels.tolist(), strict=True):
            n, first, second = found.get(label, (0, 0, 0))
            found[label] = (n + 1, first + row, second + row**2)
        return found

    def remember(self, latest):
        if not self.sums:
            self.sums = dict(latest)
            return
        nothing = (0, 0, 0)
        self.sums = {
            k: tuple(
                0.98 * a + 0.02 * b
                for a, b in zip(self.sums.get(k, nothing), latest.get(k, nothing), strict=True)
            )
            for k in {*self.sums, *latest}
        }

    def train_mode(self, x, labels):
        """Logits of a mini-batch, and the moments that each layer found."""
        found = []
        for layer, w in enumerate((self.w1, self.w2)):
            x = x @ w.T
            own = moments(x, self.norm_weight(labels, layer), self.p.correction)
            kept = moments(x, self.norm_weight(labels, layer), self.kept)
            found.append([m.detach() for m in kept])
            if self.p.statistics == "class_averages" and layer == 0:
                self.latest = self.class_sums(x, labels)
                x = self.renormalized(x, *self.class_moments(self.latest))
            else:
                detached = self.p.statistics == "detached"
                x = self.affine(x, layer, *(m.detach() if detached else m for m in own))
        return x, found

    def loss(self, logits, labels):
        weighted, losses = self.p.weighting != "uniform", []
        for f, label in zip(logits, labels.tolist(), strict=True):
            if self.p.loss == "squared_error":
                losses.append(sum((f[k] - int(k == label)) ** 2 for k in range(self.classes)))
            else:
                prior = torch.tensor(self.counts).double() / len(self.y)
                odds = f.exp() * prior**self.p.logit_adjustment
                losses.append(-(odds[label] / odds.sum()).log())
        w = self.weight(labels, weighted)
        divisor = w.sum()
        if self.p.loss_normalizer == "dataset" and weighted:
            divisor = self.weight(self.y, True).sum() / len(self.y) * len(w)
        return (w * torch.stack(losses)).sum() / divisor

    def step(self, places):
        logits, found = self.train_mode(self.x[places], self.y[places])
        loss = self.loss(logits, self.y[places])
        grads = torch.autograd.grad(loss, self.leaves)
        self.steps += 1
        rate, (b1, b2) = self.p.learning_rate, self.p.adam_betas
        with torch.no_grad():
            for i, (leaf, g) in enumerate(zip(self.leaves, grads, strict=True)):
                if self.p.optimizer == "sgd":
                    leaf -= rate * g
                    continue
                m, v = self.adam[i]
                self.adam[i] = m, v = b1 * m + (1 - b1) * g, b2 * v + (1 - b2) * g**2
                m, v = m / (1 - b1**self.steps), v / (1 - b2**self.steps)
                leaf -= rate * m / (v.sqrt() + self.p.adam_eps)
        if self.p.statistics == "class_averages":
            self.remember(self.latest)
        self.seen.append(found)
        return loss.item()

    def train_epoch(self):
        """The mean loss of the epoch's mini-batches."""
        order = next(self.orders)[0]
        size = self.p.batch_size
        self.batches = [order[i : i + size] for i in range(0, len(order), size)]
        return sum(self.step(places) for places in self.batches) / len(self.batches)

    def infer(self, x, statistics):
        for layer, w in enumerate((self.w1, self.w2)):
            x = self.affine(x @ w.T, layer, *statistics[layer])
        return x

    def behind(self, hidden, x, w):
        """Moments of the output layer where the hidden layer has given ones."""
        outputs = self.affine(x @ self.w1.T, 0, *hidden) @ self.w2.T
        return moments(outputs, w, self.kept)

    def averages(self, batches):
        found = [self.train_mode(self.x[b], self.y[b])[1] for b in batches]
        return [average([of_batch[layer] for of_batch in found]) for layer in (0, 1)]

    def moving(self, momentum):
        running = [[0.0, 1.0], [0.0, 1.0]]
        for found in self.seen:
            for layer in (0, 1):
                for i in (0, 1):
                    running[layer][i] = (1 - momentum) * running[layer][i] + momentum * found[
                        layer
                    ][i]
        return running

    def mixed(self, chosen):
        """Moments of the test set where they are chosen, training averages elsewhere."""
        train, ones = self.averages(self.batches), torch.ones(len(self.test_x)).double()
        test = moments(self.test_x @ self.w1.T, ones, self.kept)
        hidden = [test[i] if name in chosen else train[0][i] for i, name in enumerate(("hm", "hv"))]
        test = self.behind(hidden, self.test_x, ones)
        output = [test[i] if name in chosen else train[1][i] for i, name in enumerate(("om", "ov"))]
        return [hidden, output]

    def averaged_behind(self, hidden, batches):
        weights = [self.norm_weight(self.y[b], 1) for b in batches]
        pairs = zip(batches, weights, strict=True)
        return [hidden, average([self.behind(hidden, self.x[b], w) for b, w in pairs])]

    def in_batches(self, order, size, weighted):
        """Logits of test images, by batches in training mode; a last one joins those before."""
        batches = [order[i : i + size] for i in range(0, len(order), size)]
        if len(batches[-1]) == 1:
            batches[-2:] = [batches[-2] + batches[-1]]
        rows = {}
        for places in batches:
            x = self.test_x[places]
            for layer, linear in enumerate((self.w1, self.w2)):
                x, w = x @ linear.T, self.norm_weight(self.test_y[places], layer)
                w = w if weighted else torch.ones_like(w)
                x = self.affine(x, layer, *moments(x, w, self.p.correction))
            rows |= dict(zip(places, x, strict=True))
        return torch.stack([rows[place] for place in range(len(self.test_y))])
