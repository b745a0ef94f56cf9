"""Arrays in temporary files, for data larger than memory: appended to at the end, and read in ranges."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dragoman.core.errors import DragomanError

SMALL_COUNTS = 255  # and larger ones are stored elsewhere


class ArrayFile:
    """Numbers of one type in a file."""

    def __init__(self, path: Path, dtype: DTypeLike):
        self.path, self.dtype, self._size = path, np.dtype(dtype), 0
        self._file = path.open("w+b", buffering=0)

    def __len__(self) -> int:
        return self._size

    def append(self, values: NDArray[Any]) -> None:
        """Write values to the end, converted to the type of the file."""
        data = np.ascontiguousarray(values, self.dtype)
        with _writing_errors(self.path):
            write_all(self._file.fileno(), data, self._size * self.dtype.itemsize)
        self._size += len(values)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Return the values from `start` to `stop`."""
        return read_range(self._file.fileno(), self.dtype, start * self.dtype.itemsize, stop - start)

    def search(self, value: int) -> int:
        """Return the position of the first number that is not below `value`, in a file of ascending numbers."""
        low, high = 0, self._size
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if self.read(middle, middle + 1)[0] < value else (low, middle)
        return low

    def delete(self) -> None:
        """Remove the file and free its space."""
        self._file.close()
        self.path.unlink(missing_ok=True)


class CountFile:
    """Counts of any size in a file: most are small and take one byte."""

    def __init__(self, path: Path):
        self._counts = ArrayFile(path, np.uint8)
        self._positions = ArrayFile(path.with_name(f"{path.name}-positions"), np.int64)  # of large counts
        self._large = ArrayFile(path.with_name(f"{path.name}-large"), np.int64)

    def __len__(self) -> int:
        return len(self._counts)

    def append(self, counts: NDArray[np.integer]) -> None:
        """Write counts to the end."""
        large = np.flatnonzero(counts >= SMALL_COUNTS)
        if len(large):
            self._positions.append(large + len(self))
            self._large.append(counts[large])
        self._counts.append(np.minimum(counts, SMALL_COUNTS))

    def read(self, start: int, stop: int) -> NDArray[np.integer]:
        """Return counts in 8 bits if they suffice, otherwise in 64."""
        counts = self._counts.read(start, stop)
        first, last = self._positions.search(start), self._positions.search(stop)
        if first == last:
            return counts
        counts = counts.astype(np.int64)
        counts[self._positions.read(first, last) - start] = self._large.read(first, last)
        return counts

    def delete(self) -> None:
        """Remove the files and free their space."""
        for file in (self._counts, self._positions, self._large):
            file.delete()


class BucketFiles:
    """Rows that are distributed to files by the number of their bucket. `columns` numbers are one row."""

    def __init__(self, directory: Path, name: str, dtype: DTypeLike, columns: int):
        self._prefix, self.dtype, self.columns = directory / name, np.dtype(dtype), columns
        self._sizes: dict[int, int] = {}  # rows by bucket

    def append(self, rows: NDArray[Any], ends: NDArray[np.int64]) -> None:
        """Write rows that are sorted by bucket; those of bucket b end at `ends[b]`."""
        for bucket, (first, last) in enumerate(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True)):
            if first < last:
                path = self._path(bucket)
                with _writing_errors(path), path.open("ab", buffering=0) as file:
                    write_all(file.fileno(), rows[first:last], None)
                self._sizes[bucket] = self.size(bucket) + last - first

    def size(self, bucket: int) -> int:
        """Return the number of rows of a bucket."""
        return self._sizes.get(bucket, 0)

    def read(self, bucket: int, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """Return rows of a bucket.  # (rows, columns)"""
        stop = self.size(bucket) if stop is None else stop
        if stop == start:
            return np.zeros((0, self.columns), self.dtype)
        row_bytes = self.columns * self.dtype.itemsize
        with self._path(bucket).open("rb", buffering=0) as file:
            values = read_range(file.fileno(), self.dtype, start * row_bytes, (stop - start) * self.columns)
        return values.reshape(-1, self.columns)

    def delete(self, bucket: int) -> None:
        """Remove the file of a bucket."""
        self._path(bucket).unlink(missing_ok=True)

    def _path(self, bucket: int) -> Path:
        return self._prefix.with_name(f"{self._prefix.name}-{bucket}")


@contextmanager
def _writing_errors(path: Path) -> Iterator[None]:
    """Turn errors of writing into a message that names the directory of the temporary files, not the output."""
    try:
        yield
    except OSError as error:
        problem = f"temporary files could not be written ({error.strerror or error})"
        raise DragomanError(
            f"{path.parent}: {problem}; free some space, or name another directory with --tmp"
        ) from error


def write_all(descriptor: int, values: NDArray[Any], position: int | None) -> None:
    """Write an array to an open file, at a position in bytes or at the end."""
    data = np.ascontiguousarray(values).reshape(-1).view(np.uint8).data
    while len(data):
        written = os.write(descriptor, data) if position is None else os.pwrite(descriptor, data, position)
        data, position = data[written:], None if position is None else position + written


def read_range(descriptor: int, dtype: np.dtype[Any], position: int, size: int) -> NDArray[Any]:
    """Return `size` numbers of an open file from a position in bytes on."""
    values = np.empty(size, dtype)
    data = values.view(np.uint8).data
    while len(data):
        number = os.preadv(descriptor, [data], position)
        if not number:
            raise OSError(None, "a temporary file is shorter than what was written to it")
        data, position = data[number:], position + number
    return values
