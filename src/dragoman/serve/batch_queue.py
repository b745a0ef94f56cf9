"""A queue with one worker thread that processes compatible jobs in one batch.

One batch uses all cores, so there is one worker and the other jobs wait. A job that waits too long fails and is never
started. A batch that runs too long is cancelled as soon as no client waits for any of its jobs.
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

GATHER_SECONDS = 0.005  # how long the first job of an idle queue waits for others

# The event loop's time by which the current request must be answered. One request may submit several jobs.
DEADLINE: ContextVar[float | None] = ContextVar("DEADLINE", default=None)
Item = TypeVar("Item")
Result = TypeVar("Result")
IsNeeded = Callable[[], bool]  # whether a client still waits; long work calls it regularly
BatchFunction = Callable[[list[Item], IsNeeded], Sequence[Result]]  # one result per item, in order


class WorkCancelled(Exception):  # noqa: N818  (it is not an error)
    """Raised inside work that no client waits for."""


def cancellation_check(is_needed: IsNeeded) -> Callable[[], None]:
    """Return a function that raises `WorkCancelled` when no client waits; long work calls it at every step."""

    def check() -> None:
        if not is_needed():
            raise WorkCancelled

    return check


@dataclass(eq=False)
class Job:
    """Items that a client waits for. Jobs with the same key are processed together."""

    key: Hashable
    items: list[Any]
    function: BatchFunction[Any, Any]
    results: Future[Sequence[Any]] = field(default_factory=Future)
    is_needed: bool = True


class BatchQueue:
    """A worker thread and the jobs that wait for it."""

    def __init__(self, max_waiting: int, seconds: float, max_batch: int = 64):
        """
        Args:
            max_waiting: the number of waiting jobs; further ones are refused.
            seconds: the time after which a job fails, including its time in the queue.
            max_batch: the number of items in a batch of several jobs.
        """
        self.max_waiting, self.seconds, self.max_batch = max_waiting, seconds, max_batch
        self.num_batches = 0  # batches that the worker has started
        self._waiting: deque[Job] = deque()
        self._changed = Condition()
        self._open = True
        self._worker = Thread(target=copy_context().run, args=(self._run_worker,), name="batch-queue", daemon=True)
        self._worker.start()

    async def submit(self, key: Hashable, items: Sequence[Item], function: BatchFunction[Item, Result]) -> list[Result]:
        """Return `function`'s results for the items. The function may receive items of other jobs with the same key."""
        job = Job(key, list(items), function)
        with self._changed:
            if len(self._waiting) >= self.max_waiting:
                raise queue_full(len(self._waiting))
            self._waiting.append(job)
            self._changed.notify()
        try:
            results = await asyncio.wait_for(asyncio.wrap_future(job.results), self._remaining_seconds())
            return list(results)
        except TimeoutError:
            raise timed_out(self.seconds) from None
        finally:
            self._abandon(job)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function that is called by the worker on its own."""
        return await self.run_cancellable(lambda _: function())

    async def run_cancellable(self, function: Callable[[IsNeeded], Result]) -> Result:
        """Like `run`, for a long function, which receives a callable that says whether the client still waits."""

        def process(_: list[None], is_needed: IsNeeded) -> list[Result]:
            return [function(is_needed)]

        [result] = await self.submit(object(), [None], process)
        return result

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def is_alive(self) -> bool:
        return self._worker.is_alive()

    def close(self) -> None:
        with self._changed:
            self._open = False
            self._changed.notify()
        self._worker.join(timeout=self.seconds)

    def _remaining_seconds(self) -> float:
        deadline = DEADLINE.get()
        return self.seconds if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())

    def _abandon(self, job: Job) -> None:
        """Remove a job that is done or that no client waits for."""
        job.is_needed = False
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)

    # -- the worker thread ---------------------------------------------------------------------------------------------

    def _run_worker(self) -> None:
        while self._open:
            self._process(self._next_batch())

    def _next_batch(self) -> list[Job]:
        """Return the first waiting job and those with the same key; no job if the queue was closed."""
        with self._changed:
            if not self._waiting:  # jobs that arrived during the last batch need not wait for others
                self._changed.wait_for(lambda: self._waiting or not self._open)
                self._changed.wait_for(
                    lambda: len(self._waiting) >= self.max_batch or not self._open, timeout=GATHER_SECONDS
                )
            if not self._waiting:
                return []
            first = self._waiting.popleft()
            batch, size = [first], len(first.items)
            for job in list(self._waiting):
                if job.key == first.key and size + len(job.items) <= self.max_batch:
                    self._waiting.remove(job)
                    batch.append(job)
                    size += len(job.items)
            return batch

    def _process(self, batch: Sequence[Job]) -> None:
        """Process jobs together; if that fails, one by one, so that a bad job does not fail the others."""
        started = [job for job in batch if job.results.set_running_or_notify_cancel()]
        if not started:
            return
        self.num_batches += 1
        try:
            results = self._call(started)
        except Exception as error:
            if len(started) == 1 or isinstance(error, WorkCancelled):
                for job in started:
                    job.results.set_exception(error)
            else:
                for job in started:
                    self._process_single(job)
        else:
            for job, job_results in zip(started, results, strict=True):
                job.results.set_result(job_results)

    def _process_single(self, job: Job) -> None:
        try:
            [results] = self._call([job])
            job.results.set_result(results)
        except Exception as error:
            job.results.set_exception(error)

    def _call(self, jobs: Sequence[Job]) -> list[list[Any]]:
        """Return the results of each job from one call of their function."""
        items = [item for job in jobs for item in job.items]
        results = iter(jobs[0].function(items, lambda: self._open and any(job.is_needed for job in jobs)))
        return [[next(results) for _ in job.items] for job in jobs]
