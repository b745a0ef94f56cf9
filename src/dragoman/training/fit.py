"""Training a model: in memory, or in a directory where training can be stopped and resumed."""

from __future__ import annotations

import math
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any

import torch
from torch import nn

from dragoman.core.errors import DataError, DragomanError
from dragoman.core.settings import validate
from dragoman.core.threads import limit_threads
from dragoman.data.corpus import Corpus, ParallelCorpus
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
from dragoman.training.protocols import LikelihoodModel, StorableModel
from dragoman.training.run_directory import TrainingDirectory, arrays_fingerprint

UNKNOWN_RATE = 0.5  # share of the words seen once that are replaced by <unk>
EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(frozen=True)
class TrainingStarted:
    """Reported when a training starts or is resumed."""

    progress: Progress
    parameters: int  # number of trained parameters
    predictions: int  # in the training data
    updates_per_epoch: int
    data_order: str  # how the text is read
    has_auxiliary_loss: bool  # whether the training loss has more terms than -log P


@dataclass(frozen=True)
class FitResult:
    """The result of a training run. The model has the best parameters by the dev text, or without one the last."""

    progress: Progress
    already_finished: bool = False  # before this call

    @property
    def stop_reason(self) -> str:
        return self.progress.finished


TrainingCallback = Callable[[TrainingStarted | StepReport], None]


