"""Progress of training and other long work: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from dragoman.cli.messages import grouped_warnings, info, status

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from dragoman.experiments.trainer import Callbacks
    from dragoman.training.fit import TrainingCallback, TrainingStarted
    from dragoman.training.loop import StepReport

REPORT_INTERVAL = 30.0  # seconds after which a line is printed even without an evaluation


class Throughput:
    """The training speed since the start or resumption."""

    def __init__(self) -> None:
        self.predictions, self.start_time = 0, monotonic()
        self.first_fraction: float | None = None

    def update(self, step: StepReport) -> None:
        self.first_fraction = step.fraction_done if self.first_fraction is None else self.first_fraction
        self.predictions += step.predictions

    @property
    def per_second(self) -> float:
        return self.predictions / max(monotonic() - self.start_time, 1e-9)

    def seconds_left(self, fraction_done: float) -> float:
        """Return the seconds until the end at the current speed."""
        done = fraction_done - (self.first_fraction or 0.0)
        return (monotonic() - self.start_time) * (1 - fraction_done) / done if done > 0 else math.inf


@contextmanager
def training_progress(token_name: str = "word") -> Iterator[TrainingCallback]:
    """Yield a callback for `fit` that shows the progress; `token_name` is what the model predicts."""
    if not sys.stderr.isatty():
        yield PlainProgress(info, token_name)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}")]
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarProgress(progress, console.print, token_name)


class PlainProgress:
    """Prints a line after each evaluation, and from time to time in between."""

    def __init__(self, print_line: Callable[[str], None], token_name: str = "word"):
        self.print_line, self.token_name = print_line, token_name
        self.throughput = Throughput()
        self.last_line = monotonic()
        self.has_auxiliary_loss = False

    def __call__(self, event: TrainingStarted | StepReport) -> None:
        from dragoman.training.fit import TrainingStarted

        if isinstance(event, TrainingStarted):
            self.throughput, self.has_auxiliary_loss = Throughput(), event.has_auxiliary_loss
            self.print_line(format_start(event, self.token_name))
            return
        self.throughput.update(event)
        self.show_step(event)
        is_due = event.train_loss is not None and monotonic() - self.last_line > REPORT_INTERVAL
        if event.evaluated or event.rolled_back or is_due:
            has_auxiliary_loss = self.has_auxiliary_loss
            self.print_line(format_step(event, self.throughput, self.token_name, has_auxiliary_loss=has_auxiliary_loss))
            self.last_line = monotonic()

    def show_step(self, step: StepReport) -> None:
        """Show a step between the lines: here nothing."""


class BarProgress(PlainProgress):
    """Prints the same lines above a bar that is updated after each step."""

    def __init__(self, progress: Progress, print_line: Callable[[str], None], token_name: str = "word"):
        super().__init__(print_line, token_name)
        self.progress = progress
        self.task = progress.add_task("", total=1.0)

    def show_step(self, step: StepReport) -> None:
        time_left = _format_duration(self.throughput.seconds_left(step.fraction_done))
        parts = [
            f"epoch {step.progress.epoch + 1}",
            f"{self.throughput.per_second:,.0f} {self.token_name}s/s",
            f"loss {step.loss:.3f}",
            *([] if self.has_auxiliary_loss else [f"perplexity {format_perplexity(step.loss)}"]),
            f"at most {time_left} left",
        ]
        self.progress.update(self.task, completed=step.fraction_done, description=", ".join(parts))


def format_start(started: TrainingStarted, token_name: str) -> str:
    """Return a line about the size of a training run that starts or resumes."""
    updates = started.progress.update
    sizes = (
        f"{started.parameters:,} parameters, {started.predictions:,} {token_name}s, "
        f"{started.updates_per_epoch:,} updates per epoch, {started.data_order}"
    )
    return f"resuming after update {updates:,}: {sizes}" if updates else f"training: {sizes}"


def format_step(step: StepReport, throughput: Throughput, token_name: str, *, has_auxiliary_loss: bool = False) -> str:
    """Return a line about the state of a training run.

    Perplexities are by class: the spelling of unknown words is not included. A training loss with auxiliary terms is
    shown as a loss.
    """
    progress = step.progress
    perplexities, losses = [], []
    if step.train_loss is not None and math.isfinite(step.train_loss):
        if has_auxiliary_loss:
            losses.append(f"train loss {step.train_loss:.3f} (with auxiliary losses)")
        else:
            perplexities.append(f"train {format_perplexity(step.train_loss)}")
    if step.dev_loss is not None:
        best = " (best)" if progress.best_update == progress.update else ""
        perplexities.append(f"dev {format_perplexity(step.dev_loss)}{best}")
    name = "perplexity by class" if token_name == "word" else f"perplexity per {token_name}"
    figures = [f"{name} {', '.join(perplexities)}"] if perplexities or not losses else []
    epoch = progress.epoch if progress.batch == 0 else progress.epoch + 1
    speed = f"{throughput.per_second:,.0f} {token_name}s/s, {_format_duration(progress.seconds)}"
    line = f"epoch {epoch}, update {progress.update:,}: {'; '.join([*figures, *losses])}; {speed}"
    if step.rolled_back:
        line += "; the loss was not finite: rolled back to the best parameters, with half the learning rate"
    return line.replace(" ;", ";")


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
    """Return the callbacks of a ladder or a demo: results go to standard output, all else to standard error."""
    from dragoman.experiments.trainer import Callbacks

    return Callbacks(info, status, grouped_warnings, training_progress, show=partial(print, flush=True))
