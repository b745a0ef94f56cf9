"""Divides the time of an experiment among the parts that are still to be done.

Each part gets its share of the time that is left when it starts: time that a part does not need goes to the parts after
it, and a part that takes too long takes from them. Decisions are saved, so that an experiment that was stopped
continues with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter

from pydantic import BaseModel, FiniteFloat

from dragoman.core.errors import DataError
from dragoman.io.files import write_text

NOTES_FILE = "time.json"
TRAINING_SHARE = 0.85  # of a model's time; the rest is for preparing, saving and measuring it
READY_SHARE = 0.93  # of the time that a model has left once it is ready to be trained
MIN_SECONDS = 0.3  # of training: a few steps
REPORT_SHARE = 0.03  # of all the time, reserved for the report


class TimeNotes(BaseModel):
    """What is saved in `time.json`."""

    spent: FiniteFloat = 0.0  # seconds of all runs
    minutes: dict[str, FiniteFloat] = {}  # expected minutes of training per part
    bounds: dict[str, FiniteFloat] = {}  # minutes of training per part, once it was ready
    decided: dict[str, int] = {}  # other decisions
    finished: FiniteFloat | None = None  # seconds when everything was measured


def share_time(seconds: float, weights: Mapping[str, float]) -> dict[str, float]:
    """Divide seconds in proportion to weights.

    >>> share_time(90.0, {"encoder-decoder": 1, "attention": 2})
    {'encoder-decoder': 30.0, 'attention': 60.0}
    """
    total = sum(weights.values())
    return {name: max(0.0, seconds) * weight / total for name, weight in weights.items()}


class TimeBudget:
    """A number of minutes for an experiment.

    Args:
        directory: where decisions are saved.
        minutes: for everything together.
        weights: of the parts that take as long as they are given.
        clock: returns seconds.
        start: what the clock showed at the start, if that is not now.
    """

    def __init__(
        self,
        directory: Path,
        minutes: float,
        weights: Mapping[str, float],
        clock: Callable[[], float] = perf_counter,
        start: float | None = None,
    ):
        self.path, self.minutes, self.weights, self.clock = directory / NOTES_FILE, minutes, weights, clock
        self.start = clock() if start is None else start
        try:
            saved = self.path.read_text(encoding="utf-8") if self.path.exists() else "{}"
            self.notes = TimeNotes.model_validate_json(saved)
        except ValueError:
            raise DataError(f"{self.path}: damaged; delete it, and time is divided again") from None
        self._earlier = self.notes.spent

    @property
    def spent(self) -> float:
        """Seconds of all runs. Of a run that was killed only what it had saved is counted."""
        return self._earlier + self.clock() - self.start

    @property
    def left(self) -> float:
        """Seconds until the report has to be written."""
        return 60 * self.minutes * (1 - REPORT_SHARE) - self.spent

    @property
    def total_seconds(self) -> float:
        """Seconds until everything was measured; writing the report again later does not count."""
        return self.spent if self.notes.finished is None else self.notes.finished

    def seconds_for(self, name: str) -> float:
        """Return what a part may take now: its share of what is left, among the parts that have not started."""
        started = self.notes.minutes
        waiting = {part: weight for part, weight in self.weights.items() if part == name or part not in started}
        return share_time(self.left, waiting)[name]

    def minutes_for(self, name: str) -> float:
        """Return the minutes of training that a model can expect. Decided once: its size may depend on it."""
        if name not in self.notes.minutes:
            seconds = max(MIN_SECONDS, TRAINING_SHARE * self.seconds_for(name))
            self.notes.minutes[name] = round(seconds / 60, 4)
            self.save()
        return self.notes.minutes[name]

    def minutes_left_for(self, name: str) -> float:
        """Return the minutes of training for a model that is ready. Decided once.

        At most what it expected, and less if preparing it took long.
        """
        if name not in self.notes.bounds:
            seconds = max(MIN_SECONDS, READY_SHARE * self.seconds_for(name))
            self.notes.bounds[name] = min(self.minutes_for(name), round(seconds / 60, 4))
            self.save()
        return self.notes.bounds[name]

    def decide_once(self, name: str, decide: Callable[[], float]) -> int:
        """Return a number that is decided once, such as how many sentences there is time for."""
        if name not in self.notes.decided:
            self.notes.decided[name] = math.floor(decide())
            self.save()
        return self.notes.decided[name]

    def finish(self) -> None:
        """Note that everything is measured."""
        self.notes.finished = round(self.total_seconds, 3)
        self.save()

    def save(self) -> None:
        """Write the time spent and the decisions to the file."""
        self.notes.spent = round(self.spent, 3)
        write_text(self.path, self.notes.model_dump_json(indent=1, exclude_none=True) + "\n")
