"""Lexical shortlists (Jean et al. 2015): for each sentence, a translator predicts only words that a lexicon has as
translations of the source words, and the most frequent words.

The softmax over all words is a large part of the cost of a search, and nearly all words have nothing to do with the
sentence. All other words are impossible. Probabilities are normalised over the shortlist, so they are higher than those
of the translator itself and cannot be compared with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from dragoman.align.lexicon import Lexicon
from dragoman.align.pair_grid import NULL
from dragoman.core.errors import DataError
from dragoman.core.scorer import Carry, State, scatter_to_vocabulary
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START, UNK, Vocab
from dragoman.models.quantized_translator import QuantizedTranslator
from dragoman.models.translation import BaseTranslator
from dragoman.models.translator import Translator
from dragoman.models.translator_scorer import TranslatorScorer
from dragoman.nn.output import WordSubset

if TYPE_CHECKING:
    from dragoman.data.batches import Batch

FREQUENT_WORDS = 100  # most frequent target words, allowed in every sentence
TRANSLATIONS_PER_WORD = 10  # most probable translations of each source word


@dataclass(frozen=True, eq=False)
class Shortlist:
    """The target words that each source word allows."""

    starts: Tensor  # (|V_f| + 1,) first index in `translations` for each source word
    translations: Tensor  # (entries,)
    always_allowed: Tensor  # (|V_e|,) whether a word is allowed in every sentence
    coverage: float  # share of source words, by frequency, that have translations

    @classmethod
    def from_lexicon(
        cls,
        lexicon: Lexicon,
        source: Vocab,
        target: Vocab,
        frequent_words: int = FREQUENT_WORDS,
        translations_per_word: int = TRANSLATIONS_PER_WORD,
    ) -> Self:
        """Return the shortlist for a translator with these vocabularies; those of the lexicon may differ."""
        if frequent_words < 0 or translations_per_word < 0:
            numbers = f"{frequent_words} frequent words and {translations_per_word} translations per word"
            raise DataError(f"a shortlist of {numbers}: both must be 0 or more")
        lexicon_source, lexicon_target = np.divmod(
            lexicon.keys[lexicon.top_entries(translations_per_word)], len(lexicon.target)
        )
        target_ids = target.ids(lexicon.target.tokens)[lexicon_target]
        always_allowed = np.zeros(len(target), bool)
        most_frequent = np.argsort(-target.counts[UNK + 1 :], kind="stable")[:frequent_words]
        always_allowed[most_frequent + UNK + 1] = True
        always_allowed[target_ids[lexicon_source == NULL]] = True
        always_allowed[[START, END, UNK]] = False, True, True
        source_ids = source.ids(lexicon.source.tokens)[lexicon_source]
        is_known = (source_ids != UNK) & (target_ids != UNK)
        source_ids, target_ids = source_ids[is_known], target_ids[is_known]
        order = np.lexsort((target_ids, source_ids))
        starts = np.searchsorted(source_ids[order], np.arange(len(source) + 1))
        counts = source.counts[UNK + 1 :]
        covered = counts[np.diff(starts)[UNK + 1 :] > 0]
        coverage = float(covered.sum() / counts.sum()) if counts.any() else 1.0
        translations = torch.from_numpy(target_ids[order].astype(np.int64))
        return cls(torch.from_numpy(starts), translations, torch.from_numpy(always_allowed), coverage)

    def allowed_words(self, source: Corpus) -> Tensor:
        """Return which words are allowed in the translation of each sentence.  # (sentences, |V_e|)"""
        ids = torch.from_numpy(source.ids.astype(np.int64))
        sentence = torch.from_numpy(np.repeat(np.arange(len(source)), np.diff(source.offsets)))
        sizes = self.starts[ids + 1] - self.starts[ids]  # (source words,)
        first = torch.repeat_interleave(self.starts[ids] - (sizes.cumsum(0) - sizes), sizes)
        allowed = self.always_allowed.repeat(len(source), 1)
        allowed[torch.repeat_interleave(sentence, sizes), self.translations[first + torch.arange(len(first))]] = True
        return allowed


class _AllowedWords(NamedTuple):
    """The words that any sentence of a batch allows."""

    allowed: Tensor  # (sentences, |V|)
    words: Tensor  # (n,)
    subset: WordSubset  # the translator's parameters for these words
    bias: Tensor  # (sentences, n) 0 where a sentence allows a word, else -inf


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
        self._last: _AllowedWords | None = None

    @property
    def _prepared(self) -> TranslatorScorer:
        return self.model.prepare_for_search()

    def start(self, batch: Batch, carry: Carry = None) -> State:
        assert batch.source is not None, "a translator needs a source"
        state = self._prepared.start(batch, carry)
        memory = (state.memory, self.shortlist.allowed_words(batch.source))
        return State(state.rows, memory, torch.arange(batch.num_rows) if state.sentence is None else state.sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor]:
        """Return log P of all words in the shortlists of the batch, and their ids.  # (rows, n), (n,)"""
        words = self._allowed_in_batch(state.memory[1])
        scores = self._prepared.subset_scores(self._inner(state), words.subset)
        return (scores + words.bias[state.sentence]).log_softmax(dim=1), words.words

    def _allowed_in_batch(self, allowed: Tensor) -> _AllowedWords:
        """Return the words that any sentence allows. All steps of a batch need the same, so it is cached."""
        if self._last is None or self._last.allowed is not allowed:
            words = allowed.any(dim=0).nonzero()[:, 0]  # (n,)
            is_allowed = allowed.index_select(1, words)  # (sentences, n)
            bias = torch.zeros(is_allowed.shape).masked_fill_(~is_allowed, -np.inf)
            self._last = _AllowedWords(allowed, words, self.model.word_subset(words), bias)
        return self._last

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
    def without_shortlist(self) -> BaseTranslator:
        return self.model
