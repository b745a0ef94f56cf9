"""Progress of training and other long work: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from dragoman.cli.messages import grouped_warnings, info, status, warn

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress as ProgressBar
    from rich.progress import TaskID
    from torch import nn

    from dragoman.data.corpus import Corpus, ParallelCorpus
    from dragoman.experiments.trainer import Callbacks
    from dragoman.training.config import TrainingConfig
    from dragoman.training.fit import FitResult, TrainingCallback, TrainingStarted
    from dragoman.training.loop import StepReport
    from dragoman.training.pace import TimeReserve
    from dragoman.training.progress import Progress

    Text = Corpus | ParallelCorpus
    TrainingTexts = tuple[Text, Text | None, Text | None, Text | None]  # train, dev, replay, replay_dev

REPORT_INTERVAL = 30.0  # seconds after which a line is printed even without an evaluation
LATE_START = 0.25  # share of a time limit that is over before training starts, from which on there is a warning


@contextmanager
def training_progress(token_name: str = "word") -> Iterator[TrainingCallback]:
    """Yield a callback for `fit` that shows the progress; `token_name` is what the model predicts."""
    if not sys.stderr.isatty():
        yield TrainingProgress(info, token_name)
        return
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    with training_bar(console) as bar:
        yield TrainingProgress(console.print, token_name, bar)


def training_bar(console: Console) -> ProgressBar:
    """Return a bar, a percentage and a text of up to 50 characters, which fit into 80 columns."""
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [BarColumn(bar_width=20), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}")]
    return Progress(*columns, console=console, transient=True)


class TrainingProgress:
    """Prints a line after each evaluation and from time to time in between; a bar below is updated after each step."""

    def __init__(self, print_line: Callable[[str], None], token_name: str, bar: ProgressBar | None = None):
        self.print_line, self.token_name, self.bar = print_line, token_name, bar
        self.task = None if bar is None else bar.add_task("", total=1.0)
        self._reset()

    def _reset(self, *, has_auxiliary_loss: bool = False, time_limit: float = math.inf) -> None:
        self.has_auxiliary_loss, self.time_limit = has_auxiliary_loss, time_limit
        self.loss_sum, self.predictions = 0.0, 0  # since the last line
        self.last_line = monotonic()
        self.first_step: tuple[float, float] | None = None  # seconds and fraction done at the start or resumption

    def __call__(self, event: TrainingStarted | StepReport) -> None:
        from dragoman.training.fit import TrainingStarted

        if isinstance(event, TrainingStarted):
            self._reset(has_auxiliary_loss=event.has_auxiliary_loss, time_limit=event.time_limit)
            self.print_line(format_start(event, self.token_name))
            return
        self.first_step = self.first_step or (event.progress.seconds, event.fraction_done)
        self.loss_sum += event.loss * event.predictions
        self.predictions += event.predictions
        if self.bar is not None and self.task is not None:
            self.bar.update(self.task, completed=event.fraction_done, description=self._describe(event))
        if event.evaluated or event.rolled_back or monotonic() - self.last_line > REPORT_INTERVAL:
            if event.train_loss is None:
                event = replace(event, train_loss=self.loss_sum / max(1, self.predictions))
            self.print_line(format_step(event, self.speed, self.token_name, has_auxiliary_loss=self.has_auxiliary_loss))
            self.loss_sum, self.predictions, self.last_line = 0.0, 0, monotonic()

    @property
    def speed(self) -> str:
        return f"{self.predictions / max(monotonic() - self.last_line, 1e-9):,.0f} {self.token_name}s/s"

    def _describe(self, step: StepReport) -> str:
        """Return the text beside the bar. It is short, so that it fits into 80 columns; lines above it have the speed."""
        loss = f"loss {step.loss:.3f}" if self.has_auxiliary_loss else f"perplexity {format_perplexity(step.loss)}"
        return f"epoch {step.progress.epoch + 1}, {loss}, {_format_duration(self._seconds_left(step))} left"

    def _seconds_left(self, step: StepReport) -> float:
        """Return the time to the end at the speed since the first step of this run, at most the rest of the limit."""
        first_seconds, first_fraction = self.first_step or (0.0, 0.0)
        seconds, done = step.progress.seconds, step.fraction_done - first_fraction
        at_this_speed = (seconds - first_seconds) * (1 - step.fraction_done) / done if done > 0 else math.inf
        return max(0.0, min(at_this_speed, self.time_limit - seconds))


def fit_with_progress(
    model: nn.Module,
    texts: TrainingTexts,
    training: TrainingConfig,
    output: Path,
    given: Collection[str],
    *,
    force: bool,
    token_name: str = "word",
    elapsed_seconds: float = 0.0,
    reserve: TimeReserve | None = None,
) -> FitResult:
    """Train a model, and report why training ended. `given` are the names of the settings that the user has chosen."""
    from dragoman.training.fit import fit

    data, dev, old, old_dev = texts
    with training_progress(token_name) as callback:
        result = fit(
            model,
            data,
            dev,
            training,
            output=output,
            force=force,
            callback=_with_late_warning(callback, elapsed_seconds),
            replay=old,
            replay_dev=old_dev,
            elapsed_seconds=elapsed_seconds,
            reserve=reserve,
        )
    progress = result.progress
    best = f"; the best model is that of update {progress.best_update:,}" if progress.best_dev_loss is not None else ""
    updates = f"{progress.update:,} update{'' if progress.update == 1 else 's'}"
    reason = "" if result.stop_reason == updates else f" ({result.stop_reason})"
    end = f"{updates}{reason}{best}"
    if result.already_finished:
        remedy = f"run again with {_longer_limit(progress, training)} to continue, or with --force to start again"
        info(f"{output}: already finished, after {end}; {remedy}")
        return result
    info(f"finished after {end}")
    if progress.best_dev_loss is not None and not progress.best_update:
        warn("no update improved the dev loss, so the model is as it was; lower --learning-rate, or give more text")
    if result.was_improving:
        limit = _longer_limit(progress, training)
        info(f"the dev loss was still improving when training ended; the same command with {limit} continues")
    if "average" in given and training.average and not progress.averaged_steps:
        warn("training ended before parameters were averaged; train longer, or raise --average")
    return result


def _with_late_warning(callback: TrainingCallback, elapsed_seconds: float) -> TrainingCallback:
    """Return a callback that also warns if much of a time limit is over before the first update."""
    from dragoman.training.fit import TrainingStarted

    def report(event: TrainingStarted | StepReport) -> None:
        callback(event)
        if not isinstance(event, TrainingStarted) or event.progress.update:
            return
        if elapsed_seconds > LATE_START * event.time_limit:
            amounts = f"{elapsed_seconds:.0f} of the {event.time_limit:.0f} seconds"
            remedy = "give more --minutes, or less text, with --force, or wait until the machine is less busy"
            warn(f"{amounts} were over before training started, for reading, preparing and planning; {remedy}")

    return report


def _longer_limit(progress: Progress, training: TrainingConfig) -> str:
    """Return an option that lets a finished training run continue: twice the limit that ended it."""
    reason = progress.stop_reason
    if reason.endswith("without improvement"):
        return f"--patience {2 * training.patience}"
    if "minute" in reason and training.minutes is not None:
        return f"--minutes {2 * training.minutes:g}"
    if "update" in reason and training.max_updates is not None:
        return f"--max-updates {2 * training.max_updates}"
    if training.max_epochs is not None:
        return f"--max-epochs {2 * training.max_epochs}"
    return f"--minutes {2 * (training.minutes or 1):g}"


def format_start(started: TrainingStarted, token_name: str) -> str:
    """Return a line about the size of a training run that starts or resumes."""
    updates = started.progress.update
    frozen = f" ({started.frozen_parameters:,} more are frozen)" if started.frozen_parameters else ""
    reason = f" ({started.precision_reason})" if started.precision_reason else ""
    sizes = (
        f"{started.parameters:,} parameters{frozen}, {started.predictions:,} {token_name}s, "
        f"{started.updates_per_epoch:,} updates per epoch, {started.data_order}, {started.precision}{reason}, "
        f"{_format_threads(started)}"
    )
    if updates:
        return f"resuming after update {updates:,}: {sizes}"
    losses = {"dev": started.dev_loss, "old dev": started.replay_dev_loss}
    before = [f"{name} {format_perplexity(loss)}" for name, loss in losses.items() if loss is not None]
    initial = f"\nbefore training: {_perplexity_name(token_name)} {', '.join(before)}" if before else ""
    return f"training: {sizes}{initial}"


def _format_threads(started: TrainingStarted) -> str:
    threads = f"{started.threads} thread{'' if started.threads == 1 else 's'}"
    return threads if started.processes == 1 else f"{started.processes} processes with {threads} each"


def format_step(step: StepReport, speed: str, token_name: str, *, has_auxiliary_loss: bool = False) -> str:
    """Return a line about the state of a training run.

    After an evaluation, the perplexities of the dev text and of a sample of the training text are measured in the same
    way. In between there is only the training loss, which includes dropout, label smoothing and auxiliary losses.
    """
    progress = step.progress
    losses = []
    if step.dev_loss is not None:
        train = "" if step.sample_loss is None else f"train {format_perplexity(step.sample_loss)}, "
        best = " (best)" if progress.best_update == progress.update else ""
        old = "" if step.replay_dev_loss is None else f", old dev {format_perplexity(step.replay_dev_loss)}"
        perplexities = f"{train}dev {format_perplexity(step.dev_loss)}{best}{old}"
        losses.append(f"{_perplexity_name(token_name)}: {perplexities}")
    elif step.train_loss is not None and math.isfinite(step.train_loss):
        losses.append(f"training loss {step.train_loss:.3f}{' (with auxiliary losses)' if has_auxiliary_loss else ''}")
    epoch = progress.epoch if progress.batch == 0 else progress.epoch + 1
    parts = [*losses, f"{speed}, {_format_duration(progress.seconds)}"]
    if step.rolled_back:
        parts.append("the loss was not finite: rolled back to the best parameters, with half the learning rate")
    return f"epoch {epoch}, update {progress.update:,}: {'; '.join(parts)}"


def _perplexity_name(token_name: str) -> str:
    return f"perplexity per {token_name}"


def format_perplexity(loss: float) -> str:
    """Return the perplexity that belongs to a loss in nats.

    >>> format_perplexity(3.0), format_perplexity(1466.0)
    ('20.09', 'e^1466')
    """
    if not math.isfinite(loss):
        return "infinite"
    return f"{math.exp(loss):,.2f}" if loss < 20 else f"e^{loss:.0f}"


def _format_duration(seconds: float) -> str:
    """
    >>> _format_duration(42), _format_duration(125), _format_duration(3 * 3600 + 60)
    ('42 s', '2 min 5 s', '3 h 1 min')
    """
    if not math.isfinite(seconds):
        return "?"
    rounded = round(seconds)
    if rounded < 60:
        return f"{rounded} s"
    if rounded < 3600:
        return f"{rounded // 60} min {rounded % 60} s"
    return f"{rounded // 3600} h {rounded % 3600 // 60} min"


@contextmanager
def step_bars() -> Iterator[Callable[[str, int, int], None] | None]:
    """Yield a callback `(name, done, total)` that shows one bar per name; None if there is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bars:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bars.add_task(name, total=total)
            bars.update(tasks[name], completed=done)

        yield show


