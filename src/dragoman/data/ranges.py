"""Index arithmetic for variable-length items stored one after another in a flat array."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def offsets_of(lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return the start of each item, and the end of the last one.  # (items + 1,)

    >>> offsets_of(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def concatenate_ranges(starts: NDArray[np.integer], lengths: NDArray[np.integer]) -> NDArray[np.int64]:
    """Return `lengths[i]` consecutive numbers from `starts[i]` on, for each i.

    >>> concatenate_ranges(np.array([0, 10]), np.array([2, 3])).tolist()
    [0, 1, 10, 11, 12]
    """
    offsets = offsets_of(lengths)
    return np.repeat(starts - offsets[:-1], lengths) + np.arange(offsets[-1])


def select_ranges(
    offsets: NDArray[np.int64], indices: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Select items by index. Returns the offsets of the selection and the positions to copy from the flat array.

    >>> select_ranges(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    lengths = np.diff(offsets)[indices]
    return offsets_of(lengths), concatenate_ranges(offsets[indices], lengths)


def sum_ranges(offsets: NDArray[np.integer], values: NDArray[np.generic]) -> NDArray[np.float64]:
    """Sum the values of each item; the first value is that at `offsets[0]`.  # (items,)

    >>> sum_ranges(np.array([4, 6, 6, 7]), np.array([1, 2, 3])).tolist()
    [3.0, 0.0, 3.0]
    """
    sums = np.zeros(len(offsets) - 1)
    filled = offsets[:-1] < offsets[1:]
    if filled.any():
        sums[filled] = np.add.reduceat(values, offsets[:-1][filled] - offsets[0], dtype=np.float64)
    return sums


def split_by_size(
    order: NDArray[np.int64], sizes: NDArray[np.int64], max_tokens: int, max_padded: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """Split examples into batches of at most `max_tokens` tokens. A longer example is a batch by itself.

    With `max_padded`, a batch has at most that many positions after padding to its longest example.

    >>> [batch.tolist() for batch in split_by_size(np.arange(5), np.array([3, 3, 3, 9, 1]), 6)]
    [[0, 1], [2], [3], [4]]
    >>> [batch.tolist() for batch in split_by_size(np.arange(5), np.array([1, 1, 1, 9, 1]), 100, max_padded=20)]
    [[0, 1, 2], [3, 4]]
    """
    ends = np.cumsum(sizes[order])
    first, done = 0, 0
    while first < len(order):
        last = max(first + 1, int(np.searchsorted(ends, done + max_tokens, side="right")))
        if max_padded is not None:
            positions = np.maximum.accumulate(sizes[order[first:last]]) * np.arange(1, last - first + 1)
            last = first + max(1, int(np.searchsorted(positions, max_padded, side="right")))
        yield order[first:last]
        first, done = last, int(ends[last - 1])
