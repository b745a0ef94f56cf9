"""How a model is trained: the settings that all models share."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dragoman.core.settings import Settings


class TrainingConfig(Settings):
    """The settings of training. It ends at the first limit that is reached.

    >>> from dragoman import TrainingConfig
    >>> TrainingConfig(learning_rate=0.01, max_epochs=5).optimizer
    'adam'
    """

    optimizer: Literal["sgd", "momentum", "adagrad", "adam"] = "adam"
    """The rule by which gradients become steps."""
    learning_rate: float = Field(default=0.001, gt=0)
    """How large steps are."""
    momentum: float = Field(default=0.9, ge=0, lt=1)
    """Share of the last step that the optimizer `momentum` keeps."""
    batch_size: int = Field(default=1000, ge=0)
    """Words a step learns from, in whole sentences: 1 is one sentence at a time (online), 0 the whole text. Of a model
    that carries its state over: rows of text read at once, times `steps`."""
    batch_by: Literal["words", "sentences"] = "words"
    """What batch_size counts; of a model that carries its state over, sentences are the rows of text read at once."""
    pool: int = Field(default=0, ge=0)
    """Batches whose sentences are sorted by length together, so that those of one batch are about as long and little is
    padded; 0: as they come."""
    steps: int = Field(default=35, ge=1)
    """Words through which the gradient goes back, where a model carries its state over (truncated back-propagation)."""
    max_epochs: int = Field(default=20, ge=1)
    """Most passes over the training text."""
    max_updates: int | None = Field(default=None, ge=1)
    """Most steps."""
    minutes: float | None = Field(default=None, gt=0)
    """Most minutes of training, those of earlier runs of the same training counted."""
    patience: int = Field(default=3, ge=1)
    """Stop after so many looks at the dev text in a row without improvement."""
    check_every: int | None = Field(default=None, ge=1)
    """Steps between looks at the dev text. Default: one look an epoch."""
    decay: float = Field(default=0.5, gt=0, le=1)
    """What the learning rate is multiplied by when a look at the dev text shows no improvement; 1: never."""
    schedule: Literal["constant", "linear", "cosine", "inverse-sqrt"] = "constant"
    """How the learning rate falls besides: linear and cosine reach 0 at the bound given."""
    warmup: int = Field(default=0, ge=0)
    """Steps over which the learning rate rises from 0."""
    clip: float | None = Field(default=None, gt=0)
    """Scale gradients down to this norm if theirs is larger."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=1)
    """Share of each prediction that is asked for all words alike, in the place of the right one."""
    average: float = Field(default=0.0, ge=0, lt=1)
    """Share of the training, at its end by its bounds, over whose steps the parameters are averaged; a training that
    the dev text ends before that has no average."""
    l1: float = Field(default=0.0, ge=0)
    """Penalty on the sum of the weights' sizes, against the log-likelihood of the whole training text."""
    l2: float = Field(default=0.0, ge=0)
    """Penalty on half the sum of the squared weights, against the log-likelihood of the whole training text."""
    unknown_rate: float | None = Field(default=None, ge=0, lt=1)
    """Share of the words seen once that count as unknown words while training, so that such get a probability. Default:
    0.5, or 0 where the text has unknown words of its own or none can come."""
    seed: int = Field(default=1, ge=0)
    """What all chance comes from: first weights, order of sentences, dropout."""
    threads: int | None = Field(default=None, ge=1)
    """Processor cores to use. Default: all, or as many as OMP_NUM_THREADS says."""
    device: str = "cpu"
    """Where to compute: cpu, or cuda where there is one."""
    report_every: int = Field(default=100, ge=1)
    """Steps between lines of metrics.jsonl; there is one for each look at the dev text besides."""
    save_every: int = Field(default=1000, ge=1)
    """Steps between checkpoints; there is one at each look at the dev text besides."""
