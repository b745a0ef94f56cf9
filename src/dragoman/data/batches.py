"""Batches of padded sentences, and long texts read as parallel streams."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, UNK


@dataclass(frozen=True)
class Batch:
    """Target sentences padded with `</s>` to one length; for translators, with the source sentences."""

    ids: Tensor  # (rows, longest) int64
    lengths: Tensor  # (rows,) tokens per row, including `</s>`
    source: Corpus | None = None  # one sentence per row

    @property
    def num_rows(self) -> int:
        return len(self.lengths)

    @property
    def mask(self) -> Tensor:
        """True at tokens, False at padding.  # (rows, longest)"""
        return torch.arange(self.ids.shape[1]) < self.lengths[:, None]

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sequence[int] | NDArray[np.integer]], source: Corpus | None = None
    ) -> Batch:
        """Build a batch from sentences given as ids without `</s>`."""
        rows = [torch.as_tensor(np.asarray(sentence, np.int64)) for sentence in sentences]
        lengths = torch.tensor([len(row) + 1 for row in rows])
        ids = torch.full((len(rows), int(lengths.max())), END)
        for row, padded in zip(rows, ids, strict=True):
            padded[: len(row)] = row
        return cls(ids, lengths, source)

    @classmethod
    def empty(cls, num_rows: int, source: Corpus | None = None) -> Batch:
        """Return a batch of rows without tokens, for generation."""
        return cls(torch.full((num_rows, 0), END), torch.zeros(num_rows, dtype=torch.int64), source)


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive steps of every row of a stream. Each token is predicted from the tokens before it in its row."""

    ids: NDArray[np.int32]  # (1 + steps, rows): the last token of the previous segment, then the tokens to predict

    @property
    def inputs(self) -> NDArray[np.int32]:
        """The token before each target; `</s>` at the start of a sentence.  # (steps, rows)"""
        return self.ids[:-1]

    @property
    def targets(self) -> NDArray[np.int32]:
        """The tokens to predict.  # (steps, rows)"""
        return self.ids[1:]

    def __len__(self) -> int:
        return 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        return np.array([self.targets.size])

    def select(self, examples: NDArray[np.integer]) -> Segment:
        """Return the segment itself: it is one example, because its state belongs to all rows."""
        return self

    def with_unknown(self, unknown: NDArray[np.bool_]) -> Segment:
        """Return a copy with `<unk>` where `unknown` is true.  # unknown: (1 + steps, rows)"""
        return replace(self, ids=np.where(unknown, np.int32(UNK), self.ids))


@dataclass(frozen=True, eq=False)
class TextStream:
    """A text laid out in parallel rows and read a fixed number of steps at a time.

    >>> corpus = Corpus.from_sentences(["a b", "c", "a"])
    >>> first, second = TextStream.from_corpus(corpus, rows=2, steps=2)
    >>> first.inputs.T.tolist(), first.targets.T.tolist()
    ([[1, 3], [1, 5]], [[3, 4], [5, 1]])
    >>> second.inputs.T.tolist(), second.targets.T.tolist()
    ([[4], [1]], [[1], [3]])
    """

    ids: NDArray[np.int32]  # (1 + longest, rows), as in a segment
    steps: int

    @classmethod
    def from_corpus(cls, corpus: Corpus, rows: int, steps: int, start: int = 0) -> TextStream:
        """Lay out a corpus from token `start` on, wrapping around. Tokens that do not fill equal rows are dropped.

        A row usually begins inside a sentence and is read as if a sentence began there.
        """
        tokens = np.roll(corpus.ids_with_boundaries(starts=0), -start)
        longest = len(tokens) // rows
        body = tokens[: rows * longest].reshape(rows, longest).T  # (longest, rows)
        return cls(np.concatenate([np.full((1, rows), END, np.int32), body]), steps)

    def __len__(self) -> int:
        return -(-(len(self.ids) - 1) // self.steps)

    def __getitem__(self, index: int) -> Segment:
        if not 0 <= index < len(self):
            raise IndexError(index)
        return Segment(self.ids[index * self.steps : (index + 1) * self.steps + 1])

    def __iter__(self) -> Iterator[Segment]:
        return map(self.__getitem__, range(len(self)))
