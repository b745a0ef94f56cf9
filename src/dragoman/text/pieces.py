"""Examples in runs of a bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray


def cut(order: NDArray[np.int64], sizes: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """These examples in runs of no more than `budget` predictions, or of a single example.

    >>> [run.tolist() for run in cut(np.arange(5), np.array([3, 3, 3, 9, 1]), 6)]
    [[0, 1], [2], [3], [4]]
    """
    ends = np.cumsum(sizes[order])
    first, done = 0, 0
    while first < len(order):
        last = max(first + 1, int(np.searchsorted(ends, done + budget, side="right")))
        yield order[first:last]
        first, done = last, int(ends[last - 1])
