"""Kill writing commands before each of their file operations, or let the operation fail, and run them again.

    python -m torture.crash_points [--minutes M] [COMMAND ...]

The second run must end as a run that was never disturbed, with the same files and nothing else but lock files.
"""

from __future__ import annotations

import argparse
import errno
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter

from dragoman.io import files
from torture.commands import COMMANDS, REPLACING, Finished, contents, fresh_copy, run_forked, state_digest, write_inputs

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
AUDITED = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link", "os.symlink"}
REACHED = "an operation fails now"
COMPLETE = ("--force", "exists already")  # in the messages of commands whose output is there already
FAILURES = {name: getattr(errno, name) for name in ("ENOSPC", "EIO", "EDQUOT")}


def is_left_over(path: str) -> bool:
    """Return whether a path is below a temporary name, which the next command removes."""
    return any(files.is_temporary(Path(part)) for part in Path(path).parts)


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class FileOperations:
    """Counts the file operations of this process below a directory, and calls a function before one of them."""

    directory: str
    number: int  # of the operation, from 1
    action: Callable[[], None]
    names: list[str] = field(default_factory=list)

    def install(self) -> None:
        """Watch this process from now on."""
        sys.addaudithook(self._audit)
        fsync, exchange = os.fsync, files._exchange

        def counted_fsync(descriptor: int) -> None:
            self._count("fsync", str(Path(f"/proc/self/fd/{descriptor}").readlink()))
            fsync(descriptor)

        def counted_exchange(first: Path, second: Path) -> bool:
            self._count("exchange", str(second))
            return exchange(first, second)

        os.fsync, files._exchange = counted_fsync, counted_exchange

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | bytes | os.PathLike) and isinstance(flags, int) and flags & WRITING:
                self._count("open", os.fsdecode(path))
        elif event in AUDITED and isinstance(arguments[0], str | bytes | os.PathLike):
            path, descriptor = os.fsdecode(arguments[0]), arguments[-1]
            if event in ("os.remove", "os.rmdir") and isinstance(descriptor, int) and descriptor >= 0:
                path = f"{Path(f'/proc/self/fd/{descriptor}').readlink()}/{path}"  # relative to an open directory
            self._count(event, path)

    def is_inside(self, path: str) -> bool:
        return f"{Path(path).absolute()}{os.sep}".startswith(self.directory)

    def _count(self, name: str, path: str) -> None:
        if not self.is_inside(path):
            return
        self.names.append(name)
        if len(self.names) == self.number:
            self.action()


@dataclass
class FirstOperation(FileOperations):
    """Prints the number of the first operation on a file or its temporary file, and calls the function then."""

    file: str = ""

    def _count(self, name: str, path: str) -> None:
        super()._count(name, path)
        if self.file in Path(path).name and self.is_inside(path):
            print(len(self.names), file=sys.stderr, flush=True)
            self.action()


@dataclass
class Campaign:
    """Disturbed runs of one command, and what went wrong."""

    name: str
    arguments: Sequence[str]
    directory: Path  # of all runs
    tried: int = 0
    states: set[str] = field(default_factory=set)  # digests of what was there before second runs
    problems: list[str] = field(default_factory=list)
    _expected: dict[str, object] | None = None

    @property
    def inputs(self) -> Path:
        return self.directory / "inputs"

    def start(self, run: str) -> Path:
        return fresh_copy(self.inputs, self.directory / run)

    def undisturbed(self) -> dict[str, object]:
        """Return what the command writes if nothing happens to it."""
        if self._expected is not None:
            return self._expected
        place = self.start("undisturbed")
        finished = run_forked(self.arguments, place)
        if finished.code != 0:
            raise RuntimeError(f"{self.name}: {finished.error}")
        self._expected = contents(place)
        return self._expected

    def disturb(self, number: int, action: Callable[[], None]) -> tuple[Path, Finished]:
        """Run the command with an action before one of its file operations."""
        place = self.start("disturbed")
        operations = FileOperations(f"{place}{os.sep}", number, action)
        return place, run_forked(self.arguments, place, operations.install)

    def first_operation(self, file: str) -> int:
        """Return the number of the first operation on a file of this name, or on its temporary file."""
        place = self.start("disturbed")
        finished = run_forked(self.arguments, place, FirstOperation(f"{place}{os.sep}", 0, kill, file=file).install)
        if finished.code != -signal.SIGKILL:
            raise RuntimeError(f"{self.name}: never writes {file}")
        return int(finished.last_line)

    def note(self, problem: str) -> None:
        self.problems.append(f"{self.name}: {problem}")

    def check_second_run(self, place: Path, expected: dict[str, object], what: str) -> None:
        """Run the command again: it must end as if it had never been disturbed. Equal states are tried once."""
        self.tried += 1
        if (state := state_digest(place)) in self.states:
            return
        self.states.add(state)
        second = run_forked(self.arguments, place)
        complete = second.code == 2 and any(text in second.error for text in COMPLETE)  # killed after the last step
        if second.code != 0 and not complete:
            self.note(f"{what}: the second run ended with {second.code}: {second.last_line}")
            return
        written = contents(place)
        if written != expected:
            different = sorted(name for name in {*written, *expected} if written.get(name) != expected.get(name))
            self.note(f"{what}: other contents after the second run: {', '.join(different)}")


