"""The n-grams of all orders with their counts in temporary files, each order sorted by its words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.array_files import ArrayFile, CountFile
from dragoman.data.vocabulary import START
from dragoman.ngram.disk.bucket import BucketCounts, BucketLevel, count_by_first_word
from dragoman.ngram.disk.records import RecordFormat, Records
from dragoman.ngram.trie import word_type


class ContextBlock(NamedTuple):
    """Consecutive contexts of one order and the n-grams that continue them, by their positions in their orders."""

    contexts: slice
    ngrams: slice
    begin: NDArray[np.int64]  # (contexts + 1,) the first n-gram of each context; the first of the block is 0


class StoredLevel:
    """The n-grams of one order."""

    def __init__(self, directory: Path, order: int, vocab_size: int):
        self.order = order
        self.word = ArrayFile(directory / f"word-{order}", word_type(vocab_size))
        self.count = CountFile(directory / f"count-{order}")
        self.children = CountFile(directory / f"children-{order}")
        self.left_count = CountFile(directory / f"left-count-{order}")
        self.left = ArrayFile(directory / f"left-{order}", word_type(vocab_size))
        self.ngrams_by_first_word = np.zeros(vocab_size, np.int64)
        self.left_by_first_word = np.zeros(vocab_size, np.int64)

    def __len__(self) -> int:
        return len(self.word)

    def append(self, level: BucketLevel) -> None:
        """Write n-grams that follow those that were written before."""
        self.word.append(level.word)
        self.count.append(level.counts)
        self.children.append(level.children)
        self.left_count.append(level.left_count)
        self.left.append(level.left)

    def first_with(self, first_word: int) -> int:
        """Return the position of the first n-gram that begins with this word or a later one."""
        return int(self.ngrams_by_first_word[:first_word].sum())

    def read_counts(self, start: int, stop: int, *, adjusted: bool) -> NDArray[np.integer]:
        """Return the counts of some n-grams, or how many different words precede them.

        N-grams that begin with `<s>` keep their counts, because nothing precedes them.
        """
        if not adjusted:
            return self.count.read(start, stop)
        counts = self.left_count.read(start, stop)
        at_starts = min(stop, int(self.ngrams_by_first_word[START])) - start
        if at_starts > 0:
            counts = counts.astype(np.int64)
            counts[:at_starts] = self.count.read(start, start + at_starts)
        return counts

    def delete(self) -> None:
        """Remove the files."""
        for file in (self.word, self.count, self.children, self.left_count, self.left):
            file.delete()


class StoredCounts:
    """The n-grams of all orders. Those of order 1 are the words of the vocabulary."""

    def __init__(self, directory: Path, format: RecordFormat, vocab_size: int):
        self.directory, self.format, self.vocab_size = directory, format, vocab_size
        self.levels = [StoredLevel(directory, order, vocab_size) for order in range(1, format.order + 1)]
        self._last_record: Records | None = None
        self._pending: list[BucketLevel | None] = [None] * format.order  # the last n-gram, which may be continued

    @property
    def order(self) -> int:
        return len(self.levels)

    def __getitem__(self, order: int) -> StoredLevel:
        """Return the n-grams of one order."""
        return self.levels[order - 1]

    def add(self, bucket: BucketCounts) -> None:
        """Append the n-grams of the next bucket. Its first n-grams may be the last ones of the bucket before."""
        shared = 0 if self._last_record is None else self.format.shared(self._last_record, bucket.first)
        by_first_word, first_words = count_by_first_word(bucket.levels), bucket.levels[0].word
        for k, (level, numbers) in enumerate(zip(bucket.levels, by_first_word, strict=True)):
            stored, pending = self.levels[k], self._pending[k]
            stored.ngrams_by_first_word[first_words] += numbers[0]
            stored.left_by_first_word[first_words] += numbers[1]
            if pending is not None and len(level.word):
                if k < shared:
                    level, repeated = _merge_first(pending, level, shared_children=int(k + 1 < shared))
                    stored.ngrams_by_first_word[first_words[0]] -= 1
                    stored.left_by_first_word[first_words[0]] -= repeated
                else:
                    self._write(k, pending)
            if len(level.word):
                last = len(level.left) - int(level.left_count[-1])
                self._write(k, level.part(slice(None, -1), level.left[:last]))
                self._pending[k] = level.part(slice(-1, None), level.left[last:])
        self._last_record = bucket.last

    def finish(self) -> None:
        """Write what is pending, and remove orders without n-grams."""
        for k, pending in enumerate(self._pending):
            if pending is not None:
                self._write(k, pending)
        self._fill_level_1(self.vocab_size)
        while self.order > 1 and not len(self.levels[-1]):
            self.levels.pop().delete()

    def _write(self, k: int, level: BucketLevel) -> None:
        """Write n-grams of order k + 1. In order 1, words that do not occur get a count of 0."""
        if k > 0 or not len(level.word):
            self.levels[k].append(level)
            return
        start = len(self.levels[0])
        size = int(level.word[-1]) + 1 - start
        counts, children, left_count = np.zeros((3, size), np.int64)
        for dense, values in (counts, level.counts), (children, level.children), (left_count, level.left_count):
            dense[level.word - start] = values
        if start == START:
            counts[START] = 0  # never predicted
        words = np.arange(start, start + size, dtype=np.int32)
        self.levels[0].append(BucketLevel(words, counts, children, left_count, level.left))

    def _fill_level_1(self, size: int) -> None:
        rest = np.arange(len(self.levels[0]), size, dtype=np.int32)
        nothing = np.zeros(len(rest), np.int64)
        self.levels[0].append(BucketLevel(rest, nothing, nothing, nothing, rest[:0]))
        self.levels[0].ngrams_by_first_word[:] = 1

    def context_blocks(self, order: int, max_ngrams: int) -> Iterator[ContextBlock]:
        """Yield the contexts of n-grams of one order, in blocks of at most `max_ngrams` n-grams or one context."""
        if order == 1:
            yield ContextBlock(slice(0, 1), slice(0, self.vocab_size), np.array([0, self.vocab_size]))
            return
        contexts, start, ngram = self[order - 1], 0, 0
        while start < len(contexts):
            children = contexts.children.read(start, min(len(contexts), start + max_ngrams))
            ends = np.cumsum(children, dtype=np.int64)
            first = 0
            while first < len(ends):
                before = int(ends[first - 1]) if first else 0
                last = max(first + 1, int(np.searchsorted(ends, before + max_ngrams, side="right")))
                begin = np.concatenate([[before], ends[first:last]]) - before
                size = int(begin[-1])
                yield ContextBlock(slice(start + first, start + last), slice(ngram, ngram + size), begin)
                first, ngram = last, ngram + size
            start += len(children)

    def position(self, words: list[int]) -> int:
        """Return the position of an n-gram among those of its order, which must have it."""
        position = words[0]
        for order, word in enumerate(words[1:], 2):
            first = self[order - 1].first_with(words[0])
            before = self[order - 1].children.read(first, position + 1)
            start = self[order].first_with(words[0]) + int(before[:-1].sum(dtype=np.int64))
            position = start + int(np.searchsorted(self[order].word.read(start, start + int(before[-1])), word))
        return position

    def last_suffixes(self) -> list[int]:
        """Return the position of the suffixes of the last n-gram, comparing words from right to left, by order."""
        counts = self[1].count.read(0, self.vocab_size)
        words = [int(np.flatnonzero(counts).max(initial=0))]
        positions = [words[0]]
        while len(words) < self.order:
            level = self[len(words)]
            first = level.first_with(words[0])
            before = level.left_count.read(first, positions[-1] + 1)
            start = int(level.left_by_first_word[: words[0]].sum()) + int(before[:-1].sum(dtype=np.int64))
            if not before[-1]:  # it begins with <s>
                break
            words.insert(0, int(level.left.read(start, start + int(before[-1]))[-1]))
            positions.append(self.position(words))
        return positions


@dataclass(frozen=True)
class Pruning:
    """Keeps n-grams that occur more often than the threshold of their order.

    A context occurs at least as often as an n-gram that continues it, and thresholds never decrease from one order to
    the next: the contexts of all n-grams that are kept are kept as well.
    """

    counts: StoredCounts
    thresholds: tuple[int, ...]  # of orders 1, 2, ...; the last is used for higher orders

    def keeps(self, order: int, start: int, stop: int) -> NDArray[np.bool_]:
        """Return which n-grams of one order, from position `start` to `stop`, are kept; all those of order 1."""
        threshold = self.thresholds[min(order, len(self.thresholds)) - 1] if order > 1 else -1
        return self.counts[order].read_counts(start, stop, adjusted=False) > threshold


def _merge_first(pending: BucketLevel, level: BucketLevel, shared_children: int) -> tuple[BucketLevel, int]:
    """Merge an n-gram with the first one of a level, which is the same. Return also how many left neighbours repeat."""
    number = int(level.left_count[0])
    left = np.union1d(pending.left, level.left[:number]).astype(np.int32)
    counts, children, left_count = (
        array.astype(np.int64) for array in (level.counts, level.children, level.left_count)
    )
    counts[0] += pending.counts[0]
    children[0] += pending.children[0] - shared_children
    left_count[0] = len(left)
    merged = BucketLevel(level.word, counts, children, left_count, np.concatenate([left, level.left[number:]]))
    return merged, len(pending.left) + number - len(left)
