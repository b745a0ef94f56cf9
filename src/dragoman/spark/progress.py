"""Messages while Spark works."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter
from typing import TYPE_CHECKING
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark import StatusTracker
    from pyspark.sql import SparkSession

SECONDS = 10.0  # between two messages
Report = Callable[[str], None]


def no_report(message: str) -> None:
    """Ignore a message."""


@contextmanager
def progress(spark: SparkSession, name: str, report: Report, seconds: float = SECONDS) -> Iterator[None]:
    """Report how many tasks are done every few seconds during a `with` block, and the time at its end."""
    context = spark.sparkContext
    group, done, start = f"dragoman-{uuid4().hex}", Event(), perf_counter()
    context.setJobGroup(group, name)
    tracker = context.statusTracker()

    def watch() -> None:
        while not done.wait(seconds):
            completed, total = count_tasks(tracker, group)
            if total:
                report(f"{name}: {completed:,} of {total:,} tasks, {perf_counter() - start:.0f} s")

    watcher = Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()
    report(f"{name}: {perf_counter() - start:.1f} s")


def count_tasks(tracker: StatusTracker, group: str) -> tuple[int, int]:
    """Return how many tasks of a job group are completed, and how many are in stages that have begun."""
    jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(group)))
    stages = {stage for job in jobs for stage in job.stageIds}
    known = [counts for counts in map(tracker.getStageInfo, stages) if counts is not None]
    # A stage whose result exists already is listed as well, but never begins.
    begun = [counts for counts in known if counts.numActiveTasks + counts.numCompletedTasks + counts.numFailedTasks]
    return sum(counts.numCompletedTasks for counts in begun), sum(counts.numTasks for counts in begun)