def crash_everywhere(campaign: Campaign, numbers: Iterator[int]) -> None:
    """Kill the command before each of its file operations."""
    expected = campaign.undisturbed()
    for number in numbers:
        place, finished = campaign.disturb(number, kill)
        if finished.code != -signal.SIGKILL:
            if finished.code != 0:
                campaign.note(f"not killed at {number}, ended with {finished.code}: {finished.last_line}")
            return
        campaign.check_second_run(place, expected, f"killed before file operation {number}")


def fail_everywhere(campaign: Campaign, numbers: Iterator[int]) -> None:
    """Let each file operation fail once: one line, exit code 1, and the old state stays."""
    expected = campaign.undisturbed()
    for number in numbers:
        name = list(FAILURES)[number % len(FAILURES)]

        def fail(name: str = name) -> None:
            print(REACHED, file=sys.stderr)
            raise OSError(FAILURES[name], os.strerror(FAILURES[name]))

        place, finished = campaign.disturb(number, fail)
        if finished.code == 0:
            left = {path: content for path, content in contents(place).items() if not is_left_over(path)}
            if left != expected:
                campaign.note(f"{name} at {number}: ended with 0, and with other contents")
            if REACHED not in finished.error:
                return
            campaign.tried += 1
            continue
        what = f"{name} at file operation {number}"
        if finished.code != 1 or "Traceback" in finished.error or "internal error" in finished.error:
            campaign.note(f"{what}: ended with {finished.code}: {finished.last_line}")
        campaign.check_second_run(place, expected, what)


KINDS = {"crash": crash_everywhere, "failure": fail_everywhere}


def campaigns(directory: Path, names: Sequence[str]) -> Iterator[Campaign]:
    """Yield a campaign for each command, and for those with --force one that replaces another model."""
    write_inputs(directory / "inputs")
    old = directory / "old"
    fresh_copy(directory / "inputs", old / "inputs")
    (old / "inputs" / "second").rename(old / "inputs" / "out")
    fresh_copy(directory / "inputs" / "second", old / "inputs" / "second")
    for name in names:
        yield Campaign(name, COMMANDS[name], directory)
        if name in REPLACING and name not in ("align", "lab"):
            yield Campaign(f"{name} --force", (*COMMANDS[name], "--force"), old)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", default=list(COMMANDS), help="commands to try, by default all")
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after this time")
    options = parser.parse_args()
    end, points, problems = perf_counter() + 60 * options.minutes, 0, list[str]()
    with tempfile.TemporaryDirectory() as directory:
        for campaign in campaigns(Path(directory), options.commands):
            for kind, run in KINDS.items():
                before = campaign.tried
                run(campaign, _until(end))
                counts = f"{campaign.tried - before} points, {len(campaign.states)} different states so far"
                print(f"{campaign.name}: {kind}: {counts}", flush=True)
                points += campaign.tried - before
            for problem in campaign.problems:
                print(f"  {problem}", flush=True)
            problems += campaign.problems
    print(f"{points:,} points, {len(problems)} problems")
    return 1 if problems else 0


def _until(end: float) -> Iterator[int]:
    number = 0
    while perf_counter() < end:
        number += 1
        yield number


if __name__ == "__main__":
    sys.exit(main())
