"""Training a model: in memory, or in a directory where it can be stopped and taken up again."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import torch

from dragoman.core.errors import DataError
from dragoman.core.settings import validate
from dragoman.core.threads import limit_threads
from dragoman.data.corpus import Corpus, ParallelCorpus, require_same_vocab
from dragoman.data.trees import Treebank
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.training.batch_order import SENTENCES, STREAM
from dragoman.training.config import TrainingConfig
from dragoman.training.loop import StepReport, TrainingTask, TrainState, load_parameters, training_steps
from dragoman.training.objectives import (
    Objective,
    StatefulObjective,
    UnknownWordReplacement,
    has_unknown_words,
    label_smoothed,
    negative_log_likelihood,
    singletons,
    stateless,
    stream_objective,
    with_unknown_words,
    with_unknown_words_in_pairs,
)
from dragoman.training.progress import Progress
from dragoman.training.protocols import StorableModel, Trainable
from dragoman.training.run_directory import TrainingDirectory, arrays_fingerprint
from dragoman.training.signals import StoppedError, catch_stop_signals

UNKNOWN_RATE = 0.5  # of the words seen once, as many are unknown in training


@dataclass(frozen=True)
class TrainingStarted:
    """Training begins, or goes on."""

    progress: Progress
    parameters: int  # numbers that are learned
    predictions: int  # predictions in the training text
    updates_per_epoch: int  # steps an epoch
    data_order: str  # how the text is gone through
    has_auxiliary_loss: bool  # whether the training loss holds more than -log P


@dataclass(frozen=True)
class FitResult:
    """How a training ended. The model has the best parameters by the dev text, or the last ones without."""

    progress: Progress
    already_finished: bool = False  # before this was asked

    @property
    def stop_reason(self) -> str:
        return self.progress.finished


TrainingCallback = Callable[[TrainingStarted | StepReport], None]


def fit(
    model: Any,
    data: Any,
    dev: Any = None,
    config: TrainingConfig | None = None,
    *,
    output: str | Path | None = None,
    force: bool = False,
    callback: TrainingCallback | None = None,
    objective: Objective = negative_log_likelihood,
    **settings: Any,
) -> FitResult:
    """Train a model on a text; settings are those of `TrainingConfig`.

    With an `output` directory, training that was stopped or killed goes on where it was when the same is asked again,
    to the same result bit by bit. The model given is trained in place.

    >>> from dragoman import Corpus, FeedForwardModel, fit
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran", "a dog ran"])
    >>> model = FeedForwardModel.create(corpus, order=2, embedding=4, hidden=(8,))
    >>> before = model.score("the cat sat")
    >>> fit(model, corpus, max_epochs=30, learning_rate=0.05).why
    '30 epochs'
    >>> model.score("the cat sat") > before
    True
    """
    config = validate(config or TrainingConfig, settings, "settings")
    _check(model, data, dev, config)
    task = _task(model, data, dev, objective, config)
    directory = None if output is None else TrainingDirectory(Path(output))
    with limit_threads(config.threads), training_mode(model, config.device):
        if isinstance(data, Corpus | ParallelCorpus):
            _record(model, config, data, dev)
        learner = TrainState.create(model, config)
        was_finished = directory is not None and _take_up(learner, model, directory, config, force=force)
        if not was_finished:
            _follow(Run(learner, task, model, directory, callback or (lambda event: None), force))
        load_parameters(model, learner.best_parameters)
        return FitResult(learner.progress, was_finished)


@dataclass(frozen=True)
class Run:
    """A training that is being followed."""

    learner: TrainState
    task: TrainingTask
    model: StorableModel
    directory: TrainingDirectory | None
    tell: TrainingCallback
    forced: bool  # it was begun anew where there was another


def _check(model: Any, examples: Any, dev: Any, config: TrainingConfig) -> None:
    """Refuse what cannot be learned from: nothing, or words with other numbers than the model's."""
    if not examples.sizes.sum():
        raise DataError("there is nothing to learn from: the training text is empty")
    if dev is not None and not dev.sizes.sum():
        raise DataError("the dev text is empty")
    for text in (examples, dev):
        if isinstance(text, ParallelCorpus):
            text.target.require_vocab(model.vocab)
            require_same_vocab(text.source.vocab, model.source_vocab)
        elif isinstance(text, Corpus):
            text.require_vocab(model.vocab)
    if config.label_smoothing and not getattr(model, "supports_label_smoothing", False):
        raise DataError("label smoothing is for neural networks; set label_smoothing to 0")
    if getattr(model, "carries", False) and not config.batch_size:
        raise DataError("batch_size 0: a model that carries its state over reads the text in steps; give 1 or more")


def _task(model: Any, examples: Any, dev: Any, objective: Objective, config: TrainingConfig) -> TrainingTask:
    """What there is to learn: sentence by sentence, or as a stream where the model carries its state over."""
    carries = getattr(model, "carries", False)
    if objective is not negative_log_likelihood and (carries or config.label_smoothing):
        raise DataError("another objective goes with neither carried states nor label smoothing; leave one of them out")
    if carries:
        arrangement, carrying = STREAM, stream_objective(config.label_smoothing)
    else:
        plain = objective if not config.label_smoothing else label_smoothed(config.label_smoothing)
        arrangement, carrying = SENTENCES, stateless(plain)
    return TrainingTask(
        examples, dev, _with_unknown(carrying, model, examples, config), config, perf_counter, arrangement
    )


