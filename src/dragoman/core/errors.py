"""Errors with their exit codes, and the parts of their messages that many modules share."""

from __future__ import annotations

import difflib
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path


class DragomanError(Exception):
    """A failure while running (exit code 1). The message is one line for the user.

    >>> raise DragomanError("model: could not be written (No space left on device); nothing was changed")
    Traceback (most recent call last):
        ...
    dragoman.core.errors.DragomanError: model: could not be written (No space left on device); nothing was changed
    """

    exit_code = 1


class DataError(DragomanError):
    """Wrong usage or wrong data (exit code 2). The message names the place and a remedy.

    >>> from dragoman import Corpus
    >>> try:
    ...     Corpus.read("missing.txt")
    ... except DataError as error:
    ...     print(error)
    missing.txt: no such file
    """

    exit_code = 2


def error_at_line(source: str, line: int, problem: str) -> DataError:
    """Return an error in line `line` (counted from 1) of `source`."""
    return DataError(f"{source}:{line}: {problem}")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Convert errors of reading a file to a `DataError` with a message of one line."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory; give a text file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a complete gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None


def closest_match(name: str, choices: Iterable[str]) -> str | None:
    """Return the choice that is spelled most like `name`, or None if none is similar."""
    return next(iter(difflib.get_close_matches(name, list(choices), n=1)), None)


def did_you_mean(name: str, choices: Iterable[str], otherwise: str = "choose from") -> str:
    """Return a hint for a misspelled name: the closest choice or, if none is similar, all of them.

    >>> did_you_mean("positon", ["order", "position"])
    "did you mean 'position'?"
    >>> did_you_mean("weekday", ["order", "position"])
    'choose from order, position'
    """
    choices = list(choices)
    match = closest_match(name, choices)
    return f"{otherwise} {', '.join(choices)}" if match is None else f"did you mean {match!r}?"
