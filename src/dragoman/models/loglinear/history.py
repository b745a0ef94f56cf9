"""What a prediction may look at: the words before it, of a whole text at once or of the rows of a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.data.corpus import Corpus

NOTHING = -1  # the number of a place before the sentence


@dataclass(frozen=True)
class History:
    """For each prediction, the stretch of a flat array that holds the words before it, `<s>` first.

    Features are computed from this view alone, so a text and the states of the fold cannot differ.
    """

    ids: NDArray[Any]  # (places,) word numbers, or NOTHING
    first: NDArray[np.int64]  # (predictions,) where each stretch begins
    last: NDArray[np.int64]  # (predictions,) where it ends: one past the word before

    @classmethod
    def of_corpus(cls, corpus: Corpus) -> History:
        """One prediction for every token."""
        sizes = np.diff(corpus.token_offsets)
        sentence = np.repeat(np.arange(corpus.num_sentences), sizes)
        last = np.arange(corpus.num_tokens) + sentence + 1  # a sentence and its `<s>` come before
        first = np.repeat(corpus.token_offsets[:-1] + np.arange(corpus.num_sentences), sizes)
        return cls(corpus.ids_with_boundaries(starts=1), first, last)

    @classmethod
    def of_rows(cls, rows: NDArray[Any]) -> History:
        """One prediction for every row of words.  # rows: (rows, words)"""
        count, width = rows.shape
        first = np.arange(count) * width
        return cls(rows.ravel(), first, first + width)

    def __len__(self) -> int:
        return len(self.first)

    def back(self, places: int) -> NDArray[np.int64]:
        """The word so many places back, or NOTHING.  # (predictions,)"""
        at = self.last - places
        inside = at >= self.first
        return np.where(inside, self.ids[np.where(inside, at, 0)], NOTHING).astype(np.int64)

    def before(self, prediction: int) -> NDArray[Any]:
        """All words before one prediction, `<s>` first."""
        return self.ids[self.first[prediction] : self.last[prediction]]
