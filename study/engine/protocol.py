"""Every choice of a run, stated by the paper or not, as one frozen record."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import get_args

from study.engine.data import ALL_EXPERIMENTS
from study.engine.values import Kind, ListOf, Number, OneOf, Whole, refuse, refuse_unknown
from wbn.checks import Correction
from wbn.weights import SCHEMES, Scale

METHODS = {"lf_sbn": "Plain + BN", "wlf_sbn": "Weighted + BN", "wlf_wbn": "Weighted + WBN"}
NORMS = ("standard", "weighted", "none")
INFERENCE = ("batch_average", "last_epoch", "moving_average", "pooled", "evaluation_set")
# Moments that come from the test set as one batch, the others from the training set: mean and
# variance of the hidden and of the output layer. None of them is "batch_average", all four are
# "evaluation_set".
MOMENTS = ("hm", "hv", "om", "ov")
MIXED = tuple(
    f"test_{'_'.join(chosen)}"
    for size in range(1, len(MOMENTS))
    for chosen in itertools.combinations(MOMENTS, size)
)
TEST_BATCHES = (10, 20, 50, 100)
# Normalized with the evaluated batch itself, in training mode.
IN_BATCHES = (
    *(f"{order}_batches_{size}" for order in ("test", "sorted_test") for size in TEST_BATCHES),
    "weighted_test",
    "weighted_test_batches_100",
)
MOVING = {"moving_average_0.01": 0.01, "moving_average_0.001": 0.001}
OWN_AVERAGES = ("class_averages", "class_averages_pooled")
# Of hidden and output layer, one pooled or averaged, and the other not.
BY_LAYER = ("pooled_hidden", "pooled_output", "averaged_output")
PROBES = ("minority_weight", "majority_weight")
STATISTICS = ("batch", "cross_fitted", "running_sums", "detached", "class_averages")
ALL_INFERENCE = (
    *INFERENCE, *BY_LAYER, *MIXED, *IN_BATCHES, *MOVING, "never_updated",
    "running_sums", *OWN_AVERAGES, "validated_threshold", *PROBES,
)  # fmt: skip
FOLDS = 5
EPOCH = 20  # of the reference reading, at which claims are judged
# The declared family of readings of what the paper leaves open, the reference first.
FAMILY = tuple(
    {"loss_normalizer": normalizer, "batch_order": order, "learning_rate": rate}
    for normalizer, order, rate in itertools.product(
        ("batch", "dataset"), ("reshuffle", "fixed"), (1e-3, 1e-2)
    )
)

# Bounds that no experiment comes near, so that a slip of the pen is refused before it fills the
# memory or the week.
LARGEST_HIDDEN = 10_000  # a block of seeds with Adam's moments takes more than 1 GB
LARGEST_BATCH = 1_000_000  # more samples than any data set here has
MOST_EPOCHS = 1_000_000  # each may be evaluated, and is then named in what is stored
LARGEST = 1e38  # what float32 can hold, up to a factor
POSITIVE, NOT_NEGATIVE = Number("(", 0, LARGEST, "]"), Number("[", 0, LARGEST, "]")
FRACTION = Number("[", 0, 1, ")")

# What each field takes; None as well where it is the default.
ALLOWED: dict[str, Kind] = {
    "experiment": OneOf(ALL_EXPERIMENTS),
    "method": OneOf(METHODS),
    "network": OneOf(("mlp", "conv")),
    "hidden": Whole(1, LARGEST_HIDDEN),
    "activation": OneOf(("relu", "sigmoid", "tanh")),
    "hidden_norm": OneOf(NORMS),
    "output_norm": OneOf(NORMS),
    "initialization": OneOf(
        ("xavier_uniform", "xavier_normal", "he_normal", "lecun_normal", "torch_uniform")
    ),
    "optimizer": OneOf(("adam", "sgd")),
    "learning_rate": POSITIVE,
    "adam_betas": ListOf(FRACTION, length=2),
    "adam_eps": POSITIVE,  # with 0, pixels that are always 0 would step by 0 / 0
    "batch_size": Whole(2, LARGEST_BATCH),
    "eps": NOT_NEGATIVE,
    "correction": OneOf(get_args(Correction)),
    "epochs": Whole(1, MOST_EPOCHS),
    "input_scaling": OneOf(("unit", "standardized_apart")),
    "statistics": OneOf(STATISTICS),
    "output_shift_start": Number("[", -LARGEST, LARGEST, "]"),
    "output_shift_rate": NOT_NEGATIVE,
    "batch_order": OneOf(("reshuffle", "fixed", "replacement", "sorted", "stratified", "balanced")),
    "last_batch": OneOf(("keep", "drop")),
    "loss": OneOf(("cross_entropy", "squared_error")),
    "loss_normalizer": OneOf(("batch", "dataset")),
    "weighting": OneOf(SCHEMES),
    "beta": Number("[", 0, 1, "]"),
    "scale": OneOf(get_args(Scale)),
    "norm_weighting": OneOf(("inverse_frequency",)),
    "logit_adjustment": NOT_NEGATIVE,
    "inference": ListOf(OneOf(ALL_INFERENCE)),
    "momentum": Number("(", 0, 1, "]"),
    "eval_epochs": ListOf(Whole(1, MOST_EPOCHS)),
    "evaluate_on": OneOf(("test", "validation")),
    "fold": Whole(0, FOLDS - 1),
    "diagnosis": OneOf(("none", "threshold")),
    "dtype": OneOf(("float32", "float64")),
}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One reading of the paper's experiments; the defaults are the reference reading.

    Fields that are None by default follow from the method or from `epochs`; `resolved` fills
    them in.

    Parameters
    ----------
    experiment, method
        "i", "ii" or "iii"; "lf_sbn", "wlf_sbn" or "wlf_wbn". Stated. Beyond the paper, ten
        classes with imbalance ratios of 10 to 200: "lt10", "lt50", "lt100" or "lt200".
    network
        "mlp", one hidden layer, is stated. "conv" has two convolutions, both normalized by
        `hidden_norm`, and is beyond the paper.
    hidden, activation
        200 units with ReLU. Stated. "conv" has its own sizes and takes no `hidden`; "sigmoid" and
        "tanh" are hypotheses about Table 2.
    hidden_norm, output_norm
        Batch normalization of each layer, "standard", "weighted" or "none"; by default what
        the method says. Stated.
    initialization
        "xavier_uniform" or "xavier_normal". Stated as Xavier's; *uniform is our reading*.
        "he_normal", "lecun_normal" (Chainer's default) and "torch_uniform" (that of `nn.Linear`)
        are hypotheses about Table 2.
    optimizer, learning_rate, adam_betas, adam_eps
        Adam is stated; *1e-3, (0.9, 0.999) and 1e-8 are our reading*, its paper's defaults.
        "sgd", plain gradient descent with `learning_rate`, is a hypothesis about Table 2.
    batch_size
        100. Stated.
    eps, correction
        1e-8 and "frequency", the unbiased variance of Eqs. 10 and 12. Stated.
    statistics
        What normalizes a mini-batch in training; "batch", its own moments, is stated. Two
        interventions (`study.engine.variants`): "cross_fitted" normalizes each half with the
        moments of the other, "running_sums" with running sums over earlier mini-batches. A
        hypothesis about Table 2: "detached" takes the moments for constants in the gradient. A
        repair: "class_averages" normalizes the hidden layer with balanced moments from running
        averages of each class, and the output layer with its own moments; with the `hidden_norm`
        "standard", for comparison, with running averages that are not balanced.
    output_shift_start, output_shift_rate
        Difference of the shifts of the output layer at the start, minority minus majority, and
        how many times faster than the rest they are learned; *0 and 1 are our reading*. With
        the rate 0 they stay where they start.
    epochs
        *20 is our reading.*
    input_scaling
        *"unit", pixels divided by their largest value, is our reading.* "standardized_apart",
        each pixel by its mean and deviation in the training set, and in the test set by those of
        the test set, is a hypothesis about Table 2.
    batch_order
        *"reshuffle", a new partition each epoch, is our reading*; "fixed" keeps the first
        one, "replacement" draws each sample of an epoch anew, "sorted" goes through the data
        as stored, class by class, "stratified" reshuffles within each class and deals the
        classes out as evenly as their sizes allow, "balanced" draws each sample anew with all
        classes equally likely, which oversamples the minority.
    last_batch
        *"keep", train on the short last batch too, is our reading*; or "drop".
    loss
        "cross_entropy" is stated; "squared_error" of the outputs to the one-hot labels is a
        hypothesis about Table 2.
    loss_normalizer
        *"batch", the mini-batch's own Z_r, is our reading*; "dataset" is Z / N times the batch
        size.
    weighting, beta, scale
        "inverse_frequency" (Eq. 3) on the scale "paper" for the weighted loss. Stated.
        "class_balanced" (Eq. 13) needs `beta`.
    norm_weighting
        Weights of weighted BN where the loss has none, as with logit adjustment:
        "inverse_frequency". By default those of the loss.
    logit_adjustment
        tau of Menon et al. (2021), who add tau log(N_k / N) to the logits in the training
        loss and nothing at inference; 0, without, is stated.
    inference
        Statistics used at inference, one name or several, all evaluated on the same networks.
        "batch_average", the average over mini-batches, is stated; *one pass over the epoch's
        batches after training is our reading*. "last_epoch" averages what the batches showed
        while training, "moving_average" is torch's, with `momentum`, "pooled" takes the whole
        training set as one batch. "evaluation_set" takes the set that is evaluated as one batch,
        without weights, as a network does that was left in training mode: not what the paper
        says. "pooled_hidden" has pooled statistics in the hidden layer and those of
        "batch_average" in the output layer; "pooled_output" the other way round, pooled behind
        such a hidden layer; "averaged_output" averages the output layer over mini-batches whose
        hidden layer has pooled statistics. "running_sums" are those of training, and so are
        "class_averages" of the hidden layer, with averages over mini-batches in the output layer
        behind it, or pooled statistics ("class_averages_pooled"). "validated_threshold" moves the
        threshold between two classes to where five-fold validation inside the training set puts
        it. Not what the paper says either, and hypotheses about Table 2
        (`study.engine.slips`): "test_hm_ov" and the like take the named ones of the four
        moments, mean and variance of hidden and output layer, from the test set;
        "test_batches_100" normalizes test images in batches of that size, in the order of their
        file, "sorted_test_batches_100" class by class; "weighted_test" with the weights of their
        labels; "moving_average_0.01" has another momentum, and "never_updated" mean 0 and variance
        1.
        "minority_weight" and "majority_weight" are no inference but probes: each image stands in
        a mini-batch of training images, with the weight of that class.
    eval_epochs
        *Every epoch is our reading.*
    evaluate_on, fold
        "test", or "validation": one of five stratified folds of the training set, which is
        then held out from training.
    diagnosis
        "threshold" adds columns that tell where the threshold between two classes lies
        (`study.engine.diagnosis`); "none" does not.
    dtype
        *"float32" is our reading.*

    Examples
    --------
    >>> Protocol.paper("i", "wlf_wbn").resolved().hidden_norm
    'weighted'
    """

    experiment: str
    method: str
    network: str = "mlp"
    hidden: int = 200
    activation: str = "relu"
    hidden_norm: str | None = None
    output_norm: str | None = None
    initialization: str = "xavier_uniform"
    optimizer: str = "adam"
    learning_rate: float = 1e-3
    adam_betas: tuple[float, float] = (0.9, 0.999)
    adam_eps: float = 1e-8
    batch_size: int = 100
    eps: float = 1e-8
    correction: str = "frequency"
    statistics: str = "batch"
    output_shift_start: float = 0.0
    output_shift_rate: float = 1.0
    epochs: int = 20
    input_scaling: str = "unit"
    batch_order: str = "reshuffle"
    last_batch: str = "keep"
    loss: str = "cross_entropy"
    loss_normalizer: str = "batch"
    weighting: str | None = None
    beta: float | None = None
    scale: str = "paper"
    norm_weighting: str | None = None
    logit_adjustment: float = 0.0
    inference: str | tuple[str, ...] = ("batch_average",)
    momentum: float = 0.1
    eval_epochs: tuple[int, ...] | None = None
    evaluate_on: str = "test"
    fold: int = 0
    diagnosis: str = "none"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        if isinstance(self.inference, str):
            object.__setattr__(self, "inference", (self.inference,))
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                # As its declared type, so that 1 and 1.0 have one hash.
                object.__setattr__(self, field.name, ALLOWED[field.name].take(field.name, value))
        self._check_together()

    def _check_together(self) -> None:
        """Refuse choices that are possible each, and not together."""
        if self.eval_epochs is not None and max(self.eval_epochs) > self.epochs:
            refuse("eval_epochs", self.eval_epochs, f"there are {self.epochs} epochs")
        if len(set(self.inference)) < len(self.inference):
            refuse("inference", self.inference, "name each kind once")
        needing = [name for name, scheme in SCHEMES.items() if scheme.takes_beta]
        if (self.weighting in needing) != (self.beta is not None):
            raise ValueError(
                f"weighting is {self.weighting!r} and beta is {self.beta!r}: only "
                f"{', '.join(needing)} needs a beta, the others take none"
            )
        if self.method == "lf_sbn" and self.weighting not in (None, "uniform"):
            raise ValueError("lf_sbn is the plain loss: its weighting can only be 'uniform'")
        plain = self.method == "lf_sbn" or self.weighting == "uniform"
        if plain and set(self.inference) & set(PROBES):
            raise ValueError(
                f"inference is {self.inference}: {' and '.join(PROBES)} need a weighted loss"
            )
        two_classes = len(ALL_EXPERIMENTS[self.experiment].sizes) == 2
        if not two_classes and (self.output_shift_start or self.diagnosis != "none"):
            raise ValueError(
                f"experiment is {self.experiment!r}: output_shift_start and diagnosis are for two "
                "classes"
            )
        self._check_inference()
        self._check_own_averages()
        if not two_classes and "validated_threshold" in self.inference:
            refuse("inference", self.inference, "a threshold is between two classes")
        if self.evaluate_on != "test":
            on_test = {"validated_threshold", "weighted_test", *MIXED, *IN_BATCHES}
            if set(self.inference) & on_test or self.input_scaling != "unit":
                raise ValueError(
                    "evaluate_on is 'validation': test batches, a validated threshold and images "
                    "standardized apart are for the test set"
                )
        if self.network == "conv":
            self._check_convolution()

    def _check_inference(self) -> None:
        """Refuse kinds of inference that would be something else than their name says."""
        kinds = set(self.inference)
        stray = sorted(kinds & {*PROBES, *IN_BATCHES, "validated_threshold"})
        if self.diagnosis != "none" and stray:
            refuse("inference", stray, "they have no statistics to diagnose: leave one of both out")
        if self.statistics in ("cross_fitted", "running_sums") and kinds & set(IN_BATCHES):
            refuse("statistics", self.statistics, "test batches need those of the batch itself")
        if "none" in (self.hidden_norm, self.output_norm) and kinds & set(MIXED):
            refuse("inference", self.inference, "test_hm and the like need both layers normalized")
        if "validated_threshold" in kinds and self.input_scaling != "unit":
            refuse("input_scaling", self.input_scaling, "a validated threshold needs 'unit'")

    def _check_own_averages(self) -> None:
        """Refuse statistics that training does not keep, and weights that nobody has."""
        if "running_sums" in self.inference and self.statistics != "running_sums":
            refuse("inference", self.inference, "running_sums need statistics of that name")
        own, kinds = self.statistics == "class_averages", set(self.inference)
        allowed = {*OWN_AVERAGES, "pooled"} if own else set(ALL_INFERENCE) - set(OWN_AVERAGES)
        if not kinds <= allowed:
            raise ValueError(
                f"statistics are {self.statistics!r} and inference is {self.inference}: "
                f"class_averages go with {', '.join(OWN_AVERAGES)} and pooled"
            )
        plain = self.method == "lf_sbn" or self.weighting == "uniform"
        if self.norm_weighting is not None and not plain:
            refuse("norm_weighting", self.norm_weighting, "it is for a loss without weights")
        unweighted = plain and self.norm_weighting is None
        balanced = self.hidden_norm == "weighted" and not unweighted
        if own and not balanced and self.hidden_norm != "standard":
            raise ValueError(
                "class_averages are balanced by weights: hidden_norm must be 'weighted' and the "
                "loss or norm_weighting have some, or hidden_norm be 'standard'"
            )

    def _check_convolution(self) -> None:
        """Refuse what only the paper's own network can be asked for."""
        if self.hidden != type(self).hidden:
            raise ValueError(
                f"network is 'conv' and hidden is {self.hidden}: its sizes are fixed, leave "
                "hidden out, or choose 'mlp'"
            )
        fixed = ("activation", "statistics", "output_shift_start", "output_shift_rate",
                 "diagnosis")  # fmt: skip
        changed = [name for name in fixed if getattr(self, name) != getattr(type(self), name)]
        changed += [kind for kind in self.inference if kind in (*BY_LAYER, *MIXED)]
        if changed:
            raise ValueError(f"network is 'conv': choose 'mlp' for {', '.join(changed)}")

    @classmethod
    def paper(cls, experiment: str, method: str, **changes: object) -> Protocol:
        """The reference reading, with `changes` to it."""
        refuse_unknown(changes, ALLOWED, "choice")
        return cls(experiment=experiment, method=method, **changes)

    @classmethod
    def family(cls, experiment: str, method: str, **changes: object) -> list[Protocol]:
        """One protocol for each reading of `FAMILY`, the reference first.

        Loss normalizer (batch, dataset) by batch order (reshuffle, fixed) by learning rate
        (1e-3, 1e-2).

        Examples
        --------
        >>> len(Protocol.family("iii", "wlf_wbn"))
        8
        """
        return [cls.paper(experiment, method, **reading, **changes) for reading in FAMILY]

    def resolved(self) -> Protocol:
        """The same protocol with every None that has a value filled in.

        Without weights their scale and the loss normalizer mean nothing, and get the values
        of the reference reading, so that runs which are the same have the same hash.
        """
        norm = "weighted" if self.method == "wlf_wbn" else "standard"
        weighting = self.weighting or (
            "uniform" if self.method == "lf_sbn" else "inverse_frequency"
        )
        plain = weighting == "uniform"
        return replace(
            self,
            hidden_norm=self.hidden_norm or norm,
            output_norm=self.output_norm or norm,
            weighting=weighting,
            scale="paper" if plain else self.scale,
            loss_normalizer="batch" if plain else self.loss_normalizer,
            eval_epochs=tuple(sorted(set(self.eval_epochs or range(1, self.epochs + 1)))),
        )

    @property
    def differences(self) -> dict:
        """What is resolved to something else than in the reference reading."""
        reference = vars(Protocol.paper(self.experiment, self.method).resolved())
        return {k: v for k, v in vars(self.resolved()).items() if v != reference[k]}

    @property
    def hash(self) -> str:
        """Content hash of experiment, method and `differences`, in 12 hexadecimal digits.

        A field added later leaves it alone, as long as its default is the old behavior.

        Examples
        --------
        >>> named = Protocol.paper("i", "wlf_wbn", hidden_norm="weighted")
        >>> named.hash == Protocol.paper("i", "wlf_wbn").hash
        True
        """
        return _hash(self)

    def to_dict(self) -> dict:
        """Resolved values, ready for JSON."""
        return json.loads(json.dumps(vars(self.resolved())))

    @classmethod
    def from_dict(cls, values: dict) -> Protocol:
        """The protocol that `to_dict` wrote, or a table of a TOML file."""
        if not isinstance(values, dict):
            refuse("the protocol", values, "give a table of choices")
        refuse_unknown(values, ALLOWED, "choice")
        missing = {"experiment", "method"} - set(values)
        if missing:
            raise ValueError(f"a protocol needs {' and '.join(sorted(missing))}")
        return cls.paper(**values)


@cache  # it is asked for with every unit that is listed, stored or looked up
def _hash(protocol: Protocol) -> str:
    content = {
        "experiment": protocol.experiment,
        "method": protocol.method,
        **protocol.differences,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
