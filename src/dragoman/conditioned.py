"""A translator with its source sentence given is a language model: P(E | F) for one F."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.errors import DataError
from dragoman.language_model import LanguageModel
from dragoman.model import Saved
from dragoman.scorer import Carry, Scorer, State, fold
from dragoman.text.corpus import Corpus, Source

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.text.batches import Batch


class Conditioned(LanguageModel):
    """What a translator says of translations of one sentence: words that may come next, samples, scores.

    It lives in memory alone.
    """

    kind: ClassVar[str] = "conditioned"

    def __init__(self, scorer: Scorer, source: Source):
        """# source: one sentence"""
        assert len(source) == 1, "one sentence is given"
        self.scorer, self.source = scorer, source
        self.vocab, self.unknown = scorer.vocab, scorer.unknown

    def start(self, batch: Batch, carry: Carry = None) -> State:
        """All rows translate the one sentence; it is read once, and they share what is remembered of it."""
        import torch

        from dragoman.scorer import select
        from dragoman.text.batches import Batch

        state = self.scorer.start(Batch.to_generate(1, self.source))
        return select(state, torch.zeros(batch.rows, dtype=torch.int64))

    def log_probs(self, state: State) -> Tensor:
        return self.scorer.log_probs(state)

    def advance(self, state: State, words: Tensor) -> State:
        return self.scorer.advance(state, words)

    def token_log_probs(self, corpus: Corpus) -> NDArray[np.float64]:
        """By the translator's own batched path, if it has one."""
        from dragoman.text.batches import Batch

        parts = [np.zeros(0)]
        for piece in corpus.pieces(4096):
            repeated = self.source.select(np.zeros(len(piece), np.int64))
            batched: Any = getattr(self.scorer, "pair_log_probs", None)
            if batched is not None:
                parts.append(batched(repeated, piece))
            else:
                batch = Batch.of(piece, repeated)
                parts.append(fold(self.scorer, batch)[0][batch.mask].double().numpy())
        return np.concatenate(parts)

    @classmethod
    def from_saved(cls, saved: Saved) -> Self:
        raise DataError(f"{saved.path}: a translator with its source given is not kept on disk")