def _with_unknown(objective: StatefulObjective, model: Any, examples: Any, config: TrainingConfig) -> StatefulObjective:
    """The objective with words seen once as unknown words, unless there are such in the text, or none can come."""
    if isinstance(examples, Corpus):
        only = _forgotten(examples, config, closed=isinstance(model.unknown, ClosedVocabulary))
        return with_unknown_words(objective, only) if only.rate else objective
    if isinstance(examples, ParallelCorpus):
        source = _forgotten(examples.source, config)
        target = _forgotten(examples.target, config, closed=isinstance(model.unknown, ClosedVocabulary))
        return with_unknown_words_in_pairs(objective, source, target) if source.rate or target.rate else objective
    return objective


def _forgotten(text: Corpus | Treebank, config: TrainingConfig, *, closed: bool = False) -> UnknownWordReplacement:
    """Which words of a training text are forgotten, and how often."""
    needless = closed or has_unknown_words(text)
    rate = config.unknown_rate if config.unknown_rate is not None else 0.0 if needless else UNKNOWN_RATE
    return UnknownWordReplacement(singletons(text), rate)


@contextmanager
def training_mode(model: Trainable, device: str) -> Iterator[None]:
    """The parameters on their device, with gradients; without them afterwards."""
    for tensor in model.parameters().values():
        tensor.data = tensor.data.to(_device(device))
        tensor.requires_grad_(True)
    try:
        yield
    finally:
        for tensor in model.parameters().values():
            tensor.requires_grad_(False)
            tensor.grad = None


def _device(name: str) -> torch.device:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise DataError(
            f"device {name!r}: there are cpu and cuda, with a number (cuda:1) if there are several; try cpu"
        )
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise DataError(f"device {name!r} cannot be used here ({str(error).splitlines()[0]}); try cpu") from None


def _record(model: StorableModel, config: TrainingConfig, examples: Any, dev: Any) -> None:
    """What config.yaml shall say of how the model was trained."""
    data = {
        "train": examples.fingerprint(),
        "dev": None if dev is None else dev.fingerprint(),
        "start": arrays_fingerprint(model.arrays()),
    }
    model.record = {"training": config.model_dump(mode="json"), "data": data}


def _take_up(
    learner: TrainState, model: StorableModel, directory: TrainingDirectory, config: TrainingConfig, *, force: bool
) -> bool:
    """Begin in a directory, or go on with what is there; whether that is at its end already.

    A training that is given other bounds goes on, or ends, by these; its learning rate is then as they have it.
    """
    if force or directory.progress() is None:
        directory.create(learner, model, replace=force)
        return False
    bounds_changed = directory.check_same_config(model)
    directory.resume(learner, model)
    if bounds_changed:
        learner.progress, learner.average = learner.progress.with_new_limits(config), {}
        directory.update_limits(model)
    return bool(learner.progress.finished)


def _follow(run: Run) -> None:
    """Learn to the end, saving and telling on the way."""
    learner, task = run.learner, run.task
    parameters = sum(tensor.numel() for tensor in learner.model.parameters().values())
    batches = len(task.batches(learner.progress.epoch))
    manner = task.data_order.description.format_map(task.config.model_dump())
    run.tell(
        TrainingStarted(
            learner.progress,
            parameters,
            task.predictions,
            batches,
            manner,
            getattr(run.model, "has_auxiliary_loss", False),
        )
    )
    with catch_stop_signals() as requests:
        for moment in training_steps(learner, task):
            run.tell(moment)
            stopping = requests.number  # looked at once: what comes later is seen to after the next step
            if run.directory is not None:
                _write(run, run.directory, moment, stopping=bool(stopping))
            if stopping and not moment.progress.finished:
                raise StoppedError(stopping, _told_stopped(run, moment.progress))


def _write(run: Run, directory: TrainingDirectory, moment: StepReport, *, stopping: bool) -> None:
    """What a step leaves on disk. The model comes before the checkpoint: a training at its end has its model."""
    position = moment.progress
    if moment.train_loss is not None or moment.rolled_back:
        directory.append_metrics(metrics_record(moment))
    if moment.evaluated and position.best_update == position.update:
        directory.save_model(run.learner, run.model)
    if moment.evaluated or stopping or position.update % run.task.config.save_every == 0:
        directory.save_checkpoint(run.learner)


def metrics_record(moment: StepReport) -> dict[str, Any]:
    """A line of metrics.jsonl."""
    position = moment.progress
    line = {
        "update": position.update,
        "epoch": position.epoch,
        "seconds": round(position.seconds, 3),
        "learning_rate": moment.learning_rate,
        "gradient_norm": moment.gradient_norm,
        "train_loss": moment.train_loss,
        "dev_loss": moment.dev_loss,
        "best_dev_loss": position.best_dev_loss,
        "went_back": moment.rolled_back,
    }
    return {key: value for key, value in line.items() if value is not None and math.isfinite(value)}


def _told_stopped(run: Run, position: Progress) -> str:
    where = f"stopped after update {position.update:,}"
    if run.directory is None:
        return f"{where}; nothing was saved (no output directory)"
    again = "run the same command again, without --force," if run.forced else "run the same command again"
    return f"{where} and saved to {run.directory.path}; {again} to go on"
