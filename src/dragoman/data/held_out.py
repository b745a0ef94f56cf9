"""Dividing a corpus into training, development and test data without leaks.

A duplicate or near-duplicate of a training line in the development or test data makes scores too good. Therefore groups
of such lines (see `dragoman.data.near_duplicates`) are never divided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.near_duplicates import DEFAULT_SIMILARITY, find_leaks, group_duplicates

MAX_DEFAULT_SIZE = 2_000  # lines
MAX_GROUP_SHARE = 0.05  # of a held-out part; larger groups are used only if it cannot be filled otherwise


def default_size(lines: int) -> int:
    """Return how many lines of a corpus to hold out: 5 sqrt(lines), at most a tenth, at most 2,000.

    >>> [default_size(lines) for lines in (50, 1_000, 10_000, 30_000, 1_000_000)]
    [5, 100, 500, 866, 2000]
    """
    return min(MAX_DEFAULT_SIZE, lines // 10, round(5 * math.sqrt(lines)))


@dataclass(frozen=True)
class HeldOut:
    """The lines of each part of a corpus, as indices in ascending order."""

    train: NDArray[np.int64]
    parts: tuple[NDArray[np.int64], ...]  # the held-out lines
    blank: NDArray[np.int64]  # lines with a blank side, in none of them
    groups: NDArray[np.int64]  # (lines,) the group of each line: the first one of its duplicates

    @property
    def kept_together(self) -> tuple[int, int]:
        """The number of groups of several lines, and the number of lines in them."""
        sizes = np.bincount(np.delete(self.groups, self.blank))
        return int((sizes > 1).sum()), int(sizes[sizes > 1].sum())


def hold_out(
    sides: Sequence[Sequence[str]], size: int | None = None, seed: int = 1, similarity: float = DEFAULT_SIMILARITY
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out development data. Returns the indices of the training lines and of the development lines, ascending.

    No development line has a duplicate or near-duplicate, on any side, among the training lines. Fewer than `size`
    lines are held out if that is impossible otherwise. Lines with a blank side stay in the training data.

    Args:
        sides: one text, `[lines]`, or parallel texts, `[sources, targets]`.
        size: lines to hold out. Default: `default_size`.
        seed: random seed. The same seed gives the same lines.
        similarity: see `group_duplicates`.

    >>> train, dev = hold_out([[f"line {letter}" for letter in "aabcdefghij"]], size=3)
    >>> len(train), len(dev)
    (8, 3)
    """
    divided = divide(sides, [default_size(len(sides[0])) if size is None else size], seed, similarity)
    return np.sort(np.concatenate([divided.train, divided.blank])), divided.parts[0]


def divide(
    sides: Sequence[Sequence[str]], sizes: Sequence[int], seed: int = 1, similarity: float = DEFAULT_SIMILARITY
) -> HeldOut:
    """Hold out several parts of these sizes, for example development and test data. Arguments as for `hold_out`."""
    if seed < 0:
        raise DataError(f"seed {seed}: give 0 or more")
    count = len(sides[0])
    if any(len(lines) != count for lines in sides):
        raise DataError("parallel texts need the same number of lines")
    groups = group_duplicates(sides, similarity)
    is_blank = np.array([not all(line.strip() for line in row) for row in zip(*sides, strict=True)], np.bool_)
    filled = np.flatnonzero(~is_blank)
    by_group = filled[np.argsort(groups[filled], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[by_group], prepend=-1))
    members = np.split(by_group, starts[1:])  # the lines of each group
    order = np.random.default_rng(seed).permutation(len(members)) if len(filled) else np.zeros(0, np.int64)
    group_sizes = np.fromiter(map(len, members), np.int64, len(members))[order]
    leaks = np.zeros(count, np.bool_)
    while True:
        may_be_used = np.array([not leaks[members[index]].any() for index in order], np.bool_)
        chosen = _choose_groups(group_sizes, sizes, may_be_used)
        parts = np.where(is_blank, -1, 0)
        for number, indices in enumerate(chosen, 1):
            for index in indices:
                parts[members[order[index]]] = number
        new_leaks = find_leaks(sides, parts, similarity) if similarity < 1 else np.zeros(0, np.int64)
        if not new_leaks.size:
            break
        leaks[new_leaks] = True  # near-duplicates that are not in one group: train on them
    held_out = tuple(np.flatnonzero(parts == number) for number in range(1, len(sizes) + 1))
    return HeldOut(np.flatnonzero(parts == 0), held_out, np.flatnonzero(is_blank), groups)


def _choose_groups(
    group_sizes: NDArray[np.int64], sizes: Sequence[int], may_be_used: NDArray[np.bool_]
) -> list[list[int]]:
    """Return the groups of each part: in order, as far as they fit, small ones first. One is left for training."""
    chosen: list[list[int]] = [[] for _ in sizes]
    missing, left = list(sizes), len(group_sizes) - 1
    used = ~may_be_used
    for share in (MAX_GROUP_SHARE, 1.0):
        limits = [max(1, int(share * size)) for size in sizes]
        for index, group_size in enumerate(group_sizes.tolist()):
            if not any(missing) or left <= 0:
                break
            if used[index]:
                continue
            for part, limit in enumerate(limits):
                if group_size <= min(limit, missing[part]):
                    chosen[part].append(index)
                    missing[part] -= group_size
                    used[index] = True
                    left -= 1
                    break
    return chosen
