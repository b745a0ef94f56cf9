"""Watching a training: a bar on a terminal, one plain line for each report elsewhere."""

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
    from rich.progress import Progress

    from dragoman.experiments.trainer import Callbacks
    from dragoman.training.fit import TrainingCallback, TrainingStarted
    from dragoman.training.loop import StepReport

REPORT_INTERVAL = 30.0  # seconds after which there is a line even if the model was not judged meanwhile


class Throughput:
    """How fast a training goes, from where this run took it up."""

    def __init__(self) -> None:
        self.items, self.began = 0, monotonic()
        self.first_share: float | None = None

    def after(self, moment: StepReport) -> None:
        self.first_share = moment.fraction_done if self.first_share is None else self.first_share
        self.items += moment.predictions

    @property
    def per_second(self) -> float:
        return self.items / max(monotonic() - self.began, 1e-9)

    def left(self, share: float) -> float:
        """Seconds to the bound, if all goes on like this."""
        gone = share - (self.first_share or 0.0)
        return (monotonic() - self.began) * (1 - share) / gone if gone > 0 else math.inf


@contextmanager
def training_progress(unit: str = "word") -> Iterator[TrainingCallback]:
    """Something for `fit` to report to. Unit: what is predicted, where that is not a word."""
    if not sys.stderr.isatty():
        yield PlainProgress(info, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}")]
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarProgress(progress, console.print, unit)


class PlainProgress:
    """A line when the model is judged, and now and then between."""

    def __init__(self, line: Callable[[str], None], unit: str = "word"):
        self.line, self.unit = line, unit
        self.pace = Throughput()
        self.last = monotonic()
        self.has_auxiliary_loss = False

    def __call__(self, event: TrainingStarted | StepReport) -> None:
        from dragoman.training.fit import TrainingStarted

        if isinstance(event, TrainingStarted):
            self.pace, self.has_auxiliary_loss = Throughput(), event.has_auxiliary_loss
            self.line(format_start(event, self.unit))
            return
        self.pace.after(event)
        self.step(event)
        due = event.train_loss is not None and monotonic() - self.last > REPORT_INTERVAL
        if event.evaluated or event.rolled_back or due:
            self.line(format_step(event, self.pace, self.unit, has_auxiliary_loss=self.has_auxiliary_loss))
            self.last = monotonic()

    def step(self, moment: StepReport) -> None:
        """Between the lines there is nothing to show."""


class BarProgress(PlainProgress):
    """The same lines, above a bar that moves with every step."""

    def __init__(self, progress: Progress, line: Callable[[str], None], unit: str = "word"):
        super().__init__(line, unit)
        self.progress = progress
        self.task = progress.add_task("", total=1.0)

    def step(self, moment: StepReport) -> None:
        left = _duration(self.pace.left(moment.fraction_done))
        described = (
            f"epoch {moment.progress.epoch + 1}, {self.pace.per_second:,.0f} {self.unit}s/s, loss {moment.loss:.3f}, "
            f"{'' if self.has_auxiliary_loss else f'perplexity {format_perplexity(moment.loss)}, '}at most {left} left"
        )
        self.progress.update(self.task, completed=moment.fraction_done, description=described)


def format_start(started: TrainingStarted, unit: str) -> str:
    """What there is to do."""
    position = started.progress
    sizes = f"{started.parameters:,} parameters, {started.predictions:,} {unit}s, {started.updates_per_epoch:,} updates an epoch"
    sizes += f", {started.data_order}"
    return f"going on after update {position.update:,}: {sizes}" if position.update else f"training: {sizes}"


def format_step(moment: StepReport, pace: Throughput, unit: str, *, has_auxiliary_loss: bool = False) -> str:
    """One line about where training is. Perplexities are by class: what an unknown word is called is not counted; where
    the training loss holds more than -log P, it is told as it is."""
    what = "perplexity by class" if unit == "word" else f"perplexity a {unit}"
    position = moment.progress
    costs, losses = [], []
    if moment.train_loss is not None and math.isfinite(moment.train_loss):
        if has_auxiliary_loss:
            losses.append(f"train loss {moment.train_loss:.3f}, with what attention is taught")
        else:
            costs.append(f"train {format_perplexity(moment.train_loss)}")
    if moment.dev_loss is not None:
        best = " (best)" if position.best_update == position.update else ""
        costs.append(f"dev {format_perplexity(moment.dev_loss)}{best}")
    figures = [*([f"{what} {', '.join(costs)}"] if costs or not losses else []), *losses]
    parts = [f"epoch {_epochs(moment)}, update {position.update:,}: {'; '.join(figures)};"]
    parts.append(f"{pace.per_second:,.0f} {unit}s/s, {_duration(position.seconds)}")
    if moment.rolled_back:
        parts.append("; the loss was not finite: back to the model kept, with half the learning rate")
    return " ".join(parts).replace(" ;", ";")


def _epochs(moment: StepReport) -> str:
    """The epoch a step belongs to; of its last one, too."""
    position = moment.progress
    return str(position.epoch if position.batch == 0 else position.epoch + 1)


def format_perplexity(loss: float) -> str:
    """
    >>> perplexity_told(3.0), perplexity_told(1466.0)
    ('20.09', 'e^1466')
    """
    if not math.isfinite(loss):
        return "infinite"
    return f"{math.exp(loss):,.2f}" if loss < 20 else f"e^{loss:.0f}"


def _duration(seconds: float) -> str:
    """
    >>> _duration(42), _duration(125), _duration(3 * 3600 + 60)
    ('42 s', '2 min 5 s', '3 h 1 min')
    """
    if not math.isfinite(seconds):
        return "?"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def console_callbacks() -> Callbacks:
    """Return the callbacks of a ladder or a demo: results go to standard output, all else to standard error."""
    from dragoman.experiments.trainer import Callbacks

    return Callbacks(info, status, grouped_warnings, training_progress, show=partial(print, flush=True))
