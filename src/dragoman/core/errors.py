"""Errors with their exit codes, messages that many modules share, and the check of optional dependencies."""

from __future__ import annotations

import difflib
import gzip
import shlex
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
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


def error_at_line(source: str | Path, line: int, problem: str) -> DataError:
    """Return an error in line `line` (counted from 1) of `source`."""
    return DataError(f"{source}:{line}: {problem}")


def encoding_error(text: bytes, offset: int, source: str | Path, first_line: int = 1) -> DataError:
    """Return an error about the byte at `offset`, which is NUL or not UTF-8. Columns are counted in bytes from 1."""
    line, column = first_line + text.count(b"\n", 0, offset), offset - text.rfind(b"\n", 0, offset)
    if text[offset] == 0:
        return error_at_line(source, line, f"NUL byte at column {column}; this is not a text file, or it is UTF-16")
    remedy = "convert it, for example with iconv -f LATIN1 -t UTF-8"
    return error_at_line(source, line, f"not UTF-8 (byte 0x{text[offset]:02x} at column {column}); {remedy}")


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


def shorten(text: str, length: int = 60, end: str = "…") -> str:
    """Return at most `length` characters of a text.

    >>> shorten("a long story", 8)
    'a long …'
    """
    return text if len(text) <= length else text[: length - len(end)] + end


def shell_command(words: Iterable[str], line: str | None = None) -> str:
    """Return a command as it is typed into a shell; `line` is its standard input."""
    command = shlex.join(words)
    return command if line is None else f"echo {shlex.quote(line)} | {command}"


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


def is_installed(package: str) -> bool:
    """Return whether a package can be imported, without importing it.

    >>> is_installed("dragoman"), is_installed("no_such_package")
    (True, False)
    """
    return find_spec(package) is not None


def require_extra(package: str, extra: str) -> None:
    """Raise an error that says how to install `package` if it is missing.

    >>> require_extra("no_such_package", "plot")
    Traceback (most recent call last):
    ...
    dragoman.core.errors.DataError: no_such_package is not installed; run: pip install 'dragoman[plot]'
    """
    if not is_installed(package):
        raise DataError(f"{package} is not installed; run: pip install 'dragoman[{extra}]'")
