"""Which words, or units, of the pairs of a text belong together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.data.chunks import select_ranges


@dataclass(frozen=True, eq=False)
class WordAlignments:
    """The links of all pairs of a text, in order of source and then target words.

    >>> links = Links.of([[(0, 0), (1, 2)], [], [(0, 1)]])
    >>> links[0], links.select(np.array([2, 0]))[0]
    ([(0, 0), (1, 2)], [(0, 1)])
    """

    offsets: NDArray[np.int64]  # (pairs + 1,) where each pair's begin
    source: NDArray[np.int32]  # (links,) words, counted from 0 in each sentence
    target: NDArray[np.int32]  # (links,)

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[tuple[int, int]]]) -> WordAlignments:
        listed = [sorted(own) for own in lists]
        flat = np.array([link for own in listed for link in own], np.int32).reshape(-1, 2)
        return cls(np.cumsum([0, *map(len, listed)]).astype(np.int64), flat[:, 0].copy(), flat[:, 1].copy())

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, pair: int) -> list[tuple[int, int]]:
        own = slice(*self.offsets[pair : pair + 2].tolist())
        return list(zip(self.source[own].tolist(), self.target[own].tolist(), strict=True))

    @property
    def pair_indices(self) -> NDArray[np.int64]:
        """The pair that each link belongs to.  # (links,)"""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @property
    def reversed(self) -> WordAlignments:
        """The same from target to source."""
        order = np.lexsort((self.source, self.target, self.pair_indices))
        return WordAlignments(self.offsets, self.target[order], self.source[order])

    def select(self, pairs: NDArray[np.integer]) -> WordAlignments:
        """Those of these pairs, in this order."""
        offsets, places = select_ranges(self.offsets, pairs)
        return WordAlignments(offsets, self.source[places], self.target[places])
