"""Training a model: in memory, or in a directory where training can be stopped and resumed."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter
from types import FrameType
from typing import Any, cast, get_args

import numpy as np
import torch
from torch import nn

from dragoman.core.errors import DataError, DragomanError
from dragoman.core.memory import release_freed_memory
from dragoman.core.settings import validate
from dragoman.core.threads import available_cores, limit_threads
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.placeholders import has_placeholders
from dragoman.data.unknown_words import ClosedVocabulary
from dragoman.io.files import directory_lock
from dragoman.training.agreement import check_same_data, replaces_run
from dragoman.training.batch_order import SENTENCES, STREAM
from dragoman.training.config import TrainingConfig
from dragoman.training.distributed import communicator
from dragoman.training.fine_tuning import frozen, replayed_examples, with_replay
from dragoman.training.loop import (
    MAX_LOSS,
    StepReport,
    TrainingTask,
    TrainState,
    evaluate_loss,
    evaluate_start,
    load_parameters,
    training_steps,
)
from dragoman.training.objectives import (
    ModelT,
    Objective,
    StatefulObjective,
    UnknownWordReplacement,
    negative_log_likelihood,
    stateless_objective,
    stream_objective,
    with_unknown_words,
)
from dragoman.training.pace import PaceLog, TimeReserve
from dragoman.training.precision import Precision, choose_precision, precision_choice
from dragoman.training.process_store import note_replaced
from dragoman.training.progress import Progress
from dragoman.training.protocols import Examples, ExamplesT, LikelihoodModel, StorableModel, TranslationModel
from dragoman.training.run_directory import (
    TrainingDirectory,
    arrays_fingerprint,
    share_carries,
    share_state,
    stored_training_settings,
)

EXIT_CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@dataclass(frozen=True)
class TrainingStarted:
    """Reported when training starts or is resumed."""

    progress: Progress
    parameters: int  # number of trained parameters
    predictions: int  # in the training data
    updates_per_epoch: int
    data_order: str  # how the text is read
    has_auxiliary_loss: bool  # whether the training loss has more terms than -log P
    frozen_parameters: int = 0  # number of parameters that are not trained
    dev_loss: float | None = None  # of a model that was trained before, when training starts
    replay_dev_loss: float | None = None  # of the old dev text, then
    time_limit: float = math.inf  # in seconds, for all runs
    threads: int = 1  # of each process
    precision: str = "float32"  # of matrix products
    precision_reason: str = ""  # why it was chosen, if it was
    processes: int = 1  # that train together


@dataclass(frozen=True)
class FitResult:
    """The result of a training run. The model has the best parameters by the dev text, or without one the last."""

    progress: Progress
    epochs: float  # passes over the training data
    prediction_seconds: float  # time per prediction; measured only if time is limited, else 0
    already_finished: bool = False  # before this call

    @property
    def stop_reason(self) -> str:
        return self.progress.stop_reason

    @property
    def was_improving(self) -> bool:
        """Whether the last evaluation had the best dev loss, and training ended by a limit."""
        progress = self.progress
        return (
            progress.best_dev_loss is not None and progress.best_update == progress.update and not progress.pace.plateau
        )


TrainingCallback = Callable[[TrainingStarted | StepReport], None]


def fit(
    model: ModelT,
    data: ExamplesT,
    dev: ExamplesT | None = None,
    config: TrainingConfig | None = None,
    *,
    output: str | Path | None = None,
    force: bool = False,
    callback: TrainingCallback | None = None,
    objective: Objective[ModelT, ExamplesT] = negative_log_likelihood,
    replay: ExamplesT | None = None,
    replay_dev: ExamplesT | None = None,
    elapsed_seconds: float = 0.0,
    reserve: TimeReserve | None = None,
    **settings: object,
) -> FitResult:
    """Train a model in place. Other arguments are settings of `TrainingConfig`.

    A model that was trained before keeps its parameters unless training improves its dev loss. Processes that torchrun
    has started train together if all of them call this; process 0 writes to the output directory.

    Args:
        model: A model of this package, or any torch module with a custom objective.
        data: Training data: a `Corpus`, a `ParallelCorpus`, or other `Examples`.
        dev: Data for evaluation and early stopping.
        config: Settings of training.
        output: A directory for the model and checkpoints. A training run that was stopped or killed is resumed by the
            same call, with bit-identical results.
        force: Replace a training run in the directory, unless this job has done so before torchrun restarted it.
        callback: Called when training starts and after each step, in process 0 if several train together.
        objective: Function of model, examples and generator (None in evaluation) that returns all losses.
        replay: Old training data, against forgetting: a sample of it is the share `replay_share` of every epoch.
        replay_dev: Old dev data, evaluated with `dev`. The best parameters are selected by `dev` only.
        elapsed_seconds: Seconds of `minutes` that have been used before.
        reserve: The part of `minutes` that is needed afterwards.

    >>> from dragoman import Corpus, FeedForwardModel, fit
    >>> corpus = Corpus.from_sentences(["the cat sat", "the dog sat", "a cat ran", "a dog ran"])
    >>> model = FeedForwardModel.create(corpus, order=2, embedding=4, hidden=(8,))
    >>> before = model.score("the cat sat")
    >>> fit(model, corpus, max_epochs=30, learning_rate=0.05).stop_reason
    '30 epochs'
    >>> model.score("the cat sat") > before
    True
    """
    start = perf_counter()
    if not isinstance(model, nn.Module):
        remedy = "models with 8-bit weights cannot be trained, only those that they are made from"
        raise DataError(f"{type(model).__name__} is not a torch module; {remedy}")
    config = validate(config or TrainingConfig, settings, "settings")
    texts = {"train": data, "dev": dev, "replay": replay, "replay_dev": replay_dev}
    for name, text in texts.items():
        _check_data(model, text, config, "dev" if name.endswith("dev") else "training")
    earlier = _earlier_data(model)
    if earlier and config.unknown_rate is None:
        config = validate(config, {"unknown_rate": 0.0}, "settings")
    processes = communicator(config.device)
    check_same_data(processes, model, texts, output)
    force = replaces_run(processes, output, force=force)
    stored = {} if output is None or force else processes.from_main(lambda: stored_training_settings(Path(output)))
    is_chosen = config.precision == "auto" and "precision" not in stored
    reason = precision_choice("auto", model, config.device).reason if is_chosen else ""
    with_all = partial(with_machine_settings, config, stored, model, processes.world_size)
    config = validate(TrainingConfig, processes.from_main(lambda: with_all().model_dump(mode="json")), "settings")
    start, elapsed_seconds = processes.from_main(lambda: [start, elapsed_seconds])
    task = create_task(model, data, dev, config, objective, replay, replay_dev)
    task = replace(task, start=start, elapsed_seconds=elapsed_seconds, reserve=reserve or TimeReserve())
    task = replace(task, precision_reason=reason)
    device = processes.local_device(config.device)
    with (
        ExitStack() as locks,
        limit_threads(config.threads),
        on_device(model, device),
        frozen(model, config.freeze),
    ):
        if output is not None:
            processes.from_main(partial(locks.enter_context, directory_lock(Path(output))))
        if isinstance(data, Corpus | ParallelCorpus) and isinstance(model, StorableModel):
            metadata = {"training": config.model_dump(mode="json"), "data": _describe_data(model, texts)}
            model.training_metadata = {**metadata, "trained_from": earlier} if earlier else metadata
        return _start_or_resume(model, task, output, callback, force=force, evaluate_first=bool(earlier))


def with_machine_settings(
    config: TrainingConfig, stored: Mapping[str, Any], model: nn.Module, processes: int = 1
) -> TrainingConfig:
    """Return the settings with the numbers of threads and pieces and the precision that are not given.

    A training run that is resumed has those that are stored, because others would give other bits.
    """
    threads, stored_threads = config.threads, stored.get("threads")
    if threads is None:
        is_possible = isinstance(stored_threads, int) and 1 <= stored_threads <= (os.cpu_count() or 1)
        threads = stored_threads if is_possible else available_cores()
    precision = config.precision
    if precision == "auto" and stored.get("precision") in get_args(Precision):
        precision = stored["precision"]
    else:
        precision = choose_precision(precision, model, config.device)
    pieces = config.pieces or stored.get("pieces") or processes
    return validate(config, {"threads": threads, "precision": precision, "pieces": pieces}, "settings")


def _start_or_resume(
    model: nn.Module,
    task: TrainingTask,
    output: str | Path | None,
    callback: TrainingCallback | None,
    *,
    force: bool,
    evaluate_first: bool,
) -> FitResult:
    """Train to the end, unless the training run in the directory is finished already."""
    model.train()  # a translator is without its shortlist from now on, which was for other parameters
    directory, processes = None, task.communicator
    if output is not None:
        if not isinstance(model, StorableModel):
            raise DataError("only models of this package can be trained in a directory; leave out output")
        directory = TrainingDirectory(Path(output), model)
    state = TrainState.create(model, task.config)

    def create_or_resume() -> bool:
        is_finished = directory is not None and directory.create_or_resume(state, task.config, force=force)
        if force and directory is not None:
            note_replaced(directory.path)
        return is_finished

    finished = processes.from_main(create_or_resume)
    share_state(state, processes)
    if not finished:
        if directory is not None:
            task = replace(task, pace_log=PaceLog.shared(directory.pace_file, processes))
        if evaluate_first:
            evaluate_start(state, task)
        if callback is None or not processes.is_main:
            callback = _ignore
        _run(state, task, directory, callback, forced=force)
        processes.from_main(lambda: None)  # process 0 has written everything
    load_parameters(model, state.best_parameters)
    progress = state.progress
    batches = max(1, len(task.batches(progress.epoch)))
    prediction_seconds = progress.pace.update_seconds * batches / task.predictions
    return FitResult(progress, progress.epoch + progress.batch / batches, prediction_seconds, finished)


def _ignore(event: object) -> None:
    """Do nothing with an event."""


def _earlier_data(model: nn.Module) -> list[object]:
    """Return the fingerprints of the texts that a model was trained on before, the first training first."""
    metadata = model.training_metadata if isinstance(model, StorableModel) else {}
    before = metadata.get("trained_from")
    return [*(before if isinstance(before, list) else ()), *([metadata["data"]] if "data" in metadata else ())]


def _describe_data(model: StorableModel, texts: Mapping[str, Examples | None]) -> dict[str, object]:
    """Return fingerprints of the texts by their names, of old texts only if there are any, and of the parameters."""
    fingerprints: dict[str, object] = {
        name: text.fingerprint() if isinstance(text, Corpus | ParallelCorpus) else None
        for name, text in texts.items()
        if text is not None or not name.startswith("replay")
    }
    fingerprints["start"] = arrays_fingerprint(model.arrays())
    if isinstance(train := texts["train"], ParallelCorpus):
        fingerprints["placeholders"] = has_placeholders(train.source)
    return fingerprints


def _check_data(model: nn.Module, text: Examples | None, config: TrainingConfig, name: str) -> None:
    """Raise an error for empty data, another vocabulary than the model's, or settings the model does not support."""
    if text is not None and not text.sizes.sum():
        raise DataError(f"the {name} text is empty")
    if isinstance(text, Corpus | ParallelCorpus) and isinstance(model, LikelihoodModel):
        needed = "sentence pairs" if isinstance(model, TranslationModel) else "a text in one language"
        if isinstance(text, ParallelCorpus) != isinstance(model, TranslationModel):
            raise DataError(f"{type(model).__name__} is trained on {needed}, not on a {type(text).__name__}")
    if isinstance(text, ParallelCorpus) and isinstance(model, TranslationModel):
        text.target.require_vocab(model.vocab)
        text.source.require_vocab(model.source_vocab)
    elif isinstance(text, Corpus) and isinstance(model, LikelihoodModel):
        text.require_vocab(model.vocab)
    if config.label_smoothing and not (isinstance(model, LikelihoodModel) and model.supports_label_smoothing):
        raise DataError("label smoothing is for neural networks; set label_smoothing to 0")
    if isinstance(model, LikelihoodModel) and model.carries and not config.batch_size:
        raise DataError("batch_size 0: a model that carries its state needs 1 or more")


