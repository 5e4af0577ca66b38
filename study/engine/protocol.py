"""Every choice of a run, stated by the paper or not, as one frozen record."""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Annotated, get_args, get_type_hints

from study.engine.data import ALL_EXPERIMENTS
from study.engine.values import Kind, ListOf, Number, OneOf, Whole, refuse, refuse_unknown
from wbn.checks import Correction
from wbn.weights import SCHEMES, Scale

METHODS = {"lf_sbn": "Plain + BN", "wlf_sbn": "Weighted + BN", "wlf_wbn": "Weighted + WBN"}
NORMS = ("standard", "weighted", "none")
INFERENCE = ("batch_average", "last_epoch", "moving_average", "pooled", "evaluation_set")
# Moments: mean and variance of the hidden and of the output layer. A name in MIXED lists those that
# come from the test set as one batch; the others come from the training set. With none it would be
# "batch_average", with all four "evaluation_set".
MOMENTS = ("hm", "hv", "om", "ov")
MIXED = tuple(
    f"test_{'_'.join(chosen)}"
    for size in range(1, len(MOMENTS))
    for chosen in itertools.combinations(MOMENTS, size)
)
TEST_BATCHES = (10, 20, 50, 100)
# Test images are normalized with the moments of their own batch, as in training mode.
IN_BATCHES = (
    *(f"{order}_batches_{size}" for order in ("test", "sorted_test") for size in TEST_BATCHES),
    "weighted_test",
    "weighted_test_batches_100",
)
MOVING = {"moving_average_0.01": 0.01, "moving_average_0.001": 0.001}
OWN_AVERAGES = ("class_averages", "class_averages_pooled")
# The hidden and the output layer have statistics of different kinds.
BY_LAYER = ("pooled_hidden", "pooled_output", "averaged_output")
PROBES = ("minority_weight", "majority_weight")
STATISTICS = ("batch", "cross_fitted", "running_sums", "detached", "class_averages")
ALL_INFERENCE = (
    *INFERENCE, *BY_LAYER, *MIXED, *IN_BATCHES, *MOVING, "never_updated",
    "running_sums", *OWN_AVERAGES, "validated_threshold", *PROBES,
)  # fmt: skip
FOLDS = 5
EPOCH = 20  # the last one of the reference reading, at which claims are judged
# The declared family of readings; the first one is the reference reading.
FAMILY = tuple(
    {"loss_normalizer": normalizer, "batch_order": order, "learning_rate": rate}
    for normalizer, order, rate in itertools.product(
        ("batch", "dataset"), ("reshuffle", "fixed"), (1e-3, 1e-2)
    )
)

