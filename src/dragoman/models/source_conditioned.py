"""A translator with a fixed source is a language model: P(E | F) for this F."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Scorer, State, select_rows
from dragoman.data.corpus import Corpus
from dragoman.data.tokenizer import Tokenizer
from dragoman.evaluation.log_probs import pair_log_probs
from dragoman.models.base import SavedModel
from dragoman.models.language_model import LanguageModel

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch


class SourceConditionedLM(LanguageModel):
    """A translator for fixed source sentences, with the methods of a language model.

    With one source sentence, all lines are translations of it. With several, line i translates sentence i. It cannot
    be saved.
    """

    kind: ClassVar[str] = "conditioned"

    def __init__(self, scorer: Scorer, source: Corpus, target: Tokenizer):
        self.scorer, self.source, self.target = scorer, source, target
        self.vocab, self.unknown = scorer.vocab, scorer.unknown

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """Encode each source sentence once; all rows of a single sentence share its memory."""
        import torch

        from dragoman.data.batches import Batch

        state = self.scorer.start(Batch.empty(len(self.source), self.source))
        return select_rows(state, torch.from_numpy(self._source_indices(batch.num_rows)))

    def log_probs(self, state: State) -> Tensor:
        return self.scorer.log_probs(state)

    def advance(self, state: State, words: Tensor) -> State:
        return self.scorer.advance(state, words)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        return pair_log_probs(self.scorer, self.source.select(self._source_indices(len(corpus))), corpus)

    def _source_indices(self, lines: int) -> NDArray[np.int64]:
        """Return the source sentence of each line.  # (lines,)"""
        if len(self.source) == 1:
            return np.zeros(lines, np.int64)
        if len(self.source) != lines:
            raise DataError(f"{len(self.source):,} sources but {lines:,} translations; give one for each")
        return np.arange(lines)

    def _encode(self, sentences: str | Iterable[str]) -> Corpus:
        return self.target.encode([sentences] if isinstance(sentences, str) else sentences)

    def _join(self, words: Sequence[str]) -> str:
        return self.target.join(words)

    @classmethod
    def from_saved(cls, saved: SavedModel) -> Self:
        raise DataError(f"{saved.path}: a translator with a fixed source cannot be saved or loaded")
