"""Progress of several runs: a table that changes on a terminal, plain lines otherwise."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from dragoman.cli.errors import Terminated
from dragoman.cli.messages import info
from dragoman.cli.progress import REPORT_INTERVAL, format_perplexity

if TYPE_CHECKING:
    from rich.table import Table

    from dragoman.experiments.run_pool import PoolStatus, RunCallbacks, RunStatus

STEPS = {"train": "training", "dev": "evaluating the dev text", "test": "evaluating the test text"}


@contextmanager
def run_callbacks(command: str) -> Iterator[RunCallbacks]:
    """Yield callbacks that show the progress, and say how to continue if the command is interrupted."""
    from dragoman.experiments.run_pool import RunCallbacks

    try:
        if not sys.stderr.isatty():
            yield RunCallbacks(info, _Lines())
            return
        from rich.console import Console
        from rich.live import Live

        console = Console(stderr=True, highlight=False)
        with Live(console=console, transient=True, auto_refresh=False) as live:
            yield RunCallbacks(console.print, lambda status: live.update(status_table(status), refresh=True))
    except (KeyboardInterrupt, Terminated):
        info(f"{command}: all runs are stopped; run the same command again to continue them")
        raise


class _Lines:
    """Prints the status from time to time."""

    def __init__(self) -> None:
        self.last = monotonic()

    def __call__(self, status: PoolStatus) -> None:
        if monotonic() - self.last >= REPORT_INTERVAL:
            self.last = monotonic()
            info("; ".join([describe_status(status), *(f"{run.name}: {describe_run(run)}" for run in status.running)]))


def status_table(status: PoolStatus) -> Table:
    """Return a line for each run that is running, and one for all."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for run in status.running:
        table.add_row(Text(run.name), Text(describe_run(run)))
    table.add_row(Text("all"), Text(describe_status(status)))
    return table


def describe_run(run: RunStatus) -> str:
    """Return what a run is doing.

    >>> from dragoman.experiments.run_pool import RunStatus
    >>> describe_run(RunStatus("seed=1", "train", seconds=90, epochs=2, dev_loss=4.5))
    'training, 2 epochs, dev perplexity 90.02, 1.5 minutes'
    """
    epochs = [] if run.epochs is None else [f"{run.epochs} epoch{'s' * (run.epochs != 1)}"]
    loss = [] if run.dev_loss is None else [f"dev perplexity {format_perplexity(run.dev_loss)}"]
    return ", ".join([STEPS[run.step], *epochs, *loss, f"{run.seconds / 60:.1f} minutes"])


def describe_status(status: PoolStatus) -> str:
    """Return a line about all runs.

    >>> from dragoman.experiments.run_pool import PoolStatus
    >>> describe_status(PoolStatus([], finished=3, failed=1, total=6, seconds_left=150))
    '3 of 6 finished, 1 failed, about 3 minutes left'
    """
    of_all = "" if status.total is None else f" of {status.total}"
    failed = [f"{status.failed} failed"] if status.failed else []
    minutes = None if status.seconds_left is None else math.ceil(status.seconds_left / 60)
    left = "" if minutes is None else f"about {minutes} minute{'s' * (minutes != 1)} left"
    parts = [f"{status.finished}{of_all} finished", *failed, left, status.note]
    return ", ".join(part for part in parts if part)
