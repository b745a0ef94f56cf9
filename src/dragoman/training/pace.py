"""How training keeps to a time limit, and remains reproducible.

The learning rate follows the fraction of training that is done. With a time limit, this fraction depends on how many
updates there is time for, which is decided again and again as training proceeds. Every decision is stored before it is
used, and the clock has no other influence: a training run that was killed repeats the stored decisions, so that it
takes the same steps, whatever the speed of the machine.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.io.files import append_line, write_text
from dragoman.io.storage import saving_run

if TYPE_CHECKING:
    from dragoman.training.distributed import Communicator

DECISION_INTERVAL = 0.05  # of the updates that are left: the next decision is made after so many, or earlier
RECENT_WEIGHT = 0.5  # of the time per update since the last decision, in the estimate


@dataclass(frozen=True)
class Pace:
    """A decision on how many updates training has."""

    update: int = 0  # at which it was made
    fraction: float = 0.0  # of training that was done then
    end: int | None = None  # the update after which training ends; None: not decided yet
    next_update: int = 1  # at which the next decision is made
    seconds: float = 0.0  # that training had taken
    update_seconds: float = 0.0  # time per update, without evaluations
    evaluation_seconds: float = 0.0  # time per evaluation
    plateau: bool = False  # the dev loss had stopped improving, so the cooldown began

    def fraction_at(self, update: int) -> float:
        """Return the fraction of training that is done before an update.

        >>> pace = Pace(update=100, fraction=0.5, end=500)
        >>> pace.fraction_at(100), pace.fraction_at(300), pace.fraction_at(500)
        (0.5, 0.75, 1.0)
        """
        if self.end is None:
            return self.fraction
        if update >= self.end:
            return 1.0
        return self.fraction + (1 - self.fraction) * (update - self.update) / (self.end - self.update)


@dataclass(frozen=True)
class TimeReserve:
    """The part of a time limit that is kept for what follows training, such as translating the dev text."""

    predictions: float = 0.0  # it takes as long as training on this many predictions,
    seconds: float = 0.0  # and this much longer,
    max_share: float = 1.0  # but at most this share of the limit,
    preparation: float = 0.0  # and these seconds in any case

    def within(self, limit: float, prediction_seconds: float) -> float:
        """Return the seconds to keep, if training takes this many per prediction.

        >>> TimeReserve(predictions=1000, max_share=0.1).within(limit=60, prediction_seconds=0.002)
        2.0
        """
        return self._within_share(limit, prediction_seconds) + self.preparation

    def _within_share(self, limit: float, prediction_seconds: float) -> float:
        return min(self._needed(prediction_seconds), self.max_share * limit)

    def share_within(self, limit: float, prediction_seconds: float) -> float:
        """Return the share of the work that there is time for, after the preparation."""
        needed = self._needed(prediction_seconds)
        return self._within_share(limit, prediction_seconds) / needed if needed else 1.0

    def _needed(self, prediction_seconds: float) -> float:
        return self.seconds + self.predictions * prediction_seconds


class PaceLog:
    """The decisions of a training run: in memory, and in a file with one line of JSON each."""

    def __init__(self, path: Path | None = None, last_update: int | None = None):
        """Read the decisions of a file, if it exists; only those up to `last_update`, if that is given."""
        self.path = path
        self._decisions: dict[tuple[int, bool], Pace] = {}
        lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else []
        for line in lines:
            try:
                pace = Pace(**json.loads(line))
            except (ValueError, TypeError):
                break  # a line that was not written completely was not used
            if last_update is None or pace.update <= last_update:
                self._decisions[pace.update, pace.plateau] = pace
        if path is not None and lines:
            write_text(path, "".join(f"{json.dumps(asdict(pace))}\n" for pace in self._decisions.values()))

    @classmethod
    def shared(cls, path: Path, processes: Communicator) -> PaceLog:
        """Return a log with the decisions of a file, which only process 0 reads and writes."""
        log = cls(path if processes.is_main else None)
        for values in processes.from_main(lambda: [asdict(pace) for pace in log._decisions.values()]):
            pace = Pace(**values)
            log._decisions[pace.update, pace.plateau] = pace
        return log

    def find(self, update: int, *, plateau: bool = False) -> Pace | None:
        """Return the decision that was made at an update."""
        return self._decisions.get((update, plateau))

    def append(self, pace: Pace) -> None:
        """Store a decision, on disk before this returns."""
        self._decisions[pace.update, pace.plateau] = pace
        if self.path is not None:
            with saving_run(self.path.parent):
                append_line(self.path, json.dumps(asdict(pace)), synchronise=True)


class PaceKeeper:
    """Measures time, and decides how many updates there is time for.

    Args:
        clock: returns seconds.
        log: earlier decisions, which are made again, and where new ones are stored.
        limit: seconds for everything; None: no time limit, so that only plateaus are decided on.
        check_every: updates between evaluations.
        elapsed: seconds of the limit that have been used.
        reserve: what to keep of the limit for the time after training.
        predictions: per update.
        evaluation: an evaluation takes as long as training on this many predictions; used until one is measured.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        log: PaceLog,
        limit: float | None,
        check_every: int,
        elapsed: float = 0.0,
        reserve: TimeReserve = TimeReserve(),
        predictions: float = 1.0,
        evaluation: float = 0.0,
    ):
        self._clock, self._log, self._limit, self._check_every = clock, log, limit, check_every
        self._reserve, self._predictions, self._evaluation = reserve, predictions, evaluation
        self._offset = elapsed - clock()
        self._start, self._start_update = elapsed, -1  # of the measurement of time per update
        self._evaluating = 0.0  # seconds of evaluations since then
        self._evaluation_seconds = 0.0  # of the last evaluation

    @property
    def seconds(self) -> float:
        """Seconds that training has taken."""
        return self._clock() + self._offset

    def evaluation_ended(self, seconds: float) -> None:
        """Note how long an evaluation took, so that it is not counted as the time of updates."""
        self._evaluating += seconds
        self._evaluation_seconds = seconds

    def decide(self, update: int, pace: Pace) -> Pace:
        """Return the pace from this update on: the same one, or a new decision if one is due."""
        if self._start_update < 0:
            self._start_update = update - 1
        if self._limit is None or update < pace.next_update:
            return pace
        stored = self._log.find(update, plateau=pace.plateau)
        if stored is None:
            stored = self._decide_now(update, pace, self._limit)
            self._log.append(stored)
        else:
            self._offset += stored.seconds - self.seconds
        self._start, self._start_update, self._evaluating = self.seconds, update, 0.0
        return stored

    def _decide_now(self, update: int, pace: Pace, limit: float) -> Pace:
        seconds = self.seconds
        recent = max(1e-6, (seconds - self._start - self._evaluating) / max(1, update - self._start_update))
        known = pace.update_seconds
        update_seconds = RECENT_WEIGHT * recent + (1 - RECENT_WEIGHT) * known if known else recent
        prediction_seconds = update_seconds / self._predictions
        estimate = pace.evaluation_seconds or self._evaluation * prediction_seconds
        evaluation_seconds = self._evaluation_seconds or estimate
        reserved = self._reserve.within(limit, prediction_seconds)
        time_left = limit - reserved - seconds - evaluation_seconds  # the last evaluation
        left = math.floor(max(0.0, time_left) / (update_seconds + evaluation_seconds / self._check_every))
        end = update + left
        if pace.plateau and pace.end is not None:
            end = max(update, min(end, pace.end))
        return Pace(
            update=update,
            fraction=pace.fraction_at(update),
            end=end,
            next_update=update + max(1, min(math.floor(DECISION_INTERVAL * left), 2 * (update - pace.update))),
            seconds=round(seconds, 3),
            update_seconds=update_seconds,
            evaluation_seconds=evaluation_seconds,
            plateau=pace.plateau,
        )

    def start_cooldown(self, update: int, pace: Pace, cooldown: float) -> Pace:
        """Return the pace of a cooldown that starts now, because the dev loss has stopped improving.

        It takes the same share of all updates as a cooldown at the end, or fewer if there is no time for them.
        """
        stored = self._log.find(update, plateau=True)
        if stored is None:
            end = update + math.ceil(update * cooldown / (1 - cooldown))
            if pace.end is not None:
                end = min(end, pace.end)
            stored = replace(pace, update=update, fraction=1 - cooldown, end=end, plateau=True)
            self._log.append(stored)
        return stored
