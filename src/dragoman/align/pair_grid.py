"""All word pairs of a parallel text: for each sentence pair, each target word with each source word and with NULL.

All alignment models compute P(a_j = i | F, E) for the cells of this grid: which source word a target word comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.ranges import offsets_of, select_ranges
from dragoman.data.scanner import rehash
from dragoman.data.vocabulary import START

NULL = START  # id of the empty source word, to which words without a counterpart are linked: no text contains `<s>`
CHUNK_PAIRS = 4096  # pairs processed by one thread at a time; the same on every machine, so that sums are the same


class IdLines(NamedTuple):
    """Lines as word ids above `NULL`."""

    ids: NDArray[np.int32]  # (words,)
    offsets: NDArray[np.int64]  # (lines + 1,)
    vocab_size: int

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Words of each line.  # (lines,)"""
        return np.diff(self.offsets)

    def select(self, lines: NDArray[np.integer]) -> IdLines:
        """Return the given lines, in this order."""
        offsets, positions = select_ranges(self.offsets, lines)
        return IdLines(self.ids[positions], offsets, self.vocab_size)


class GridOffsets(NamedTuple):
    """Where the source words, the target words and the cells of each pair begin, for kernels.  # (pairs + 1,) each"""

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    cells: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class PairGrid:
    """Cells in order of pairs; in a pair, one row per target word; in a row, NULL and then each source word."""

    source: IdLines
    target: IdLines

    @classmethod
    def from_pairs(cls, pairs: ParallelCorpus) -> PairGrid:
        return cls(*(IdLines(text.ids, text.offsets, len(text.vocab)) for text in (pairs.source, pairs.target)))

    @property
    def reversed(self) -> PairGrid:
        """The same pairs with source and target exchanged."""
        return PairGrid(self.target, self.source)

    def __len__(self) -> int:
        return len(self.source.offsets) - 1

    @cached_property
    def offsets(self) -> GridOffsets:
        cells = offsets_of((self.source.sizes + 1) * self.target.sizes)
        return GridOffsets(self.source.offsets, self.target.offsets, cells)

    @property
    def num_cells(self) -> int:
        return int(self.offsets.cells[-1])

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """Ranges of pairs to be processed in parallel."""
        return list(pairwise([*range(0, len(self), CHUNK_PAIRS), len(self)]))

    def word_pairs(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The distinct word pairs as sorted keys source * |V_e| + target, and the index of each cell's pair.

        # (pairs of words,), (cells,)
        """
        index = np.empty(self.num_cells, np.int32)
        keys, hashes = np.empty(len(index), np.int64), np.empty(len(index), np.uint64)  # takes memory only where used
        slots = np.full(1 << 16, -1, np.int32)
        line = cell = count = 0
        while line < len(self):
            line, cell, count = _number_cells(self.source, self.target, index, keys, hashes, slots, line, cell, count)
            if line < len(self):
                slots = rehash(hashes[:count], 4 * slots.size)
        order = np.argsort(keys[:count])
        rank = np.empty(count, np.int32)
        rank[order] = np.arange(count, dtype=np.int32)
        return keys[:count][order], rank[index]


@kernel
def _hash(key):  # type: ignore[no-untyped-def]
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@kernel
def _number_cells(source, target, index, keys, hashes, slots, line, cell, count):  # type: ignore[no-untyped-def]
    """Number the word pairs of the cells from `line` on, until the lines end or the hash table may become too full."""
    f_at, e_at, mask = source.offsets, target.offsets, np.uint64(slots.size - 1)
    while line < f_at.size - 1:
        n_f = f_at[line + 1] - f_at[line]
        if 2 * (count + (n_f + 1) * (e_at[line + 1] - e_at[line])) >= slots.size:
            break
        for j in range(e_at[line], e_at[line + 1]):
            for i in range(f_at[line] - 1, f_at[line + 1]):
                word = NULL if i < f_at[line] else source.ids[i]
                key = np.int64(word) * target.vocab_size + target.ids[j]
                hashed = _hash(np.uint64(key))
                slot = hashed & mask
                while slots[slot] >= 0 and keys[slots[slot]] != key:
                    slot = (slot + np.uint64(1)) & mask
                if slots[slot] < 0:
                    slots[slot] = count
                    keys[count], hashes[count] = key, hashed
                    count += 1
                index[cell] = slots[slot]
                cell += 1
        line += 1
    return line, cell, count
