"""A queue with one worker thread that processes compatible jobs in one batch.

One batch uses all cores, so there is one worker and the other jobs wait. A job that waits too long fails and is never
started. A batch that runs too long is cancelled as soon as no client waits for any of its jobs.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Condition, Thread
from typing import Any, Generic, TypeVar

from dragoman.serve.errors import GATEWAY_TIMEOUT, RETRY_SECONDS, UNAVAILABLE, ApiError

CLOSE_SECONDS = 2.0  # how long the end of the queue waits for a batch; what computes after that ends with the process
GATHER_SECONDS = 0.005  # how long the first job of an idle queue waits for others

# The event loop's time by which the current request must be answered. One request may submit several jobs.
DEADLINE: ContextVar[float | None] = ContextVar("DEADLINE", default=None)
Item = TypeVar("Item")
Result = TypeVar("Result")
CheckNeeded = Callable[[], None]  # raises `WorkCancelled` if no client waits any more; long work calls it regularly
BatchFunction = Callable[[list[Item], CheckNeeded], Sequence[Result]]  # one result per item, in order


class WorkCancelled(Exception):  # noqa: N818  (it is not an error)
    """Raised inside work that no client waits for."""


@dataclass(eq=False)
class Job(Generic[Item, Result]):
    """Items that a client waits for. Jobs with the same key are processed together."""

    key: Hashable
    items: list[Item]
    function: BatchFunction[Item, Result]
    results: Future[list[Result]] = field(default_factory=Future)
    is_needed: bool = True


AnyJob = Job[Any, Any]  # jobs with the same key have items and results of the same types


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
        self._waiting: deque[AnyJob] = deque()
        self._changed = Condition()
        self._open = True
        self._worker = Thread(target=copy_context().run, args=(self._run_worker,), name="batch-queue", daemon=True)
        self._worker.start()

    async def submit(self, key: Hashable, items: Sequence[Item], function: BatchFunction[Item, Result]) -> list[Result]:
        """Return `function`'s results for the items. The function may receive items of other jobs with the same key."""
        job = Job(key, list(items), function)
        with self._changed:
            if len(self._waiting) >= self.max_waiting:
                message = f"the queue is full: {len(self._waiting)} requests are waiting; try again later"
                raise ApiError(message, UNAVAILABLE, {"Retry-After": str(RETRY_SECONDS)})
            self._waiting.append(job)
            self._changed.notify()
        deadline = DEADLINE.get()
        remaining = self.seconds if deadline is None else max(0.0, deadline - asyncio.get_running_loop().time())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job.results), remaining)
        except TimeoutError:
            message = f"the request took longer than {self.seconds:g} seconds; send less text per request"
            raise ApiError(message, GATEWAY_TIMEOUT) from None
        finally:
            job.is_needed = False
            with self._changed, suppress(ValueError):
                self._waiting.remove(job)

    async def run(self, function: Callable[[], Result]) -> Result:
        """Return the result of a function that is called by the worker on its own."""
        return await self.run_cancellable(lambda _: function())

    async def run_cancellable(self, function: Callable[[CheckNeeded], Result]) -> Result:
        """Like `run`, for a long function, which has to call its argument regularly."""

        def process(_: list[None], check_needed: CheckNeeded) -> list[Result]:
            return [function(check_needed)]

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
        self._worker.join(timeout=CLOSE_SECONDS)

    def _run_worker(self) -> None:
        while self._open:
            batch = [job for job in self._next_batch() if job.results.set_running_or_notify_cancel()]
            if batch:
                self.num_batches += 1
                self._process(batch)

    def _next_batch(self) -> list[AnyJob]:
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

    def _process(self, batch: list[AnyJob]) -> None:
        """Process jobs together; if that fails, one by one, so that a bad job does not fail the others."""

        def check_needed() -> None:
            if not (self._open and any(job.is_needed for job in batch)):
                raise WorkCancelled

        try:
            items = [item for job in batch for item in job.items]
            results = iter(batch[0].function(items, check_needed))
            results_by_job = [[next(results) for _ in job.items] for job in batch]
        except Exception as error:
            for job in batch:
                if len(batch) == 1 or isinstance(error, WorkCancelled):
                    job.results.set_exception(error)
                else:
                    self._process([job])
        else:
            for job, job_results in zip(batch, results_by_job, strict=True):
                job.results.set_result(job_results)
