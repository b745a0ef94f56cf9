"""Settings of training that all models share."""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from pydantic import Field, field_validator

from dragoman.core.settings import Settings, validate

SUGGESTED_MINUTES = 20  # to train a translator; more are better


class TrainingConfig(Settings):
    """Settings of training. Training stops at the first limit that is reached.

    >>> from dragoman import TrainingConfig
    >>> TrainingConfig(learning_rate=0.01, max_epochs=5).optimizer
    'adam'
    """

    minutes: float | None = Field(default=None, gt=0)
    """Time for training in minutes, of all runs if it is interrupted and resumed. Default: no limit."""
    max_epochs: int | None = Field(default=20, ge=1)
    """Maximum number of passes over the training text; none: no limit."""
    max_updates: int | None = Field(default=None, ge=1)
    """Maximum number of updates. Default: no limit."""
    optimizer: Literal["sgd", "momentum", "adagrad", "adam"] = "adam"
    """Optimizer."""
    learning_rate: float = Field(default=0.001, gt=0)
    """Learning rate."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Momentum, for --optimizer momentum."""
    batch_size: int = Field(default=1000, ge=0)
    """Words per batch, in whole sentences. 1: one sentence per batch; 0: the whole text. For a model that carries its
    state: number of parallel rows of text, times --steps."""
    batch_by: Literal["words", "sentences"] = "words"
    """What --batch-size counts. For a model that carries its state, sentences are parallel rows of text."""
    pieces: int | None = Field(default=None, ge=1)
    """Number of pieces of a batch, which are computed one after the other or by several processes (torchrun). Each has
    its own random numbers. Default: the number of processes; when training is resumed, as many as before."""
    pool: int = Field(default=0, ge=0)
    """Number of batches whose sentences are sorted by length together to reduce padding; 0: no sorting."""
    steps: int = Field(default=35, ge=1)
    """Truncated back-propagation length in words, for a model that carries its state."""
    patience: int = Field(default=3, ge=1)
    """Stop after this many evaluations without improvement; with --schedule cooldown, lower the learning
    rate first."""
    check_every: int | None = Field(default=None, ge=1)
    """Updates between evaluations on the dev text. Default: one evaluation per epoch."""
    dev_sample: int | None = Field(default=None, ge=1)
    """Evaluate on a sample of the dev text with about this many words. Default: on all of it."""
    decay: float = Field(default=0.5, gt=0, le=1)
    """Multiply the learning rate by this after an evaluation without improvement; 1: no decay."""
    schedule: Literal["constant", "linear", "cosine", "cooldown", "inverse-sqrt"] = "constant"
    """Learning rate schedule. linear and cosine reach 0 at the limit of training; cooldown is constant and decreases
    linearly to 0 at the end of training, or as soon as the dev loss has stopped improving."""
    cooldown: float = Field(default=0.4, gt=0, lt=1)
    """Share of training over which --schedule cooldown decreases the learning rate."""
    warmup: int = Field(default=0, ge=0)
    """Updates over which the learning rate rises from 0."""
    clip: float | None = Field(default=None, gt=0)
    """Maximum norm of the gradient; larger gradients are scaled down; none: no limit."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Label smoothing: probability mass spread over all words."""
    average: float = Field(default=0.0, ge=0, lt=1)
    """Average the parameters over this share of the updates, at the end of training. If training stops earlier, there
    is no average."""
    l1: float = Field(default=0.0, ge=0)
    """L1 regularization: weight of the sum of absolute weights, relative to the log-likelihood of the training text."""
    l2: float = Field(default=0.0, ge=0)
    """L2 regularization: weight of half the sum of squared weights, relative to the log-likelihood of the training
    text."""
    unknown_rate: float | None = Field(default=None, ge=0, lt=1)
    """Share of the words seen once that are replaced by <unk> in training, so that the model learns its probability.
    Default: 0.5, or 0 if the text has unknown words, the vocabulary is closed, or the model was trained before."""
    freeze: tuple[str, ...] = ()
    """Parts of the model that are not trained, by the names of its modules, such as encoder,embedding. Default: all
    parts are trained."""
    replay_share: float = Field(default=0.3, gt=0, lt=1)
    """Share of old sentences in every epoch, if there is an old text to replay."""
    seed: int = Field(default=1, ge=0)
    """Random seed of initial parameters, order of sentences and dropout."""
    precision: Literal["auto", "float32", "bfloat16"] = "auto"
    """Type of matrix products in training; bfloat16 is faster on many processors that have it. Parameters, softmax and
    states stay in float32. auto: bfloat16 if the processor has it, a short measurement finds it faster, and the model is
    not small. (In commands that use models, --precision is the type of their weights.)"""
    threads: int | None = Field(default=None, ge=1)
    """Number of threads. Default: all cores, or OMP_NUM_THREADS; when training is resumed, as many as before."""
    device: str = "cpu"
    """Device: cpu, cuda, or cuda:1 for the second GPU."""
    report_every: int = Field(default=100, ge=1)
    """Updates between lines of metrics.jsonl. Every evaluation writes a line as well."""
    save_every: int = Field(default=1000, ge=1)
    """Updates between checkpoints. Every evaluation writes a checkpoint as well."""

    @field_validator("precision", mode="before")
    @classmethod
    def _is_a_type_of_training(cls, precision: object) -> object:
        if precision == "int8":
            raise ValueError("models are trained in floating point; dragoman quantize rounds a trained one to 8 bits")
        return precision


LIMITS = ("max_epochs", "max_updates", "minutes")


def with_given_limits(config: TrainingConfig, given: Collection[str]) -> TrainingConfig:
    """Return the settings without the limits of a preset if another limit is given.

    >>> config = with_given_limits(TrainingConfig(max_epochs=10, minutes=5), ["minutes"])
    >>> config.max_epochs, config.minutes
    (None, 5.0)
    """
    if not set(LIMITS) & set(given):
        return config
    return config.model_copy(update={name: None for name in LIMITS if name not in given})


FINE_TUNING_FACTOR = 0.25  # of learning rate and warm-up, for a model that was trained before


def for_fine_tuning(config: TrainingConfig, given: Collection[str]) -> TrainingConfig:
    """Return the settings for a model that was trained before: a quarter of learning rate and warm-up.

    >>> config = for_fine_tuning(TrainingConfig(learning_rate=0.002, warmup=200), ["warmup"])
    >>> config.learning_rate, config.warmup
    (0.0005, 200)
    """
    rates = {
        "learning_rate": config.learning_rate * FINE_TUNING_FACTOR,
        "warmup": int(config.warmup * FINE_TUNING_FACTOR),
    }
    changed = {name: value for name, value in rates.items() if name not in given}
    return validate(config, changed, "settings")


FEED_FORWARD = TrainingConfig(
    learning_rate=0.001, schedule="linear", decay=1.0, batch_size=500, clip=1.0, max_epochs=10
)
LOG_LINEAR = TrainingConfig(
    optimizer="adagrad",
    learning_rate=2.0,
    schedule="linear",
    decay=1.0,
    batch_size=2000,
    l1=0.6,
    l2=0.08,
    max_epochs=12,
)
RECURRENT = TrainingConfig(
    learning_rate=0.002, schedule="linear", decay=1.0, batch_size=1000, pool=50, clip=1.0, max_epochs=10
)
TRANSLATOR = validate(RECURRENT, {"warmup": 200, "batch_size": 900, "label_smoothing": 0.1, "patience": 5}, "preset")
