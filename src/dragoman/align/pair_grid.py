"""Two texts as a grid: for each pair of sentences, every target word beside every source word, and beside none.

All alignment models fill this grid with P(a_j = i | F, E): which word of the source a word of the target comes from.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.vocabulary import START

NULL = START  # the empty word, from which comes what has no counterpart: `<s>` is no word of any text
CHUNK_PAIRS = 4096  # pairs that are worked on by one thread at a time; the same on every machine, so that sums are, too


@dataclass(frozen=True, eq=False)
class PairGrid:
    """Pair after pair; in a pair, a row for each target word, and in it the empty word and then each source word."""

    source: Corpus
    target: Corpus

    @classmethod
    def from_pairs(cls, pairs: ParallelCorpus) -> PairGrid:
        return cls(pairs.source, pairs.target)

    @property
    def reversed(self) -> PairGrid:
        """The same texts, the other way round."""
        return PairGrid(self.target, self.source)

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Where the cells of each pair begin.  # (pairs + 1,)"""
        sizes = (np.diff(self.source.offsets) + 1) * np.diff(self.target.offsets)
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)

    @property
    def offset_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """What kernels need to find their way: where the words of each side begin, and the cells."""
        return self.source.offsets, self.target.offsets, self.offsets

    @property
    def chunks(self) -> list[tuple[int, int]]:
        """Runs of pairs."""
        cuts = [*range(0, len(self), CHUNK_PAIRS), len(self)]
        return list(zip(cuts[:-1], cuts[1:], strict=True))

    def keys(self) -> NDArray[np.int64]:
        """The number of the two words of each cell: source * |V_e| + target.  # (cells,)"""
        found = np.empty(self.offsets[-1], np.int64)
        words = (self.source.ids, self.target.ids, len(self.target.vocab))
        parallel_map(lambda part: _fill_keys(*part, *self.offset_arrays, *words, found), self.chunks)
        return found


@kernel
def _fill_keys(first, last, source_at, target_at, cell_at, source, target, width, found):  # type: ignore[no-untyped-def]
    for pair in range(first, last):
        place = cell_at[pair]
        for j in range(target_at[pair], target_at[pair + 1]):
            found[place] = NULL * width + target[j]
            place += 1
            for i in range(source_at[pair], source_at[pair + 1]):
                found[place] = np.int64(source[i]) * width + target[j]
                place += 1
