"""Smoothing of counts in files, an order at a time from below, and writing of the model's arrays.

An n-gram needs the probability of its suffix. The n-grams of an order are passed through in order; the different words
that precede each say of which n-grams of the next order it is the suffix. All n-grams that begin with one of these words
have their suffixes in order, so one counter per word gives their positions. The probabilities are distributed to files
by ranges of these positions, each of which fits into memory.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map
from dragoman.data.array_files import BucketFiles
from dragoman.ngram.disk.levels import ContextBlock, Pruning, StoredCounts
from dragoman.ngram.disk.table_file import TableFile
from dragoman.ngram.estimate import Floats, Masses, Smoothing, context_blocks, estimate_block

Report = Callable[[int], None]  # is called with the number of n-grams that are done


@dataclass
class StoredStatistics:
    """What smoothing methods ask about counts in files."""

    counts: StoredCounts
    coefficients: tuple[float, ...] = ()
    block_ngrams: int = 1 << 22  # read at a time
    notes: list[str] = field(default_factory=list)
    _last_suffixes: list[int] | None = None

    @property
    def order(self) -> int:
        return self.counts.order

    def note(self, message: str) -> None:
        self.notes.append(message)
        warnings.warn(message, stacklevel=3)

    def count_of_counts(self, order: int, max_count: int, *, adjusted: bool = False) -> Floats:
        level, adjusted = self.counts[order], adjusted and order < self.order
        tally = np.zeros(max_count + 2, np.int64)
        for start in range(0, len(level), self.block_ngrams):
            counts = level.read_counts(start, min(len(level), start + self.block_ngrams), adjusted=adjusted)
            tally += np.bincount(np.minimum(counts, max_count + 1), minlength=max_count + 2)
        if adjusted:  # lmplz takes the suffixes of the very last n-gram at their raw counts
            if self._last_suffixes is None:
                self._last_suffixes = self.counts.last_suffixes()
            if order <= len(self._last_suffixes):
                position = self._last_suffixes[order - 1]
                for is_adjusted, sign in ((False, 1), (True, -1)):
                    [count] = level.read_counts(position, position + 1, adjusted=is_adjusted)
                    tally[min(int(count), max_count + 1)] += sign
        return np.array([0.0, *tally[1 : max_count + 1]])


class LowerProbabilities:
    """The probabilities of the suffixes of all n-grams of one order, distributed by positions of the n-grams."""

    def __init__(self, directory: Path, counts: StoredCounts, order: int, range_ngrams: int, chunk_rows: int):
        self.range_ngrams, self.chunk_rows, self.size = range_ngrams, chunk_rows, len(counts[order])
        self._suffixes = counts[order - 1]
        first = np.cumsum(counts[order].ngrams_by_first_word)
        self._next = np.concatenate([[0], first[:-1]])  # the position of the next n-gram that begins with each word
        self._ranges = BucketFiles(directory, f"lower-{order}", np.uint32, 2)  # position in the range, probability
        self._left_read, self._loaded = 0, -1
        self._values = np.zeros(0, np.float32)

    def distribute(self, start: int, prob: NDArray[np.float32]) -> None:
        """Pass the probabilities of the next suffixes on to the n-grams. `start` is the position of the first."""
        left_count = self._suffixes.left_count.read(start, start + len(prob)).astype(np.int64)
        ends = np.cumsum(left_count, dtype=np.int64)
        first = 0
        while first < len(prob):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + self.chunk_rows, side="right")))
            left = self._suffixes.left.read(self._left_read, self._left_read + int(ends[last - 1]) - before)
            self._left_read += len(left)
            if len(left):
                self._ranges.append(*self._rows(left_count[first:last], left, prob[first:last]))
            first = last

    def _rows(
        self, left_count: NDArray[np.integer], left: NDArray[np.integer], prob: NDArray[np.float32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        positions = np.empty(len(left), np.int64)
        sizes = np.zeros(-(-self.size // self.range_ngrams), np.int64)
        _find_positions(left.astype(np.int32), self._next, self.range_ngrams, positions, sizes)
        ends = np.cumsum(sizes)
        rows = np.empty((len(left), 2), np.uint32)
        _fill_rows(positions, left_count, prob.view(np.uint32), self.range_ngrams, ends - sizes, rows)
        return rows, ends

    def read(self, start: int, stop: int) -> NDArray[np.float32]:
        """Return the probabilities of the suffixes of some n-grams; calls go from the first n-gram to the last."""
        parts = [np.zeros(0, np.float32)]
        while start < stop:
            number, first = divmod(start, self.range_ngrams)
            if number != self._loaded:
                self._load(number)
            parts.append(self._values[first : first + stop - start])
            start += len(parts[-1])
        return np.concatenate(parts) if len(parts) > 2 else parts[-1]

    def _load(self, number: int) -> None:
        self._values = np.empty(min(self.range_ngrams, self.size - number * self.range_ngrams), np.float32)
        for start in range(0, self._ranges.size(number), self.chunk_rows):
            rows = self._ranges.read(number, start, min(self._ranges.size(number), start + self.chunk_rows))
            _place(rows, self._values.view(np.uint32))
        self._ranges.delete(number)
        self._loaded = number


@dataclass
class DiskSmoother:
    """Smooths counts in files, with temporary files in a directory and blocks of limited sizes."""

    counts: StoredCounts
    zerogram: Floats
    directory: Path
    block_ngrams: int  # computed at a time
    range_ngrams: int  # of which the probabilities of suffixes are in memory
    pruning: Pruning | None = None

    def write(self, smoothing: Smoothing, table: TableFile, report: Report = lambda done: None) -> None:
        """Estimate all probabilities and back-off weights, and write them to a table."""
        lower: LowerProbabilities | None = None
        done = 0
        for order in range(1, self.counts.order + 1):
            masses, following = smoothing.masses(order), self._lower_of(order + 1)
            for block in self.counts.context_blocks(order, self.block_ngrams):
                prob, backoff = self._estimate(order, block, masses, smoothing, lower)
                if following is not None:
                    following.distribute(block.ngrams.start, prob)
                table.write_estimate(order, block, prob, backoff)
                done += len(prob)
                report(done)
            lower = following

    def _lower_of(self, order: int) -> LowerProbabilities | None:
        if order > self.counts.order:
            return None
        return LowerProbabilities(self.directory, self.counts, order, self.range_ngrams, self.block_ngrams)

    def _estimate(
        self, order: int, block: ContextBlock, masses: Masses, smoothing: Smoothing, lower: LowerProbabilities | None
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the probabilities and back-off weights of a block, computed in smaller blocks in parallel."""
        start, stop = block.ngrams.start, block.ngrams.stop
        adjusted = smoothing.adjusted and order < self.counts.order
        counts = self.counts[order].read_counts(start, stop, adjusted=adjusted)
        below = self.zerogram if lower is None else lower.read(start, stop)
        keep = None if self.pruning is None or order == 1 else self.pruning.keeps(order, start, stop)
        prob, backoff = np.empty(stop - start, np.float32), np.empty(len(block.begin) - 1, np.float32)

        def fill(span: tuple[int, int]) -> None:
            begin = block.begin[span[0] : span[1] + 1]
            part = slice(int(begin[0]), int(begin[-1]))
            kept, rule = None if keep is None else keep[part], smoothing.rule
            prob[part], backoff[slice(*span)] = estimate_block(masses, rule, counts[part], begin, below[part], kept)

        parallel_map(fill, context_blocks(block.begin, 0, len(block.begin) - 1))
        return prob, backoff


@kernel
def _find_positions(left: Any, following: Any, range_ngrams: int, positions: Any, sizes: Any) -> None:
    """Find the position of the next n-gram that begins with each word, and count positions by range."""
    for i in range(left.size):
        position = following[left[i]]
        following[left[i]] = position + 1
        positions[i] = position
        sizes[position // range_ngrams] += 1


@kernel
def _fill_rows(positions: Any, left_count: Any, values: Any, range_ngrams: int, cursor: Any, rows: Any) -> None:
    """Write the position in its range and the value of each n-gram, sorted by range."""
    i = 0
    for suffix in range(left_count.size):
        for _ in range(left_count[suffix]):
            number = positions[i] // range_ngrams
            row = cursor[number]
            cursor[number] = row + 1
            rows[row, 0], rows[row, 1] = positions[i] - number * range_ngrams, values[suffix]
            i += 1


@kernel
def _place(rows: Any, values: Any) -> None:
    for i in range(rows.shape[0]):
        values[rows[i, 0]] = rows[i, 1]
