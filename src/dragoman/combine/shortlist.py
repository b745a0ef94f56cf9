"""Lexical shortlists (Jean et al. 2015): for each sentence, a translator predicts only words that a lexicon has as
translations of the source words, and the most frequent words.

The softmax over all words is a large part of the cost of a search, and nearly all words have nothing to do with the
sentence. All other words are impossible. Probabilities are normalised over the shortlist, so they are higher than those
of the translator itself and cannot be compared with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from dragoman.align.shortlist import Shortlist
from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, Rows, Scorer, State, SubsetScorer, scatter_to_vocabulary
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from dragoman.nn.output import WordSubset, may_copy

if TYPE_CHECKING:
    from dragoman.data.batches import Batch


class ShortlistMemory(NamedTuple):
    """What a search with a shortlist needs of the source sentences."""

    inner: Rows  # the memory of the translator itself
    subset: WordSubset


class ShortlistScorer(BaseTranslator):
    """A translator that assigns zero probability to all words outside a sentence's shortlist.

    To restrict only the searches of a translator, and not its likelihoods and samples, set its attribute `shortlist`.
    """

    def __init__(self, model: BaseTranslator, shortlist: Shortlist, scorer: SubsetScorer | None = None):
        """By default the scorer is the model itself; it may be the model prepared for one search."""
        self.model = require_shortlist_support(model)
        self.shortlist, self._scorer = shortlist, self.model if scorer is None else scorer
        self.vocab, self.unknown = model.vocab, model.unknown
        self.source, self.target, self.length_prior = model.source, model.target, model.length_prior
        self.source_vocab = model.source.vocab
        self.settings = self.model.settings

    def search_scorer(self, *, use_shortlist: bool = True) -> Scorer:
        scorer = self.model.prepare_for_search()
        return ShortlistScorer(self.model, self.shortlist, scorer) if use_shortlist else scorer

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None, "a translator needs a source"
        state = self._scorer.start(batch, carry)
        subset = self._scorer.word_subset(state, self.shortlist.word_lists(batch.source))
        sentence = torch.arange(batch.num_rows) if state.sentence is None else state.sentence
        return State(state.rows, ShortlistMemory(state.memory, subset), sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor]:
        """Return log P of the words in the shortlist of each row's sentence, and their ids.  # (rows, n) each"""
        memory: ShortlistMemory = state.memory
        assert state.sentence is not None
        scores = self._scorer.subset_scores(State(state.rows, memory.inner, state.sentence), memory.subset)
        return scores.log_softmax(dim=1), memory.subset.words.index_select(0, state.sentence)

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))

    def advance(self, state: State, words: Tensor) -> State:
        subset, inner = state.memory.subset, self._scorer.advance(self._inner(state), words)
        if subset.weights is None and may_copy(subset.words, len(self.vocab)):  # fewer sentences are left
            subset = self._scorer.word_subset(inner, subset.words)
        return State(inner.rows, ShortlistMemory(inner.memory, subset), state.sentence)

    def finish(self, state: State) -> Carry:
        return self.model.finish(self._inner(state))

    def attention(self, state: State) -> Tensor | None:
        return self.model.attention(self._inner(state))

    def _inner(self, state: State) -> State:
        """The state of the translator itself."""
        memory = state.memory.inner
        return State(state.rows, memory, None if memory is None else state.sentence)

    @property
    def has_attention(self) -> bool:
        return self.model.has_attention

    @property
    def has_shortlist(self) -> bool:
        return True


def require_shortlist_support(model: BaseTranslator) -> Translator | QuantizedTranslator:
    """Return the translator; raise an error if it cannot be limited to a shortlist."""
    if not isinstance(model, Translator | QuantizedTranslator):
        raise DataError("a shortlist is for a single translator; give one to each member of an ensemble")
    if model.classes is not None:
        raise DataError("a class-factored softmax cannot be limited to a shortlist; train with --softmax full")
    return model
