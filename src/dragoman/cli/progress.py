"""Watching a training: a bar on a terminal, one plain line for each report elsewhere."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from dragoman.cli.messages import few_warnings, say, working

if TYPE_CHECKING:
    from rich.progress import Progress

    from dragoman.experiments.callbacks import Voice
    from dragoman.training.fit import Report, Started
    from dragoman.training.loop import Moment

QUIET = 30.0  # seconds after which there is a line even if the model was not judged meanwhile


class Pace:
    """How fast a training goes, from where this run took it up."""

    def __init__(self) -> None:
        self.items, self.began = 0, monotonic()
        self.first_share: float | None = None

    def after(self, moment: Moment) -> None:
        self.first_share = moment.share if self.first_share is None else self.first_share
        self.items += moment.items

    @property
    def per_second(self) -> float:
        return self.items / max(monotonic() - self.began, 1e-9)

    def left(self, share: float) -> float:
        """Seconds to the bound, if all goes on like this."""
        gone = share - (self.first_share or 0.0)
        return (monotonic() - self.began) * (1 - share) / gone if gone > 0 else math.inf


@contextmanager
def watching(unit: str = "word") -> Iterator[Report]:
    """Something for `fit` to report to. Unit: what is predicted, where that is not a word."""
    if not sys.stderr.isatty():
        yield PlainWatch(say, unit)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = [BarColumn(bar_width=24), TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.description}")]
    console = Console(stderr=True, highlight=False)
    with Progress(*columns, console=console, transient=True) as progress:
        yield BarWatch(progress, console.print, unit)


class PlainWatch:
    """A line when the model is judged, and now and then between."""

    def __init__(self, line: Callable[[str], None], unit: str = "word"):
        self.line, self.unit = line, unit
        self.pace = Pace()
        self.last = monotonic()
        self.taught_besides = False

    def __call__(self, event: Started | Moment) -> None:
        from dragoman.training.fit import Started

        if isinstance(event, Started):
            self.pace, self.taught_besides = Pace(), event.taught_besides
            self.line(begun(event, self.unit))
            return
        self.pace.after(event)
        self.step(event)
        due = event.train_loss is not None and monotonic() - self.last > QUIET
        if event.judged or event.went_back or due:
            self.line(told(event, self.pace, self.unit, taught_besides=self.taught_besides))
            self.last = monotonic()

    def step(self, moment: Moment) -> None:
        """Between the lines there is nothing to show."""


class BarWatch(PlainWatch):
    """The same lines, above a bar that moves with every step."""

    def __init__(self, progress: Progress, line: Callable[[str], None], unit: str = "word"):
        super().__init__(line, unit)
        self.progress = progress
        self.task = progress.add_task("", total=1.0)

    def step(self, moment: Moment) -> None:
        left = _duration(self.pace.left(moment.share))
        described = (
            f"epoch {moment.position.epoch + 1}, {self.pace.per_second:,.0f} {self.unit}s/s, loss {moment.loss:.3f}, "
            f"{'' if self.taught_besides else f'perplexity {perplexity_told(moment.loss)}, '}at most {left} left"
        )
        self.progress.update(self.task, completed=moment.share, description=described)


def begun(started: Started, unit: str) -> str:
    """What there is to do."""
    position = started.position
    sizes = f"{started.parameters:,} parameters, {started.items:,} {unit}s, {started.batches:,} updates an epoch"
    sizes += f", {started.manner}"
    return f"going on after update {position.update:,}: {sizes}" if position.update else f"training: {sizes}"


def told(moment: Moment, pace: Pace, unit: str, *, taught_besides: bool = False) -> str:
    """One line about where training is. Perplexities are by class: what an unknown word is called is not counted; where
    the training loss holds more than -log P, it is told as it is."""
    what = "perplexity by class" if unit == "word" else f"perplexity a {unit}"
    position = moment.position
    costs, losses = [], []
    if moment.train_loss is not None and math.isfinite(moment.train_loss):
        if taught_besides:
            losses.append(f"train loss {moment.train_loss:.3f}, with what attention is taught")
        else:
            costs.append(f"train {perplexity_told(moment.train_loss)}")
    if moment.dev_loss is not None:
        best = " (best)" if position.best_update == position.update else ""
        costs.append(f"dev {perplexity_told(moment.dev_loss)}{best}")
    figures = [*([f"{what} {', '.join(costs)}"] if costs or not losses else []), *losses]
    parts = [f"epoch {_epochs(moment)}, update {position.update:,}: {'; '.join(figures)};"]
    parts.append(f"{pace.per_second:,.0f} {unit}s/s, {_duration(position.seconds)}")
    if moment.went_back:
        parts.append("; the loss was not finite: back to the model kept, with half the learning rate")
    return " ".join(parts).replace(" ;", ";")


def _epochs(moment: Moment) -> str:
    """The epoch a step belongs to; of its last one, too."""
    position = moment.position
    return str(position.epoch if position.batch == 0 else position.epoch + 1)


def perplexity_told(loss: float) -> str:
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


def aloud() -> Voice:
    """What a ladder or a demo says on the way, on standard error."""
    from dragoman.experiments.callbacks import Voice

    return Voice(say, working, few_warnings, watching)
