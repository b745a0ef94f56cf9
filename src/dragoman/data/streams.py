"""A text as one long stream of words, cut into rows that are read side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np
from numpy.typing import NDArray

from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, UNK


@dataclass(frozen=True, eq=False)
class Segment:
    """Some steps of every row. Each word is predicted from those before it, also from those of earlier segments."""

    ids: NDArray[np.int32]  # (1 + steps, rows) the words to predict, and before them the last of the segment before

    @property
    def inputs(self) -> NDArray[np.int32]:
        """The word before each; `</s>` at the beginning of sentences.  # (steps, rows)"""
        return self.ids[:-1]

    @property
    def targets(self) -> NDArray[np.int32]:
        """The words to predict.  # (steps, rows)"""
        return self.ids[1:]

    def __len__(self) -> int:
        return 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([self.targets.size])

    def select(self, examples: NDArray[np.integer]) -> Segment:
        """A segment is not cut any further: what it carries over belongs to all its rows."""
        return self

    def with_unknown(self, unknown: NDArray[np.bool_]) -> Segment:
        """The same with these words as `<unk>`.  # unknown: (1 + steps, rows)"""
        return replace(self, ids=np.where(unknown, np.int32(UNK), self.ids))


@dataclass(frozen=True, eq=False)
class TextStream(Sequence[Segment]):
    """A text in so many rows, each read so many steps at a time.

    >>> corpus = Corpus.from_sentences(["a b", "c", "a"])
    >>> one, two = Segments.of(corpus, rows=2, steps=2)
    >>> one.inputs.T.tolist(), one.targets.T.tolist()
    ([[1, 3], [1, 5]], [[3, 4], [5, 1]])
    >>> two.inputs.T.tolist(), two.targets.T.tolist()
    ([[4], [1]], [[1], [3]])
    """

    ids: NDArray[np.int32]  # (1 + longest, rows) as in a segment
    steps: int

    @classmethod
    def from_corpus(cls, corpus: Corpus, rows: int, steps: int, start: int = 0) -> TextStream:
        """The words from the token `start` on, and then those before it; what is left over of equal rows is left out.

        A row begins within a sentence as a rule, and as if one began there.
        """
        words = np.roll(corpus.ids_with_boundaries(starts=0), -start)
        longest = len(words) // rows
        body = words[: rows * longest].reshape(rows, longest).T  # (longest, rows)
        return cls(np.concatenate([np.full((1, rows), END, np.int32), body]), steps)

    def __len__(self) -> int:
        return -(-(len(self.ids) - 1) // self.steps)

    @overload
    def __getitem__(self, number: int) -> Segment: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[Segment]: ...
    def __getitem__(self, number: int | slice) -> Segment | Sequence[Segment]:
        if isinstance(number, slice):
            return [self[one] for one in range(len(self))[number]]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return Segment(self.ids[number * self.steps : (number + 1) * self.steps + 1])

    def __iter__(self) -> Iterator[Segment]:
        return (self[number] for number in range(len(self)))