def console_callbacks() -> Callbacks:
    """Return the callbacks of a ladder or a demo: results go to standard output, everything else to standard error."""
    from dragoman.experiments.trainer import Callbacks

    return Callbacks(info, status, grouped_warnings, training_progress, show=partial(print, flush=True))


def amount_progress(name: str, unit: str, scale: int = 1) -> Callable[[int, int], None]:
    """Return a callback `(done, total)` that prints a line from time to time.

    Args:
        name: what the line begins with.
        unit: of the amounts in the line, such as lines.
        scale: amounts are divided by this.
    """
    start = last_line = monotonic()

    def report(done: int, total: int) -> None:
        nonlocal last_line
        now = monotonic()
        if now - last_line < REPORT_INTERVAL or not done:
            return
        last_line, seconds = now, now - start
        left = _format_duration(seconds * (total - done) / done)
        amounts = f"{done / scale:,.0f} of {total / scale:,.0f} {unit}, {100 * done / total:.0f} %"
        info(f"{name}: {amounts}, {format_rate(done / scale, seconds, unit)}, {left} left")

    return report


def format_rate(amount: float, seconds: float, unit: str = "lines") -> str:
    """
    >>> format_rate(1000, 4), format_rate(1, 4)
    ('250 lines/s', '0.25 lines/s')
    """
    rate = amount / max(seconds, 1e-9)
    return f"{rate:,.0f} {unit}/s" if rate >= 10 else f"{rate:.2g} {unit}/s"
