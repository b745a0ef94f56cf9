"""What can go wrong, and the exit code that says so."""

from __future__ import annotations


class DragomanError(Exception):
    """Something failed while running (exit code 1). The message is one line for a person."""

    exit_code = 1


class DataError(DragomanError):
    """Bad usage or bad data (exit code 2): the message names the place and the way out."""

    exit_code = 2


def at(source: str, line: int, problem: str) -> DataError:
    """An error in line `line` (counted from 1) of `source`."""
    return DataError(f"{source}:{line}: {problem}")
