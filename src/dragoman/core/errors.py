"""What can go wrong, and the exit code that says so."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class DragomanError(Exception):
    """Something failed while running (exit code 1). The message is one line for a person."""

    exit_code = 1


class DataError(DragomanError):
    """Bad usage or bad data (exit code 2): the message names the place and the way out."""

    exit_code = 2


def error_at_line(source: str, line: int, problem: str) -> DataError:
    """An error in line `line` (counted from 1) of `source`."""
    return DataError(f"{source}:{line}: {problem}")


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Turn the errors of reading a file into one line for a person."""
    try:
        yield
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{path}: is a directory; give a text file") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a whole gzip file ({error})") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
