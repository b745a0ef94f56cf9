"""Lexical shortlists (Jean et al. 2015): for each sentence, a translator predicts only words that a lexicon has as
translations of the source words, and the most frequent words.

The softmax over all words is a large part of the cost of a search, and nearly all words have nothing to do with the
sentence. All other words are impossible. Probabilities are normalised over the shortlist, so they are higher than those
of the translator itself and cannot be compared with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from dragoman.align.shortlist import Shortlist
from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State, scatter_to_vocabulary
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from dragoman.models.translator_scorer import TranslatorScorer
from dragoman.nn.output import WordSubset

if TYPE_CHECKING:
    from dragoman.data.batches import Batch


class ShortlistScorer(BaseTranslator):
    """A translator that assigns zero probability to all words outside a sentence's shortlist."""

    def __init__(self, model: BaseTranslator, shortlist: Shortlist):
        if not isinstance(model, Translator | QuantizedTranslator):
            raise DataError("a shortlist is for a single translator; give one to each member of an ensemble")
        if model.classes is not None:
            raise DataError("a class-factored softmax cannot be limited to a shortlist; train with --softmax full")
        self.model, self.shortlist = model, shortlist
        self.vocab, self.unknown = model.vocab, model.unknown
        self.source, self.target, self.length_prior = model.source, model.target, model.length_prior
        self.source_vocab = model.source.vocab
        self.settings = model.settings
        self._last: WordSubset | None = None

    @property
    def _prepared(self) -> TranslatorScorer:
        return self.model.prepare_for_search()

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None, "a translator needs a source"
        state = self._prepared.start(batch, carry)
        memory = (state.memory, self.shortlist.word_lists(batch.source))
        return State(state.rows, memory, torch.arange(batch.num_rows) if state.sentence is None else state.sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor]:
        """Return log P of the words in the shortlist of each row's sentence, and their ids.  # (rows, n) each"""
        lists = state.memory[1]  # (sentences, n)
        if self._last is None or self._last.words is not lists:  # most steps of a search have the same sentences
            self._last = self.model.word_subset(lists)
        inner = State(state.rows, state.memory[0], state.sentence)
        scores = self._prepared.subset_scores(inner, self._last)
        assert state.sentence is not None
        return scores.log_softmax(dim=1), lists.index_select(0, state.sentence)

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))

    def advance(self, state: State, words: Tensor) -> State:
        inner = self._prepared.advance(self._inner(state), words)
        return State(inner.rows, (inner.memory, state.memory[1]), state.sentence)

    def finish(self, state: State) -> Carry:
        return self.model.finish(self._inner(state))

    def attention(self, state: State) -> Tensor | None:
        return self.model.attention(self._inner(state))

    def _inner(self, state: State) -> State:
        """The state of the translator itself."""
        memory = state.memory[0]
        return State(state.rows, memory, None if memory is None else state.sentence)

    @property
    def has_attention(self) -> bool:
        return self.model.has_attention

    @property
    def has_shortlist(self) -> bool:
        return True

    @property
    def without_shortlist(self) -> BaseTranslator:
        return self.model.without_shortlist
