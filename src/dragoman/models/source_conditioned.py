"""A translator with its source given is a language model: P(E | F) for that F."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Scorer, State
from dragoman.data.corpus import Corpus, SourceCorpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.log_probs import pair_log_probs
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch


class SourceConditionedLM(LanguageModel):
    """What a translator says of translations: words that may come next, samples, scores.

    With one source sentence, it speaks of translations of that one, however many there are. With several, line i is a
    translation of sentence i. It lives in memory alone.
    """

    kind: ClassVar[str] = "conditioned"

    def __init__(self, scorer: Scorer, source: SourceCorpus, target: Tokenizer):
        self.scorer, self.source, self.target = scorer, source, target
        self.vocab, self.unknown = scorer.vocab, scorer.unknown

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """The sentences are read once; if there is but one, all rows share what is remembered of it."""
        import torch

        from dragoman.core.scorer import select_rows
        from dragoman.data.batches import Batch

        state = self.scorer.start(Batch.empty(len(self.source), self.source))
        return select_rows(state, torch.from_numpy(self._source_indices(batch.num_rows)))

    def log_probs(self, state: State) -> Tensor:
        return self.scorer.log_probs(state)

    def advance(self, state: State, words: Tensor) -> State:
        return self.scorer.advance(state, words)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """By the translator's own batched path, if it has one."""
        return pair_log_probs(self.scorer, self.source.select(self._source_indices(len(corpus))), corpus)

    def _source_indices(self, lines: int) -> NDArray[np.int64]:
        """The source sentence of each of so many lines.  # (lines,)"""
        if len(self.source) == 1:
            return np.zeros(lines, np.int64)
        if len(self.source) != lines:
            raise DataError(f"{len(self.source):,} sources but {lines:,} translations; give one for each")
        return np.arange(lines)

    def _encode(self, sentences: str | Iterable[str]) -> Corpus:
        """Cut into the translator's units."""
        read: Corpus = self.target.encode([sentences] if isinstance(sentences, str) else sentences)
        return read

    def _join(self, words: Sequence[str]) -> str:
        return self.target.join(words)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        raise DataError(f"{saved.path}: a translator with its source given is not kept on disk")
