"""Progress of work in stages: a bar for each on a terminal, otherwise lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

from dragoman.cli.messages import info
from dragoman.cli.progress import REPORT_INTERVAL, step_bars
from dragoman.core.memory import format_bytes

if TYPE_CHECKING:
    from dragoman.ngram.disk.training import StageReport


@contextmanager
def stage_progress() -> Iterator[Callable[[StageReport], None]]:
    """Yield a callback that shows the progress of each stage."""
    with step_bars() as show:
        if show is None:
            lines = StageLines(info)
            yield lines
            lines.finish()
        else:
            yield lambda report: show(report.stage, report.done, max(report.total, report.done))


class StageLines:
    """Prints a line at the end of each stage, and from time to time during a long one."""

    def __init__(self, print_line: Callable[[str], None]):
        self.print_line = print_line
        self.last: StageReport | None = None
        self.start = self.last_line = monotonic()

    def __call__(self, report: StageReport) -> None:
        if self.last is not None and report.stage != self.last.stage:
            self.finish()
        self.last = report
        if report.done >= report.total > 0:
            self.finish()
        elif monotonic() - self.last_line > REPORT_INTERVAL:
            self._print(report)

    def finish(self) -> None:
        """Print the line of the stage that has ended."""
        if self.last is not None:
            self._print(self.last)
        self.last, self.start = None, monotonic()

    def _print(self, report: StageReport) -> None:
        done, total = (
            format_bytes(number) if report.unit == "bytes" else f"{number:,} {report.unit}"
            for number in (report.done, report.total)
        )
        of_total = f" of {total}" if report.done < report.total else ""
        files = f", temporary files {format_bytes(report.temporary)}" if report.temporary else ""
        self.print_line(f"{report.stage}: {done}{of_total}, {monotonic() - self.start:.1f} seconds{files}")
        self.last_line = monotonic()