def create_task(
    model: ModelT,
    data: ExamplesT,
    dev: ExamplesT | None,
    config: TrainingConfig,
    objective: Objective[ModelT, ExamplesT] = negative_log_likelihood,
    replay: ExamplesT | None = None,
    replay_dev: ExamplesT | None = None,
) -> TrainingTask:
    """Return the task: sentences in random order, or a stream for a model that carries its state.

    Words seen once are replaced by unknown words where that is of use.
    """
    carries = isinstance(model, LikelihoodModel) and model.carries
    if objective is not negative_log_likelihood and (carries or config.label_smoothing):
        raise DataError("a custom objective cannot be combined with carried states or label smoothing")
    stateful: StatefulObjective
    if carries:
        stateful = stream_objective(model, config.label_smoothing)
    elif config.label_smoothing:
        smoothed = partial(negative_log_likelihood, label_smoothing=config.label_smoothing)
        stateful = stateless_objective(model, smoothed)
    else:
        stateful = stateless_objective(model, objective)
    closed = isinstance(model, LikelihoodModel) and isinstance(model.unknown, ClosedVocabulary)
    order, examples, predictions = STREAM if carries else SENTENCES, cast(Examples, data), int(data.sizes.sum())
    if replay is not None:
        examples, order = with_replay(data, replay, order)
        predictions += round(replayed_examples(len(data), config.replay_share) * replay.sizes.mean())
    text = examples.target if isinstance(examples, ParallelCorpus) else examples
    if isinstance(text, Corpus):
        target = UnknownWordReplacement.of_singletons(text, config.unknown_rate, closed=closed)
        source = None
        if isinstance(examples, ParallelCorpus):
            source = UnknownWordReplacement.of_singletons(examples.source, config.unknown_rate)
        stateful = with_unknown_words(stateful, target, source)
    sample = None
    if dev is not None and config.dev_sample is not None:
        dev = sample_examples(dev, config.dev_sample)
    if dev is not None and not carries and isinstance(model, LikelihoodModel):
        sample = sample_examples(data, int(dev.sizes.sum()) // 2)
    processes = communicator(config.device)
    clock = processes.shared_clock(perf_counter)
    task = TrainingTask(examples, predictions, dev, stateful, config, clock, order, replay_dev, sample)
    task = replace(task, communicator=processes)
    is_likelihood = objective is negative_log_likelihood and isinstance(model, StorableModel)
    return replace(task, max_loss=MAX_LOSS) if is_likelihood else task


def sample_examples(data: ExamplesT, predictions: int) -> ExamplesT:
    """Return random examples with about this many predictions; always the same ones."""
    order = np.random.default_rng(0).permutation(len(data))
    number = int(np.searchsorted(np.cumsum(data.sizes[order]), predictions)) + 1
    return data.select(np.sort(order[:number]))


@contextmanager
def on_device(model: nn.Module, device: str) -> Iterator[None]:
    """Move a model to its device, and set evaluation mode and release gradients afterwards."""
    if not re.fullmatch(r"cpu|cuda(:\d+)?", device):
        raise DataError(f"device {device!r}: use cpu, cuda, or cuda with a number, such as cuda:1")
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise DataError(f"device {device!r} is not available ({str(error).splitlines()[0]}); use cpu") from None
    model.to(device)
    try:
        yield
    finally:
        model.eval()
        model.zero_grad(set_to_none=True)
        release_freed_memory()


def _run(
    state: TrainState,
    task: TrainingTask,
    directory: TrainingDirectory | None,
    callback: TrainingCallback,
    *,
    forced: bool,
) -> None:
    """Train to the end, with callbacks and checkpoints."""
    trained, frozen_parameters = (
        sum(parameter.numel() for parameter in state.model.parameters() if parameter.requires_grad == is_trained)
        for is_trained in (True, False)
    )
    callback(
        TrainingStarted(
            state.progress,
            trained,
            task.predictions,
            len(task.batches(state.progress.epoch)),
            task.data_order.description.format_map(task.config.model_dump()),
            isinstance(state.model, LikelihoodModel) and state.model.has_auxiliary_loss,
            frozen_parameters,
            state.progress.best_dev_loss if not state.progress.update else None,
            evaluate_loss(task.replay_dev, state, task) if not state.progress.update else None,
            math.inf if task.config.minutes is None else 60 * task.config.minutes,
            task.config.threads or available_cores(),
            task.config.precision,
            task.precision_reason,
            task.communicator.world_size,
        )
    )
    is_main = task.communicator.is_main
    with catch_stop_signals() as request:
        for report in training_steps(state, task):
            callback(report)
            stop_signal = task.communicator.max(request.number)  # read once: a later one is for the next step
            due = report.progress.update % task.config.save_every == 0
            if directory is not None and (due or stop_signal or report.evaluated):
                share_carries(state, task.communicator)
            if directory is not None and is_main:
                directory.save_step(state, report, checkpoint=due or bool(stop_signal))
            if stop_signal and not report.progress.stop_reason:
                saved = "; nothing was saved (no output directory)"
                if directory is not None:
                    command = "run the same command again" + (", without --force," if forced else "")
                    saved = f" and saved to {directory.path}; {command} to resume"
                raise StoppedError(stop_signal, f"stopped after update {report.progress.update:,}{saved}")


class StoppedError(DragomanError):
    """Training was stopped by a signal, after saving."""

    def __init__(self, number: int, message: str):
        super().__init__(message)
        self.exit_code = EXIT_CODES[signal.Signals(number)]


class StopRequest:
    """The signal that was received, or 0."""

    number = 0


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

    def restore() -> None:
        for number, handler in handlers.items():
            signal.signal(number, handler)

    def record(number: int, frame: FrameType | None) -> None:
        request.number = number
        restore()

    for number in EXIT_CODES:
        signal.signal(number, record)
    try:
        yield request
    finally:
        restore()
