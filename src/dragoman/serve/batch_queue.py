"""Where requests wait: those that arrive together and ask for the same are answered together, by one worker.

The models need all of the processor's cores for one batch, so there is one worker, and the rest waits. What waits too
long is refused and not begun any more; what takes too long is given up once nobody waits for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, TypeVar

from dragoman.serve.errors import queue_full, timed_out

GATHER_SECONDS = 0.005  # seconds that the first of several waits for others

# When whatever a request asks for must be there, by the loop's clock; a request may come to the desk several times.
DEADLINE: ContextVar[float | None] = ContextVar("DEADLINE", default=None)
Done = TypeVar("Done")
IsNeeded = Callable[[], bool]  # whether anybody waits still: long work asks now and then
Work = Callable[[list[Any], IsNeeded], Sequence[Any]]  # answers to some questions, in their order


class WorkCancelled(Exception):  # noqa: N818  (nothing is wrong)
    """Raised by work that nobody waits for any more."""


def cancellation_check(is_needed: IsNeeded) -> Callable[[], None]:
    """To be called by long work at every step: it ends when nobody waits for it."""

    def check() -> None:
        if not is_needed():
            raise WorkCancelled

    return check


@dataclass(eq=False)
class Job:
    """What somebody waits for."""

    key: Hashable  # errands of one key are done together
    items: list[Any]
    work: Work
    results: Future[Sequence[Any]] = field(default_factory=Future)
    is_needed: bool = True


class BatchQueue:
    """One worker, and those who wait for it."""

    def __init__(self, max_waiting: int, seconds: float, max_batch: int = 64):
        self.most, self.seconds, self.together = max_waiting, seconds, max_batch
        self._waiting: deque[Job] = deque()
        self._change = Condition()
        self._open = True
        self.batches = 0  # how often the worker worked
        self._worker = Thread(target=copy_context().run, args=(self._run,), name="desk", daemon=True)
        self._worker.start()

    async def submit(self, key: Hashable, items: Sequence[Any], work: Work) -> Sequence[Any]:
        """The answers to some questions, by a function that may be given others' of the same key as well."""
        errand = Job(key, list(items), work)
        with self._change:
            if len(self._waiting) >= self.most:
                raise queue_full(len(self._waiting))
            self._waiting.append(errand)
            self._change.notify()
        try:
            return await asyncio.wait_for(asyncio.wrap_future(errand.results), self._remaining_seconds())
        except TimeoutError:
            raise timed_out(self.seconds) from None
        finally:
            self._abandon(errand)

    def _remaining_seconds(self) -> float:
        """Seconds that an answer may take."""
        until = DEADLINE.get()
        return self.seconds if until is None else max(0.0, until - asyncio.get_running_loop().time())

    async def run(self, work: Callable[[], Done]) -> Done:
        """What one function gives, done for itself."""
        return await self.run_cancellable(lambda _: work())

    async def run_cancellable(self, work: Callable[[IsNeeded], Done]) -> Done:
        """The same for one that takes long, and asks now and then whether anybody waits."""
        answers: Sequence[Done] = await self.submit(object(), [None], lambda _, wanted: [work(wanted)])
        return answers[0]

    @property
    def waiting(self) -> int:
        """How many wait."""
        return len(self._waiting)

    @property
    def is_alive(self) -> bool:
        return self._worker.is_alive()

    def close(self) -> None:
        with self._change:
            self._open = False
            self._change.notify()
        self._worker.join(timeout=self.seconds)

    def _abandon(self, errand: Job) -> None:
        """Whoever has gone does not wait any more."""
        errand.is_needed = False
        with self._change:
            if errand in self._waiting:
                self._waiting.remove(errand)

    # -- the worker ----------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while self._open:
            self._process(self._next_batch())

    def _next_batch(self) -> list[Job]:
        """The first that waits, and those that can be done with it; none if all have gone, or the desk is closed."""
        with self._change:
            if not self._waiting:  # who waited while others were answered has waited enough
                self._change.wait_for(lambda: self._waiting or not self._open)
                self._change.wait_for(
                    lambda: len(self._waiting) >= self.together or not self._open, timeout=GATHER_SECONDS
                )
            if not self._waiting:
                return []
            first = self._waiting.popleft()
            taken, size = [first], len(first.items)
            for other in list(self._waiting):
                if other.key == first.key and size + len(other.items) <= self.together:
                    self._waiting.remove(other)
                    taken.append(other)
                    size += len(other.items)
            return taken

    def _process(self, some: Sequence[Job]) -> None:
        """Answer all at once; if that fails, one by one, so that nobody pays for what another asked."""
        begun = [errand for errand in some if errand.results.set_running_or_notify_cancel()]
        if not begun:
            return
        self.batches += 1
        try:
            answers = self._run_jobs(begun)
        except Exception as error:
            if len(begun) == 1 or isinstance(error, WorkCancelled):
                for errand in begun:
                    errand.results.set_exception(error)
                return
            for errand in begun:
                self._process_single(errand)
            return
        for errand, own in zip(begun, answers, strict=True):
            errand.results.set_result(own)

    def _process_single(self, errand: Job) -> None:
        try:
            [own] = self._run_jobs([errand])
            errand.results.set_result(own)
        except Exception as error:
            errand.results.set_exception(error)

    def _run_jobs(self, some: Sequence[Job]) -> list[Sequence[Any]]:
        """The answers for each errand."""
        questions = [question for errand in some for question in errand.items]
        answers = iter(some[0].work(questions, lambda: self._open and any(errand.is_needed for errand in some)))
        return [[next(answers) for _ in errand.items] for errand in some]
