"""Examples in runs of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def split_by_size(
    order: NDArray[np.int64], sizes: NDArray[np.int64], max_tokens: int, max_padded: int | None = None
) -> Iterator[NDArray[np.int64]]:
    """These examples in runs of no more than `budget` predictions, or of a single example.

    With `padded`, they take up no more places than this when all of a run are made as long as its longest.

    >>> [run.tolist() for run in cut(np.arange(5), np.array([3, 3, 3, 9, 1]), 6)]
    [[0, 1], [2], [3], [4]]
    >>> [run.tolist() for run in cut(np.arange(5), np.array([1, 1, 1, 9, 1]), 100, padded=20)]
    [[0, 1, 2], [3, 4]]
    """
    ends = np.cumsum(sizes[order])
    first, done = 0, 0
    while first < len(order):
        last = max(first + 1, int(np.searchsorted(ends, done + max_tokens, side="right")))
        if max_padded is not None:
            places = np.maximum.accumulate(sizes[order[first:last]]) * np.arange(1, last - first + 1)
            last = first + max(1, int(np.searchsorted(places, max_padded, side="right")))
        yield order[first:last]
        first, done = last, int(ends[last - 1])


def select_ranges(
    offsets: NDArray[np.int64], indices: NDArray[np.integer]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of runs that begin at these offsets, some, in this order: where they begin then, and what to take of the whole.

    >>> taken(np.array([0, 2, 2, 5]), np.array([2, 0]))
    (array([0, 3, 5]), array([2, 3, 4, 0, 1]))
    """
    lengths = np.diff(offsets)[indices]
    begun = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return begun, np.repeat(offsets[indices] - begun[:-1], lengths) + np.arange(begun[-1])
