"""Divides the time of an experiment among the parts that are still to be done.

Each part gets its share of the time that is left when it starts: time that a part does not need goes to the parts after
it, and a part that takes too long takes from them. Decisions are saved, so that an experiment that was stopped
continues with them.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TypedDict

from dragoman.core.errors import DataError
from dragoman.io.storage import write_text

NOTES_FILE = "time.json"
TRAINING_SHARE = 0.85  # of a model's time; the rest is for preparing, saving and measuring it
READY_SHARE = 0.93  # of the time that a model has left once it is ready to be trained
MIN_SECONDS = 0.3  # of training: a few steps
REPORT_SHARE = 0.03  # of all the time, reserved for the report


class TimeNotes(TypedDict, total=False):
    """What is saved in `time.json`."""

    spent: float  # seconds of all runs
    minutes: dict[str, float]  # expected minutes of training per part
    bounds: dict[str, float]  # minutes of training per part, once it was ready
    decided: dict[str, int]  # other decisions
    finished: float  # seconds when everything was measured


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
        self.notes = _read_notes(self.path)
        self._earlier = self.notes["spent"]

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
        return self.notes.get("finished", self.spent)

    def seconds_for(self, name: str) -> float:
        """Return what a part may take now: its share of what is left, among the parts that have not started."""
        started = self.notes["minutes"]
        waiting = {part: weight for part, weight in self.weights.items() if part == name or part not in started}
        return share_time(self.left, waiting)[name]

    def minutes_for(self, name: str) -> float:
        """Return the minutes of training that a model can expect. Decided once: its size may depend on it."""
        if name not in self.notes["minutes"]:
            seconds = max(MIN_SECONDS, TRAINING_SHARE * self.seconds_for(name))
            self.notes["minutes"][name] = round(seconds / 60, 4)
            self.save()
        return self.notes["minutes"][name]

    def minutes_left_for(self, name: str) -> float:
        """Return the minutes of training for a model that is ready. Decided once.

        At most what it expected, and less if preparing it took long.
        """
        if name not in self.notes["bounds"]:
            seconds = max(MIN_SECONDS, READY_SHARE * self.seconds_for(name))
            self.notes["bounds"][name] = min(self.minutes_for(name), round(seconds / 60, 4))
            self.save()
        return self.notes["bounds"][name]

    def decide_once(self, name: str, decide: Callable[[], float]) -> int:
        """Return a number that is decided once, such as how many sentences there is time for."""
        if name not in self.notes["decided"]:
            self.notes["decided"][name] = math.floor(decide())
            self.save()
        return self.notes["decided"][name]

    def finish(self) -> None:
        """Note that everything is measured."""
        self.notes.setdefault("finished", round(self.spent, 3))
        self.save()

    def save(self) -> None:
        """Write the time spent and the decisions to the file."""
        self.notes["spent"] = round(self.spent, 3)
        write_text(self.path, json.dumps(self.notes, indent=1) + "\n")


def _read_notes(path: Path) -> TimeNotes:
    try:
        saved = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        notes = TimeNotes(
            spent=_finite(saved.get("spent", 0.0)),
            minutes={name: _finite(value) for name, value in saved.get("minutes", {}).items()},
            bounds={name: _finite(value) for name, value in saved.get("bounds", {}).items()},
            decided={name: int(_finite(value)) for name, value in saved.get("decided", {}).items()},
        )
        if "finished" in saved:
            notes["finished"] = _finite(saved["finished"])
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: damaged; delete it, and time is divided again") from None
    return notes


def _finite(value: object) -> float:
    number = float(value)  # type: ignore[arg-type]  # anything: a TypeError is caught
    if not math.isfinite(number):
        raise ValueError
    return number
