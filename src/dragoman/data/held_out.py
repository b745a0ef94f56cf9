"""Dividing a corpus into training, development and test data without leaks.

A duplicate or near-duplicate of a training line in the development or test data makes scores too good. Therefore groups
of such lines (see `dragoman.data.near_duplicates`) are never divided. A side of sentence pairs with few different lines,
such as labels, is not compared: whole classes would be held out.
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
CLASS_SHARE, MIN_CLASS_SIZE = 0.1, 10  # of a held-out part, and lines: groups above both are too large to be drawn
MIN_DRAWN_SHARE = 0.25  # of the lines that are in smaller groups, for a side to be compared


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
    compared: tuple[int, ...]  # the sides that were compared

    @property
    def kept_together(self) -> tuple[int, int]:
        """The number of groups of several lines, and the number of lines in them."""
        sizes = np.bincount(np.delete(self.groups, self.blank))
        return int((sizes > 1).sum()), int(sizes[sizes > 1].sum())


def hold_out(
    sides: Sequence[Sequence[str]],
    size: int | None = None,
    seed: int = 1,
    similarity: float = DEFAULT_SIMILARITY,
    max_group_share: float = 1.0,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out development data. Returns the indices of the training lines and of the development lines, ascending.

    No development line has a duplicate or near-duplicate, on any side that is compared, among the training lines. Fewer
    than `size` lines are held out if that is impossible otherwise. Lines with a blank side stay in the training data.

    Args:
        sides: one text, `[lines]`, or parallel texts, `[sources, targets]`.
        size: lines to hold out. Default: `default_size`.
        seed: random seed. The same seed gives the same lines.
        similarity: see `group_duplicates`.
        max_group_share: larger groups of duplicates, relative to `size`, stay in the training data.

    >>> train, dev = hold_out([[f"line {letter}" for letter in "aabcdefghij"]], size=3)
    >>> len(train), len(dev)
    (8, 3)
    """
    sizes = [default_size(len(sides[0])) if size is None else size]
    divided = divide(sides, sizes, seed, similarity, max_group_share)
    return np.sort(np.concatenate([divided.train, divided.blank])), divided.parts[0]


def hold_out_by_equality(
    sides: Sequence[Sequence[str]], size: int | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Hold out lines that are not equal to any training line, for a text in which nearly all lines are alike.

    At most a tenth of the different lines are held out, with all of their copies, which are at most a tenth of all
    lines. Returns indices as `hold_out` does.

    Args:
        sides: one text, or parallel texts, whose lines are equal if they are on all sides.
        size: different lines to hold out, at most. Default: `default_size`.

    >>> train, dev = hold_out_by_equality([[f"file {number % 20}" for number in range(100)]])
    >>> len(train), dev.tolist()
    (90, [0, 18, 20, 38, 40, 58, 60, 78, 80, 98])
    """
    copies: dict[tuple[str, ...], list[int]] = {}
    for index, row in enumerate(zip(*sides, strict=True)):
        if all(line.strip() for line in row):
            copies.setdefault(row, []).append(index)
    count = len(sides[0])
    number = min(default_size(count) if size is None else size, len(copies) // 10)
    most = count // 10 // max(1, number)
    rows = [row for row in sorted(copies) if len(copies[row]) <= most]
    number = min(number, len(rows))
    is_dev = np.zeros(count, np.bool_)
    for i in range(number):
        is_dev[copies[rows[i * len(rows) // number]]] = True
    return np.flatnonzero(~is_dev), np.flatnonzero(is_dev)


def divide(
    sides: Sequence[Sequence[str]],
    sizes: Sequence[int],
    seed: int = 1,
    similarity: float = DEFAULT_SIMILARITY,
    max_group_share: float = 1.0,
) -> HeldOut:
    """Hold out several parts of these sizes, for example development and test data. Arguments as for `hold_out`."""
    if seed < 0:
        raise DataError(f"seed {seed}: give 0 or more")
    count = len(sides[0])
    if any(len(lines) != count for lines in sides):
        raise DataError("parallel texts need the same number of lines")
    is_blank = np.array([not all(line.strip() for line in row) for row in zip(*sides, strict=True)], np.bool_)
    filled = np.flatnonzero(~is_blank)
    compared, groups = _compare_sides(sides, filled, max(sizes, default=0), similarity)
    compared_sides = [sides[index] for index in compared]
    by_group = filled[np.argsort(groups[filled], kind="stable")]
    starts = np.flatnonzero(np.diff(groups[by_group], prepend=-1))
    members = np.split(by_group, starts[1:])  # the lines of each group
    order = np.random.default_rng(seed).permutation(len(members)) if len(filled) else np.zeros(0, np.int64)
    group_sizes = np.fromiter(map(len, members), np.int64, len(members))[order]
    leaks = np.zeros(count, np.bool_)
    while True:
        may_be_used = np.array([not leaks[members[index]].any() for index in order], np.bool_)
        chosen = _choose_groups(group_sizes, sizes, may_be_used, max_group_share)
        parts = np.where(is_blank, -1, 0)
        for number, indices in enumerate(chosen, 1):
            for index in indices:
                parts[members[order[index]]] = number
        new_leaks = find_leaks(compared_sides, parts, similarity) if similarity < 1 else np.zeros(0, np.int64)
        if not new_leaks.size:
            break
        leaks[new_leaks] = True  # near-duplicates that are not in one group: train on them
    held_out = tuple(np.flatnonzero(parts == number) for number in range(1, len(sizes) + 1))
    return HeldOut(np.flatnonzero(parts == 0), held_out, np.flatnonzero(is_blank), groups, compared)


def _compare_sides(
    sides: Sequence[Sequence[str]], filled: NDArray[np.int64], size: int, similarity: float
) -> tuple[tuple[int, ...], NDArray[np.int64]]:
    """Return the sides to compare, and the group of each line.

    All sides, unless most lines are then in groups too large to be drawn, and with one side they are not: the lines of
    the other are labels, or something like that.

    Args:
        sides: one text, or parallel texts.
        filled: indices of the lines that are not blank.
        size: lines of the largest part.
        similarity: see `group_duplicates`.
    """
    largest = max(MIN_CLASS_SIZE, CLASS_SHARE * size)

    def are_drawn(groups: NDArray[np.int64]) -> bool:
        counts = np.bincount(groups[filled])
        return bool(counts[counts <= largest].sum() >= MIN_DRAWN_SHARE * len(filled))

    groups = group_duplicates(sides, similarity)
    if len(sides) > 1 and not are_drawn(groups):
        for index, side in enumerate(sides):
            if are_drawn(groups_of_side := group_duplicates([side], similarity)):
                return (index,), groups_of_side
    return tuple(range(len(sides))), groups


def _choose_groups(
    group_sizes: NDArray[np.int64], sizes: Sequence[int], may_be_used: NDArray[np.bool_], max_group_share: float
) -> list[list[int]]:
    """Return the groups of each part: in order, as far as they fit, small ones first. One is left for training."""
    chosen: list[list[int]] = [[] for _ in sizes]
    missing, left = list(sizes), len(group_sizes) - 1
    used = ~may_be_used
    for share in (MAX_GROUP_SHARE, max_group_share):
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
