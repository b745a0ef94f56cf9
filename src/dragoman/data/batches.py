"""Sentences side by side, padded to one length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from dragoman.data.corpus import SourceCorpus
from dragoman.data.vocabulary import END


@dataclass(frozen=True)
class Batch:
    """Rows of target words, each closed and padded with `</s>`; for a translator, with the sentences they translate."""

    ids: Tensor  # (rows, longest) int64
    lengths: Tensor  # (rows,) words of each row, its `</s>` counted
    source: SourceCorpus | None = None  # a sentence for each row

    @property
    def num_rows(self) -> int:
        return len(self.lengths)

    @property
    def mask(self) -> Tensor:
        """Where a row's own tokens stand.  # (rows, longest)"""
        return torch.arange(self.ids.shape[1]) < self.lengths[:, None]

    @classmethod
    def from_sentences(
        cls, sentences: Iterable[Sequence[int] | np.ndarray], source: SourceCorpus | None = None
    ) -> Batch:
        """A batch of sentences, given as word ids without `</s>`."""
        rows = [torch.as_tensor(np.asarray(sentence, np.int64)) for sentence in sentences]
        lengths = torch.tensor([len(row) + 1 for row in rows])
        words = torch.full((len(rows), int(lengths.max())), END)
        for row, padded in zip(rows, words, strict=True):
            padded[: len(row)] = row
        return cls(words, lengths, source)

    @classmethod
    def empty(cls, num_rows: int, source: SourceCorpus | None = None) -> Batch:
        """Rows that have no words yet."""
        return cls(torch.full((num_rows, 0), END), torch.zeros(num_rows, dtype=torch.int64), source)