def fit(
    model: nn.Module,
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
    """Train a model in place. Other arguments are settings of `TrainingConfig`.

    Args:
        model: A model of this package, or any torch module with an objective of your own.
        data: Training data: a `Corpus`, a `ParallelCorpus`, or other `Examples`.
        dev: Data for evaluation and early stopping.
        config: Settings of training.
        output: A directory for the model and checkpoints. A training run that was stopped or killed is resumed by the
            same call, with bit-identical results.
        force: Replace a training run in the directory.
        callback: Called when training starts and after each step.
        objective: Function of model, examples and generator (None in evaluation) that returns the losses of all
            predictions.

    >>> from dragoman import Corpus, FeedForwardModel, fit
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran", "a dog ran"])
    >>> model = FeedForwardModel.create(corpus, order=2, embedding=4, hidden=(8,))
    >>> before = model.score("the cat sat")
    >>> fit(model, corpus, max_epochs=30, learning_rate=0.05).stop_reason
    '30 epochs'
    >>> model.score("the cat sat") > before
    True
    """
    config = validate(config or TrainingConfig, settings, "settings")
    _check_data(model, data, dev, config)
    task = _create_task(model, data, dev, objective, config)
    directory = None if output is None else TrainingDirectory(Path(output))
    with limit_threads(config.threads), training_mode(model, config.device):
        if isinstance(data, Corpus | ParallelCorpus) and isinstance(model, StorableModel):
            _set_training_metadata(model, config, data, dev)
        state = TrainState.create(model, config)
        finished = directory is not None and _create_or_resume(state, directory, config, force=force)
        if not finished:
            _run(_TrainingRun(state, task, directory, callback or (lambda event: None), force))
        load_parameters(model, state.best_parameters)
        return FitResult(state.progress, finished)


@dataclass(frozen=True)
class _TrainingRun:
    """A training run in progress."""

    state: TrainState
    task: TrainingTask
    directory: TrainingDirectory | None
    callback: TrainingCallback
    forced: bool  # it replaced another training run


def _check_data(model: nn.Module, data: Any, dev: Any, config: TrainingConfig) -> None:
    """Raise an error for empty data, another vocabulary than the model's, or settings the model does not support."""
    if not data.sizes.sum():
        raise DataError("the training text is empty")
    if dev is not None and not dev.sizes.sum():
        raise DataError("the dev text is empty")
    for text in (data, dev):
        if isinstance(text, ParallelCorpus):
            text.target.require_vocab(model.vocab)  # type: ignore[arg-type]
            text.source.require_vocab(model.source_vocab)  # type: ignore[arg-type]
        elif isinstance(text, Corpus):
            text.require_vocab(model.vocab)  # type: ignore[arg-type]
    if config.label_smoothing and not (isinstance(model, LikelihoodModel) and model.supports_label_smoothing):
        raise DataError("label smoothing is for neural networks; set label_smoothing to 0")
    if _carries(model) and not config.batch_size:
        raise DataError("batch_size 0: a model that carries its state needs 1 or more")


def _carries(model: nn.Module) -> bool:
    return isinstance(model, LikelihoodModel) and model.carries


def _create_task(model: nn.Module, data: Any, dev: Any, objective: Objective, config: TrainingConfig) -> TrainingTask:
    """Return the task: sentences in random order, or a stream for a model that carries its state."""
    carries = _carries(model)
    if objective is not negative_log_likelihood and (carries or config.label_smoothing):
        raise DataError("an objective of your own cannot be combined with carried states or label smoothing")
    if carries:
        data_order, stateful = STREAM, stream_objective(config.label_smoothing)
    else:
        single = objective if not config.label_smoothing else label_smoothed(config.label_smoothing)
        data_order, stateful = SENTENCES, stateless(single)
    return TrainingTask(data, dev, _with_unknown_words(stateful, model, data, config), config, perf_counter, data_order)


def _with_unknown_words(
    objective: StatefulObjective, model: nn.Module, data: Any, config: TrainingConfig
) -> StatefulObjective:
    """Return the objective in which words seen once are replaced by unknown words, where that is of use."""
    closed = isinstance(model, LikelihoodModel) and isinstance(model.unknown, ClosedVocabulary)
    if isinstance(data, Corpus):
        replacement = _unknown_word_replacement(data, config, closed=closed)
        return with_unknown_words(objective, replacement) if replacement.rate else objective
    if isinstance(data, ParallelCorpus):
        source = _unknown_word_replacement(data.source, config)
        target = _unknown_word_replacement(data.target, config, closed=closed)
        return with_unknown_words_in_pairs(objective, source, target) if source.rate or target.rate else objective
    return objective


def _unknown_word_replacement(text: Corpus, config: TrainingConfig, *, closed: bool = False) -> UnknownWordReplacement:
    default = 0.0 if closed or has_unknown_words(text) else UNKNOWN_RATE
    return UnknownWordReplacement(singletons(text), default if config.unknown_rate is None else config.unknown_rate)


@contextmanager
def training_mode(model: nn.Module, device: str) -> Iterator[None]:
    """Move a model to its device, and set evaluation mode and release gradients afterwards."""
    model.to(_device(device))
    try:
        yield
    finally:
        model.eval()
        model.zero_grad(set_to_none=True)


def _device(name: str) -> torch.device:
    if not re.fullmatch(r"cpu|cuda(:\d+)?", name):
        raise DataError(f"device {name!r}: use cpu, cuda, or cuda with a number, such as cuda:1")
    try:
        return torch.empty(0, device=name).device
    except (RuntimeError, AssertionError) as error:
        raise DataError(f"device {name!r} is not available ({str(error).splitlines()[0]}); use cpu") from None


def _set_training_metadata(model: StorableModel, config: TrainingConfig, data: Any, dev: Any) -> None:
    """Set what config.yaml has about the training."""
    fingerprints = {
        "train": data.fingerprint(),
        "dev": None if dev is None else dev.fingerprint(),
        "start": arrays_fingerprint(model.arrays()),
    }
    model.training_metadata = {"training": config.model_dump(mode="json"), "data": fingerprints}


def _storable(model: nn.Module) -> StorableModel:
    if not isinstance(model, StorableModel):
        raise DataError("only models of this package can be trained in a directory; leave out output")
    return model


def _create_or_resume(state: TrainState, directory: TrainingDirectory, config: TrainingConfig, *, force: bool) -> bool:
    """Start a training run in a directory, or resume the one there. Return whether it is finished already.

    A training run that is resumed with other limits continues, or stops, by these.
    """
    model = _storable(state.model)
    if force or directory.progress() is None:
        directory.create(state, model, replace=force)
        return False
    limits_changed = directory.check_same_config(model)
    directory.resume(state, model)
    if limits_changed:
        state.progress, state.average = state.progress.with_new_limits(config), {}
        directory.update_limits(model)
    return bool(state.progress.finished)


def _run(run: _TrainingRun) -> None:
    """Train to the end, with callbacks and checkpoints."""
    state, task, model = run.state, run.task, run.state.model
    run.callback(
        TrainingStarted(
            state.progress,
            sum(parameter.numel() for parameter in model.parameters()),
            task.predictions,
            len(task.batches(state.progress.epoch)),
            task.data_order.description.format_map(task.config.model_dump()),
            isinstance(model, LikelihoodModel) and model.has_auxiliary_loss,
        )
    )
    with catch_stop_signals() as request:
        for report in training_steps(state, task):
            run.callback(report)
            stop_signal = request.number  # read once: a later signal is handled after the next step
            if run.directory is not None:
                _save_step(run, run.directory, report, stopping=bool(stop_signal))
            if stop_signal and not report.progress.finished:
                raise StoppedError(stop_signal, _stop_message(run, report.progress))


def _save_step(run: _TrainingRun, directory: TrainingDirectory, report: StepReport, *, stopping: bool) -> None:
    """Write metrics, model and checkpoint. The model is written first, so that a finished training run has its model."""
    progress = report.progress
    if report.train_loss is not None or report.rolled_back:
        directory.append_metrics(metrics_record(report))
    if report.evaluated and progress.best_update == progress.update:
        directory.save_model(run.state, _storable(run.state.model))
    if report.evaluated or stopping or progress.update % run.task.config.save_every == 0:
        directory.save_checkpoint(run.state)


def metrics_record(report: StepReport) -> dict[str, Any]:
    """Return a line of metrics.jsonl."""
    progress = report.progress
    record = {
        "update": progress.update,
        "epoch": progress.epoch,
        "seconds": round(progress.seconds, 3),
        "learning_rate": report.learning_rate,
        "gradient_norm": report.gradient_norm,
        "train_loss": report.train_loss,
        "dev_loss": report.dev_loss,
        "best_dev_loss": progress.best_dev_loss,
        "went_back": report.rolled_back,
    }
    return {key: value for key, value in record.items() if value is not None and math.isfinite(value)}


# -- signals -----------------------------------------------------------------------------------------------------------


class StoppedError(DragomanError):
    """Training was stopped by a signal, after saving."""

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.exit_code = EXIT_CODES[signal.Signals(number)]


class StopRequest:
    """The signal that was received, or 0."""

    def __init__(self) -> None:
        self.number = 0


@contextmanager
def catch_stop_signals() -> Iterator[StopRequest]:
    """Record the first SIGINT or SIGTERM, to stop after the current step. A second signal has its usual effect.

    Only the main thread receives signals; in other threads nothing is recorded.
    """
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    handlers = {number: signal.getsignal(number) for number in EXIT_CODES}

    def record(number: int, frame: FrameType | None) -> None:
        request.number = number
        for other, handler in handlers.items():
            signal.signal(other, handler)

    for number in EXIT_CODES:
        signal.signal(number, record)
    try:
        yield request
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _stop_message(run: _TrainingRun, progress: Progress) -> str:
    stopped = f"stopped after update {progress.update:,}"
    if run.directory is None:
        return f"{stopped}; nothing was saved (no output directory)"
    command = "run the same command again, without --force," if run.forced else "run the same command again"
    return f"{stopped} and saved to {run.directory.path}; {command} to resume"
