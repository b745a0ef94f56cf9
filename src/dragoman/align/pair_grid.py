"""All word pairs of a parallel text: for each sentence pair, each source word with each target word.

All alignment models compute P(a_j = i | F, E) for the cells of this grid: which source word a target word comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.ranges import offsets_of, select_ranges
from dragoman.data.vocabulary import START

NULL = START  # id of the empty source word, to which words without a counterpart are linked: no text contains `<s>`
SHARDS = 4  # parts that are processed in parallel: as many on every machine, so that sums are the same
MIN_SHARD_CELLS = 4096  # smaller texts are one part
CHUNK_PAIRS = 4096  # pairs processed by one thread at a time where nothing is summed


class IdLines(NamedTuple):
    """Lines as word ids above `NULL`."""

    ids: NDArray[np.int32]  # (words,)
    offsets: NDArray[np.int64]  # (lines + 1,)
    vocab_size: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Words of each line.  # (lines,)"""
        return np.diff(self.offsets)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How often each word occurs.  # (vocab_size,)"""
        return np.bincount(self.ids, minlength=self.vocab_size)

    def select(self, lines: NDArray[np.integer]) -> IdLines:
        """Return the given lines, in this order."""
        offsets, positions = select_ranges(self.offsets, lines)
        return IdLines(self.ids[positions], offsets, self.vocab_size)


class WordPairs(NamedTuple):
    """The distinct word pairs of a grid, ordered by their source words. Both directions use the same numbers."""

    source: NDArray[np.int32]  # (word pairs,)
    target: NDArray[np.int32]  # (word pairs,)
    cell_numbers: NDArray[np.int32]  # (cells,) the number of each cell's word pair


class GridArrays(NamedTuple):
    """A grid for kernels: `offsets` are where source words, target words and cells of each pair begin."""

    source_ids: NDArray[np.int32]  # (source words,)
    target_ids: NDArray[np.int32]  # (target words,)
    source: NDArray[np.int64]  # (pairs + 1,)
    target: NDArray[np.int64]  # (pairs + 1,)
    cells: NDArray[np.int64]  # (pairs + 1,)


@dataclass(frozen=True, eq=False)
class PairGrid:
    """Cells in order of pairs; in a pair, one row per source word, with one cell per target word."""

    source: IdLines
    target: IdLines

    @classmethod
    def from_pairs(cls, pairs: ParallelCorpus) -> PairGrid:
        return cls(*(IdLines(text.ids, text.offsets, len(text.vocab)) for text in (pairs.source, pairs.target)))

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @cached_property
    def arrays(self) -> GridArrays:
        cells = offsets_of(self.source.sizes * self.target.sizes)
        return GridArrays(self.source.ids, self.target.ids, self.source.offsets, self.target.offsets, cells)

    @property
    def num_cells(self) -> int:
        return int(self.arrays.cells[-1])

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of pairs to be processed in parallel."""
        return list(pairwise([*range(0, len(self), CHUNK_PAIRS), len(self)]))

    @property
    def shards(self) -> list[tuple[int, int]]:
        """Ranges of pairs with about as many cells in each."""
        return split_evenly(self.arrays.cells)

    @cached_property
    def longest(self) -> int:
        """Words of the longest line of either side, at least 1."""
        return max(1, int(self.source.sizes.max(initial=0)), int(self.target.sizes.max(initial=0)))

    @cached_property
    def word_pairs(self) -> WordPairs:
        """Number the distinct word pairs, source word by source word."""
        words = self.arrays
        positions = np.argsort(words.source_ids, kind="stable")  # (source words,) the occurrences of each word
        occurrences = offsets_of(self.source.counts)  # (|V_f| + 1,) where those of each word begin
        pairs = np.repeat(np.arange(len(self)), self.source.sizes)[positions]  # (source words,)
        cells = np.concatenate([[0], np.cumsum(self.target.sizes[pairs])])[occurrences]  # (|V_f| + 1,)
        index = np.empty(self.num_cells, np.int32)
        number = partial(_number_word_pairs, words, occurrences, positions, pairs, index, self.target.vocab_size)
        shards = split_evenly(cells)  # ranges of source words
        source, target = zip(*parallel_map(number, shards), strict=True)
        first_numbers = np.zeros(self.source.vocab_size, np.int32)  # of the shard of each source word
        for (first, last), number_before in zip(
            shards, offsets_of(np.array([len(part) for part in source])), strict=False
        ):
            first_numbers[first:last] = number_before
        parallel_map(partial(_add_first_numbers, words, first_numbers, index), self.chunks)
        return WordPairs(np.concatenate(source), np.concatenate(target), index)


def split_evenly(offsets: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Split items, which begin at these offsets, into `SHARDS` ranges of about the same size; small texts into one."""
    if offsets[-1] < MIN_SHARD_CELLS:
        return [(0, len(offsets) - 1)]
    bounds = np.searchsorted(offsets, [offsets[-1] * shard // SHARDS for shard in range(SHARDS + 1)]).tolist()
    return list(pairwise([0, *bounds[1:-1], len(offsets) - 1]))


@kernel
def _number_word_pairs(grid, occurrences, positions, pairs, index, target_size, words):  # type: ignore[no-untyped-def]
    """Number the word pairs of a range of source words from 0 on; return their source and target words."""
    size = 0
    for occurrence in range(occurrences[words[0]], occurrences[words[1]]):
        size += grid.target[pairs[occurrence] + 1] - grid.target[pairs[occurrence]]
    source, target, count = np.empty(size, np.int32), np.empty(size, np.int32), 0
    numbers = np.full((target_size, 2), -1, np.int32)  # last source word of each target word, number of this word pair
    for word in range(words[0], words[1]):
        for occurrence in range(occurrences[word], occurrences[word + 1]):
            pair = pairs[occurrence]
            first, n_e = grid.target[pair], grid.target[pair + 1] - grid.target[pair]
            cell = grid.cells[pair] + (positions[occurrence] - grid.source[pair]) * n_e
            for j in range(n_e):
                e = grid.target_ids[first + j]
                if numbers[e, 0] != word:
                    source[count], target[count] = word, e
                    numbers[e, 0], numbers[e, 1] = word, count
                    count += 1
                index[cell + j] = numbers[e, 1]
    return source[:count].copy(), target[:count].copy()


@kernel
def _add_first_numbers(grid, first_numbers, index, chunk):  # type: ignore[no-untyped-def]
    for pair in range(chunk[0], chunk[1]):
        n_e, cell = grid.target[pair + 1] - grid.target[pair], grid.cells[pair]
        for i in range(grid.source[pair], grid.source[pair + 1]):
            first_number = first_numbers[grid.source_ids[i]]
            for j in range(n_e):
                index[cell + j] += first_number
            cell += n_e
