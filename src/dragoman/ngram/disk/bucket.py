"""Counting the n-grams that begin with some words, from all records that begin with them.

Sorted records have equal n-grams of all orders one after the other. For the smoothing of lower orders, the different
words before each n-gram are found as well: they are the n-grams of the next order, in the order of their suffixes.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.data.ranges import offsets_of
from dragoman.data.vocabulary import START
from dragoman.ngram.disk.records import RecordFormat, Records, sort_records


def bytes_per_record(order: int, row_bytes: int) -> float:
    """Return the measured memory of counting, per record.

    This is for the record twice and its key, the word, count, children and left neighbours of each order.
    """
    return 28 + 23 * order + 2.5 * row_bytes


class BucketLevel(NamedTuple):
    """The n-grams of one order in a bucket, sorted."""

    word: NDArray[np.int32]  # (n-grams,) their last words
    counts: NDArray[np.integer]  # (n-grams,)
    children: NDArray[np.integer]  # (n-grams,) the n-grams of the next order that continue each
    left_count: NDArray[np.integer]  # (n-grams,) the different words before each n-gram
    left: NDArray[np.int32]  # (sum of left_count,) these words

    def part(self, ngrams: slice, left: NDArray[np.int32]) -> BucketLevel:
        """Return some of the n-grams, with their left neighbours."""
        return BucketLevel(self.word[ngrams], self.counts[ngrams], self.children[ngrams], self.left_count[ngrams], left)


class BucketCounts(NamedTuple):
    """All n-grams of a bucket."""

    first: Records  # the first record
    last: Records
    levels: list[BucketLevel]  # [k - 1]: of order k


def count_records(records: Records, format: RecordFormat) -> BucketCounts:
    """Sort the records of a bucket, and count n-grams of all orders."""
    records, order = sort_records(records), format.order
    words = np.empty((order, len(records)), np.int32)
    counts, children = np.empty_like(words), np.empty_like(words)
    keys = np.empty((order, len(records)), np.uint64)  # of left neighbours; memory is used only where it is written
    sizes, key_sizes = np.zeros(order, np.int64), np.zeros(order, np.int64)
    arrays = words, counts, children, keys, sizes, key_sizes
    _find_ngrams(records, order, format.bits, format.words_per_number, arrays)
    lefts = _left_neighbours(children, sizes, keys, key_sizes, format.bits)
    levels = [
        BucketLevel(words[k, :size], counts[k, :size], children[k, :size], *lefts[k])
        for k, size in enumerate(sizes.tolist())
    ]
    return BucketCounts(records[0], records[-1], levels)


def _left_neighbours(
    children: NDArray[np.int32],
    sizes: NDArray[np.int64],
    keys: NDArray[np.uint64],
    key_sizes: NDArray[np.int64],
    bits: int,
) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
    """Return, for each order, how many different words precede each n-gram, and these words.

    The highest order has none. A word that precedes an n-gram precedes its contexts as well, so only what is different
    in one order is processed in the next lower one.
    """
    order, shift, mask = len(sizes), np.uint64(bits), np.uint64((1 << bits) - 1)
    result = [(np.zeros(int(sizes[-1]), np.int64), np.zeros(0, np.int32))]
    distinct = np.zeros(0, np.uint64)  # keys: an n-gram of the order above in this bucket, and a word before it
    for k in range(order - 2, -1, -1):
        if len(distinct):
            parents = np.repeat(np.arange(sizes[k], dtype=np.uint64), children[k, : sizes[k]])
            distinct = (parents[distinct >> shift] << shift) | (distinct & mask)
        merged = np.concatenate([distinct, keys[k, : key_sizes[k]]])
        merged.sort()
        is_new = np.ones(len(merged), bool)
        np.not_equal(merged[1:], merged[:-1], out=is_new[1:])
        distinct = merged[is_new]
        left_count = np.bincount((distinct >> shift).astype(np.int64), minlength=int(sizes[k]))
        result.append((left_count, (distinct & mask).astype(np.int32)))
    return result[::-1]


def count_by_first_word(levels: list[BucketLevel]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Return, for each order, the numbers of n-grams and of their left neighbours that begin with each first word."""
    result, bounds = [], np.arange(len(levels[0].word) + 1)
    for level in levels:
        result.append((np.diff(bounds), np.diff(offsets_of(level.left_count)[bounds])))
        bounds = offsets_of(level.children)[bounds]
    return result


@kernel
def _find_ngrams(records: Any, order: int, bits: int, per_number: int, arrays: Any) -> None:
    """Number the n-grams of sorted records, and pass on the word before each record with its longest n-gram.

    The longest n-gram counts up to one order below the highest, because it is that of a suffix.
    """
    words, counts, children, keys, sizes, key_sizes = arrays
    mask = np.uint64((1 << bits) - 1)
    fields, previous = np.zeros(order + 1, np.int64), np.zeros(order + 1, np.int64)
    previous_length = 0
    for i in range(records.shape[0]):
        number, place = 0, per_number
        for field in range(order + 1):
            if place == 0:
                number, place = number + 1, per_number
            place -= 1
            fields[field] = (records[i, number] >> np.uint64(bits * place)) & mask
        length = 1
        while length < order and fields[length] != START:
            length += 1
        is_new = False
        for k in range(length):
            is_new = is_new or k >= previous_length or fields[k] != previous[k]
            if is_new:
                node = sizes[k]
                sizes[k] += 1
                words[k, node], counts[k, node], children[k, node] = fields[k], 0, 0
                if k > 0:
                    children[k - 1, sizes[k - 1] - 1] += 1
            counts[k, sizes[k] - 1] += 1
            previous[k] = fields[k]
        previous_length = length
        if fields[0] != START and order > 1:
            k = min(length, order - 1) - 1
            keys[k, key_sizes[k]] = (np.uint64(sizes[k] - 1) << np.uint64(bits)) | np.uint64(fields[order])
            key_sizes[k] += 1
