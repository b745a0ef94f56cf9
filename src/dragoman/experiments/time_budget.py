"""The time that a ladder may take, shared out among what is still to be done.

Each part gets its share of what is left when it begins: what one part does not need goes to those after it, and what
one takes too much of is taken from them. What was decided is noted, so that a ladder that was stopped goes on with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter
from typing import Any

from dragoman.core.errors import DataError

NOTES = "time.json"
TRAINED = 0.85  # of a model's share, spent in training; the rest is for making it ready, saving and measuring it
READY = 0.93  # of its share by then, once it is ready to be trained
LEAST = 0.3  # seconds of training, at least: a step or a few
SPARE = 0.03  # of all the time, kept for the report


def share_time(seconds: float, weights: Mapping[str, float]) -> dict[str, float]:
    """So many seconds divided by weight; nobody gets less than none.

    >>> shared_out(90.0, {"encoder-decoder": 1, "attention": 2})
    {'encoder-decoder': 30.0, 'attention': 60.0}
    """
    whole = sum(weights.values())
    return {name: max(0.0, seconds) * weight / whole for name, weight in weights.items()}


@dataclass
class TimeBudget:
    """Minutes for everything, and the weights of those parts that take as long as they are given."""

    place: Path  # of the directory where it is noted
    minutes: float
    weights: Mapping[str, float]
    clock: Callable[[], float] = perf_counter  # seconds
    began: float | None = None  # what it showed at the beginning. Default: what it shows now
    notes: dict[str, Any] = field(init=False)  # seconds spent in earlier runs; minutes of each part; other decisions

    def __post_init__(self) -> None:
        self.began = self.clock() if self.began is None else self.began
        self.notes = {"spent": 0.0, "minutes": {}, "bounds": {}, "decided": {}, **_read(self.place / NOTES)}
        self._before = float(self.notes["spent"])

    @property
    def spent(self) -> float:
        """Seconds, in all runs; of a run that was killed, as far as it was noted."""
        assert self.began is not None, "set above"
        return self._before + self.clock() - self.began

    @property
    def left(self) -> float:
        """Seconds until the report has to be written."""
        return 60 * self.minutes * (1 - SPARE) - self.spent

    def seconds_for(self, name: str) -> float:
        """What a part may take now: its share of what is left, beside the parts that have not begun."""
        waiting = {part: own for part, own in self.weights.items() if part == name or part not in self.notes["minutes"]}
        return share_time(self.left, waiting)[name]

    def minutes_for(self, name: str) -> float:
        """Minutes of training that a model can expect, decided once: its size may depend on it."""
        if name not in self.notes["minutes"]:
            seconds = max(LEAST, TRAINED * self.seconds_for(name))
            self.notes["minutes"][name] = round(seconds / 60, 4)
            self.save()
        return float(self.notes["minutes"][name])

    def bound_for(self, name: str) -> float:
        """Minutes of training for a model that is ready, decided once: no more than it expected, and less if making it
        ready took long."""
        if name not in self.notes["bounds"]:
            seconds = max(LEAST, READY * self.seconds_for(name))
            self.notes["bounds"][name] = min(self.minutes_for(name), round(seconds / 60, 4))
            self.save()
        return float(self.notes["bounds"][name])

    def decide_once(self, name: str, decide: Callable[[], float]) -> int:
        """A number that is decided once, such as how many sentences there is time for."""
        if name not in self.notes["decided"]:
            self.notes["decided"][name] = math.floor(decide())
            self.save()
        return int(self.notes["decided"][name])

    @property
    def total_seconds(self) -> float:
        """Seconds until all was measured; what later runs take to tell it again does not count."""
        return float(self.notes.get("finished", self.spent))

    def finish(self) -> None:
        """All is measured."""
        self.notes.setdefault("finished", round(self.spent, 3))
        self.save()

    def save(self) -> None:
        """Write down what was spent and decided."""
        from dragoman.io.storage import atomic_file

        self.notes["spent"] = round(self.spent, 3)
        with atomic_file(self.place / NOTES) as temporary:
            temporary.write_text(json.dumps(self.notes, indent=1) + "\n", encoding="utf-8")


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        if not all(math.isfinite(float(found.get(number, 0.0))) for number in ("spent", "finished")):
            raise ValueError
        parts = [found.get(part, {}) for part in ("minutes", "bounds", "decided")]
        if not all(math.isfinite(float(number)) for part in parts for number in part.values()):
            raise ValueError
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise DataError(f"{path}: damaged; delete it, and time is shared out anew") from None
    return found