# Bounds far beyond any experiment. They catch typing errors that would fill the memory or take a
# week.
LARGEST_HIDDEN = 10_000  # with Adam's moments, a block of seeds then takes more than 1 GB
LARGEST_BATCH = 1_000_000  # more samples than any data set here has
MOST_EPOCHS = 1_000_000  # each evaluated epoch is named in the stored protocol
LARGEST = 1e38  # about the largest number of float32
POSITIVE, NOT_NEGATIVE = Number("(", 0, LARGEST, "]"), Number("[", 0, LARGEST, "]")
FRACTION = Number("[", 0, 1, ")")


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One reading of the paper's experiments; the defaults are the reference reading.

    An annotation says which values a field may have; a field that is None by default may also be
    None. `resolved` replaces most None by the value that follows from the method or from `epochs`.
    "Stated" marks what the paper states; *what we had to choose stands in italics*.

    Data
    ----
    experiment, method
        "i", "ii" or "iii"; "lf_sbn", "wlf_sbn" or "wlf_wbn". Stated. Beyond the paper, ten
        classes with imbalance ratios of 10 to 200: "lt10", "lt50", "lt100" or "lt200".
    input_scaling
        *"unit", pixels divided by their largest value, is our reading.* "standardized_apart" is
        a hypothesis about Table 2: the training set and the test set are standardized separately,
        each pixel with its own mean and standard deviation.
    dtype
        *"float32" is our reading.*

    Network
    -------
    network
        "mlp", one hidden layer, is stated. "conv" has two convolutions, both normalized by
        `hidden_norm`, and is beyond the paper.
    hidden, activation
        200 units with ReLU. Stated. "conv" has its own sizes and takes no `hidden`; "sigmoid" and
        "tanh" are hypotheses about Table 2.
    initialization
        "xavier_uniform" or "xavier_normal". Xavier is stated; *uniform is our reading*.
        "he_normal", "lecun_normal" (Chainer's default) and "torch_uniform" (that of `nn.Linear`)
        are hypotheses about Table 2.

    Normalization
    -------------
    hidden_norm, output_norm
        Batch normalization of each layer, "standard", "weighted" or "none"; by default what
        the method says. Stated.
    eps, correction
        1e-8 and "frequency", the unbiased variance of Eqs. 10 and 12. Stated.
    statistics
        What normalizes a mini-batch in training; "batch", its own moments, is stated. The others
        are layers of `study.engine.variants`. Two are interventions: "cross_fitted" normalizes
        each half with the moments of the other half, "running_sums" uses running sums over
        earlier mini-batches. "detached" is a hypothesis about Table 2: no gradient goes through
        the moments. "class_averages" is a repair: the hidden layer is normalized with balanced
        moments from running averages of each class, and the output layer with its own moments.
        With the `hidden_norm` "standard" the running averages are not balanced, for comparison.

    Training
    --------
    optimizer, learning_rate, adam_betas, adam_eps
        Adam is stated; *1e-3, (0.9, 0.999) and 1e-8 are our reading*, the defaults of Adam's paper.
        "sgd", plain gradient descent with `learning_rate`, is a hypothesis about Table 2.
    epochs
        *20 is our reading.*
    batch_size
        100. Stated.
    batch_order
        *"reshuffle", a new partition each epoch, is our reading.* "fixed" keeps the first
        partition. "replacement" draws each sample of an epoch anew. "sorted" goes through the
        data as stored, class by class. "stratified" reshuffles within each class and deals the
        classes out as evenly as their sizes allow. "balanced" draws each sample anew with all
        classes equally likely, which oversamples the minority.
    last_batch
        *"keep", train on the short last batch too, is our reading*; or "drop".
    output_shift_start, output_shift_rate
        The output layer's shift of the minority minus that of the majority at the start, and how
        many times faster than the rest these shifts are learned; *0 and 1 are our reading*. With
        the rate 0 the shifts stay where they start.

    Loss and weights
    ----------------
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
        Weights of weighted BN if the loss has none, as with logit adjustment:
        "inverse_frequency". By default BN uses the weights of the loss.
    logit_adjustment
        tau of Menon et al. (2021), who add tau log(N_k / N) to the logits in the training
        loss and nothing at inference; 0, without, is stated.

    Evaluation
    ----------
    inference
        Statistics used at inference, one name or several; all are evaluated on the same networks.

        - "batch_average", the average over mini-batches, is stated; *one pass over the epoch's
          batches after training is our reading*.
        - "last_epoch" averages the moments that the batches of the epoch had in training.
        - "moving_average" is torch's, with `momentum`; "moving_average_0.01" and
          "moving_average_0.001" have a momentum of their own, and "never_updated" has mean 0 and
          variance 1. The last three are hypotheses about Table 2.
        - "pooled" takes the whole training set as one batch.
        - "pooled_hidden" is pooled in the hidden layer and "batch_average" in the output layer.
          "pooled_output" is "batch_average" in the hidden layer and pooled behind it.
          "averaged_output" is pooled in the hidden layer and averaged over mini-batches behind it.
        - "running_sums" are those of training. "class_averages" are the class averages of
          training in the hidden layer, and averages over mini-batches in the output layer behind
          it; "class_averages_pooled" has pooled statistics in the output layer.
        - "validated_threshold" is "batch_average" with another threshold between two classes,
          which five-fold validation inside the training set chooses.
        - The paper does not describe the use of test images: "evaluation_set" takes the
          evaluated set as one batch without weights, as happens if a network is left in training
          mode. The others are hypotheses about Table 2. "test_hm_ov" and the like take some of
          the four moments (mean and variance of the hidden and of the output layer) from the test
          set. "test_batches_100" normalizes test images in batches of that size in the order of
          their file, "sorted_test_batches_100" class by class. "weighted_test" and
          "weighted_test_batches_100" use the weights of the test labels.
        - "minority_weight" and "majority_weight" are probes: each image stands in a mini-batch of
          training images, with the weight of that class.
    momentum
        The momentum of "moving_average"; 0.1 is torch's default.
    eval_epochs
        *Every epoch is our reading.*
    evaluate_on, fold
        "test", or "validation": one of five stratified folds of the training set, which is
        then held out from training.
    diagnosis
        "threshold" adds columns that tell where the threshold between two classes lies
        (`study.engine.threshold`); "none" does not.

    Examples
    --------
    >>> Protocol.paper("i", "wlf_wbn").resolved().hidden_norm
    'weighted'
    """

    # Data
    experiment: Annotated[str, OneOf(ALL_EXPERIMENTS)]
    method: Annotated[str, OneOf(METHODS)]
    input_scaling: Annotated[str, OneOf(("unit", "standardized_apart"))] = "unit"
    dtype: Annotated[str, OneOf(("float32", "float64"))] = "float32"

    def _check_data(self) -> None:
        if "validated_threshold" in self.inference and self.input_scaling != "unit":
            refuse("input_scaling", self.input_scaling, "a validated threshold needs 'unit'")

    # Network
    network: Annotated[str, OneOf(("mlp", "conv"))] = "mlp"
    hidden: Annotated[int, Whole(1, LARGEST_HIDDEN)] = 200
    activation: Annotated[str, OneOf(("relu", "sigmoid", "tanh"))] = "relu"
    initialization: Annotated[
        str,
        OneOf(("xavier_uniform", "xavier_normal", "he_normal", "lecun_normal", "torch_uniform")),
    ] = "xavier_uniform"

    def _check_network(self) -> None:
        """Some choices exist for the paper's own network only."""
        if self.network != "conv":
            return
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

    # Normalization
    hidden_norm: Annotated[str | None, OneOf(NORMS)] = None
    output_norm: Annotated[str | None, OneOf(NORMS)] = None
    eps: Annotated[float, NOT_NEGATIVE] = 1e-8
    correction: Annotated[str, OneOf(get_args(Correction))] = "frequency"
    statistics: Annotated[str, OneOf(STATISTICS)] = "batch"

    def _check_normalization(self) -> None:
        """Class averages are balanced by weights, so there must be weights."""
        unweighted = self._plain and self.norm_weighting is None
        balanced = self.hidden_norm == "weighted" and not unweighted
        if self.statistics == "class_averages" and not balanced and self.hidden_norm != "standard":
            raise ValueError(
                "statistics 'class_averages' need hidden_norm 'standard', or 'weighted' with "
                "weights of the loss or norm_weighting"
            )

    # Training
    optimizer: Annotated[str, OneOf(("adam", "sgd"))] = "adam"
    learning_rate: Annotated[float, POSITIVE] = 1e-3
    adam_betas: Annotated[tuple[float, float], ListOf(FRACTION, length=2)] = (0.9, 0.999)
    adam_eps: Annotated[float, POSITIVE] = 1e-8  # at 0, pixels that are always 0 would give 0 / 0
    epochs: Annotated[int, Whole(1, MOST_EPOCHS)] = 20
    batch_size: Annotated[int, Whole(2, LARGEST_BATCH)] = 100
    batch_order: Annotated[
        str, OneOf(("reshuffle", "fixed", "replacement", "sorted", "stratified", "balanced"))
    ] = "reshuffle"
    last_batch: Annotated[str, OneOf(("keep", "drop"))] = "keep"
    output_shift_start: Annotated[float, Number("[", -LARGEST, LARGEST, "]")] = 0.0
    output_shift_rate: Annotated[float, NOT_NEGATIVE] = 1.0

    def _check_training(self) -> None:
        if self.output_shift_start and not self._two_classes:
            raise ValueError(
                f"experiment is {self.experiment!r}: output_shift_start is for two classes"
            )

    # Loss and weights
    loss: Annotated[str, OneOf(("cross_entropy", "squared_error"))] = "cross_entropy"
    loss_normalizer: Annotated[str, OneOf(("batch", "dataset"))] = "batch"
    weighting: Annotated[str | None, OneOf(SCHEMES)] = None
    beta: Annotated[float | None, Number("[", 0, 1, "]")] = None
    scale: Annotated[str, OneOf(get_args(Scale))] = "paper"
    norm_weighting: Annotated[str | None, OneOf(("inverse_frequency",))] = None
    logit_adjustment: Annotated[float, NOT_NEGATIVE] = 0.0

    def _check_loss(self) -> None:
        needing = [name for name, scheme in SCHEMES.items() if scheme.takes_beta]
        if (self.weighting in needing) != (self.beta is not None):
            raise ValueError(
                f"weighting is {self.weighting!r} and beta is {self.beta!r}: only "
                f"{', '.join(needing)} needs a beta, the others take none"
            )
        if self.method == "lf_sbn" and self.weighting not in (None, "uniform"):
            raise ValueError("lf_sbn is the plain loss: its weighting can only be 'uniform'")
        if self.norm_weighting is not None and not self._plain:
            refuse("norm_weighting", self.norm_weighting, "it is for a loss without weights")

    # Evaluation
    inference: Annotated[str | tuple[str, ...], ListOf(OneOf(ALL_INFERENCE))] = ("batch_average",)
    momentum: Annotated[float, Number("(", 0, 1, "]")] = 0.1
    eval_epochs: Annotated[tuple[int, ...] | None, ListOf(Whole(1, MOST_EPOCHS))] = None
    evaluate_on: Annotated[str, OneOf(("test", "validation"))] = "test"
    fold: Annotated[int, Whole(0, FOLDS - 1)] = 0
    diagnosis: Annotated[str, OneOf(("none", "threshold"))] = "none"

    def _check_evaluation(self) -> None:
        kinds = set(self.inference)
        if self.eval_epochs is not None and max(self.eval_epochs) > self.epochs:
            refuse("eval_epochs", self.eval_epochs, f"there are {self.epochs} epochs")
        if len(kinds) < len(self.inference):
            refuse("inference", self.inference, "name each kind once")
        if self.evaluate_on != "test":
            on_test = {"validated_threshold", *MIXED, *IN_BATCHES}
            if kinds & on_test or self.input_scaling != "unit":
                raise ValueError(
                    "evaluate_on is 'validation': test batches, a validated threshold and images "
                    "standardized apart are for the test set"
                )
        if self.diagnosis != "none":
            if not self._two_classes:
                raise ValueError(f"experiment is {self.experiment!r}: diagnosis is for two classes")
            stray = sorted(kinds & {*PROBES, *IN_BATCHES, "validated_threshold"})
            if stray:
                refuse("inference", stray, "they have no statistics to diagnose")

    def _check_inference(self) -> None:
        """Some kinds of inference need classes, weights, layers or statistics of some kind."""
        kinds = set(self.inference)
        if "validated_threshold" in kinds and not self._two_classes:
            refuse("inference", self.inference, "a threshold is between two classes")
        if kinds & set(PROBES) and self._plain:
            raise ValueError(
                f"inference is {self.inference}: {' and '.join(PROBES)} need a weighted loss"
            )
        if kinds & set(MIXED) and "none" in (self.hidden_norm, self.output_norm):
            refuse("inference", self.inference, "test_hm and the like need both layers normalized")
        if kinds & set(IN_BATCHES) and self.statistics in ("cross_fitted", "running_sums"):
            refuse("statistics", self.statistics, "test batches need those of the batch itself")
        if "running_sums" in kinds and self.statistics != "running_sums":
            refuse("inference", self.inference, "running_sums need statistics of that name")
        if self.statistics == "class_averages":
            if not kinds <= {*OWN_AVERAGES, "pooled"}:
                allowed = f"{', '.join(OWN_AVERAGES)} and pooled"
                refuse("inference", self.inference, f"statistics 'class_averages' allow {allowed}")
        elif kinds & set(OWN_AVERAGES):
            refuse("inference", self.inference, "class_averages need statistics of that name")

    def __post_init__(self) -> None:
        if isinstance(self.inference, str):
            object.__setattr__(self, "inference", (self.inference,))
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None or field.default is not None:
                # `take` converts it to the declared type, so that 1 and 1.0 have one hash.
                object.__setattr__(self, field.name, ALLOWED[field.name].take(field.name, value))
        self._check_data()
        self._check_network()
        self._check_normalization()
        self._check_training()
        self._check_loss()
        self._check_evaluation()
        self._check_inference()

    @property
    def _plain(self) -> bool:
        """Whether the loss has no weights."""
        return self.method == "lf_sbn" or self.weighting == "uniform"

    @property
    def _two_classes(self) -> bool:
        return len(ALL_EXPERIMENTS[self.experiment].sizes) == 2

    @classmethod
    def paper(cls, experiment: str, method: str, **changes: object) -> Protocol:
        """The reference reading, with `changes` to it."""
        refuse_unknown(changes, ALLOWED, "choice")
        return cls(experiment=experiment, method=method, **changes)

    def resolved(self) -> Protocol:
        """The same protocol, with None replaced by what follows from other fields.

        Without weights, `scale` and `loss_normalizer` have no effect. They get the values of the
        reference reading, so that equal runs have equal hashes.
        """
        norm = "weighted" if self.method == "wlf_wbn" else "standard"
        return replace(
            self,
            hidden_norm=self.hidden_norm or norm,
            output_norm=self.output_norm or norm,
            weighting="uniform" if self._plain else self.weighting or "inverse_frequency",
            scale="paper" if self._plain else self.scale,
            loss_normalizer="batch" if self._plain else self.loss_normalizer,
            eval_epochs=tuple(sorted(set(self.eval_epochs or range(1, self.epochs + 1)))),
        )

    @property
    def differences(self) -> dict:
        """Resolved fields that differ from the reference reading."""
        reference = vars(Protocol.paper(self.experiment, self.method).resolved())
        return {k: v for k, v in vars(self.resolved()).items() if v != reference[k]}

    @property
    def hash(self) -> str:
        """Hash of experiment, method and `differences`, in 12 hexadecimal digits.

        A new field does not change it, as long as its default is the old behavior.

        Examples
        --------
        >>> named = Protocol.paper("i", "wlf_wbn", hidden_norm="weighted")
        >>> named.hash == Protocol.paper("i", "wlf_wbn").hash
        True
        """
        return _hash(self)

    def to_dict(self) -> dict:
        """Resolved fields, in a form for JSON."""
        return json.loads(json.dumps(vars(self.resolved())))

    @classmethod
    def from_dict(cls, values: dict) -> Protocol:
        """The protocol of what `to_dict` wrote, or of a table in a TOML file."""
        if not isinstance(values, dict):
            refuse("the protocol", values, "give a table of choices")
        refuse_unknown(values, ALLOWED, "choice")
        missing = {"experiment", "method"} - set(values)
        if missing:
            raise ValueError(f"a protocol needs {' and '.join(sorted(missing))}")
        return cls.paper(**values)


# What each field takes: the kind in its annotation.
ALLOWED: dict[str, Kind] = {
    name: hint.__metadata__[0]
    for name, hint in get_type_hints(Protocol, include_extras=True).items()
}


@cache  # since listing, storing and finding a unit all need its hash
def _hash(protocol: Protocol) -> str:
    content = {
        "experiment": protocol.experiment,
        "method": protocol.method,
        **protocol.differences,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]
