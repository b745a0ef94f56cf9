"""A lexical shortlist (Jean et al. 2015): a translator that looks, for each sentence, at those words alone that a
lexicon has for the words of its source, and at the most frequent ones.

The softmax over all words is much of the work of searching, and nearly all of it is for words that have nothing to do
with the sentence. What is left out is impossible: probabilities are normalised over the words of the shortlist, so they
are higher than those of the translator itself, and not to be compared with them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from dragoman.align.lexicon import Lexicon
from dragoman.align.pair_grid import NULL
from dragoman.core.errors import DataError
from dragoman.core.scorer import AttentionScorer, Carry, State, SubsetScorer, scatter_to_vocabulary
from dragoman.data.vocabulary import END, START, UNK, Vocab
from dragoman.models.translation import BaseTranslator

if TYPE_CHECKING:
    from torch import Tensor

    from dragoman.data.batches import Batch

FREQUENT_WORDS = 100  # most frequent words that every sentence may have
TRANSLATIONS_PER_WORD = 10  # likeliest translations of each source word


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Which target words each source word allows."""

    starts: Tensor  # (|V_f| + 1,) where those of each source word begin
    translations: Tensor  # (entries,)
    always_allowed: Tensor  # (|V_e|,) whether a word is allowed in every sentence
    coverage: float  # the share of the source's words, as often as they came, that have words of their own

    @classmethod
    def from_lexicon(
        cls,
        lexicon: Lexicon,
        source: Vocab,
        target: Vocab,
        frequent_words: int = FREQUENT_WORDS,
        translations_per_word: int = TRANSLATIONS_PER_WORD,
    ) -> Self:
        """For a translator of these words; the lexicon may know others."""
        import torch

        if frequent_words < 0 or translations_per_word < 0:
            raise DataError(
                f"a shortlist of {frequent_words} common words and {translations_per_word} for each: give 0 or more"
            )
        owner, translation = np.divmod(lexicon.keys[lexicon.top_entries(translations_per_word)], len(lexicon.target))
        translation = target.ids(lexicon.target.tokens)[translation]
        everywhere = np.zeros(len(target), bool)
        everywhere[np.argsort(-target.counts[UNK + 1 :], kind="stable")[:frequent_words] + UNK + 1] = True
        everywhere[translation[owner == NULL]] = True
        everywhere[[START, END, UNK]] = False, True, True
        numbers = source.ids(lexicon.source.tokens)[owner]
        own = (numbers != UNK) & (translation != UNK)
        order = np.lexsort((translation[own], numbers[own]))
        starts = np.searchsorted(numbers[own][order], np.arange(len(source) + 1))
        found = torch.from_numpy(translation[own][order].astype(np.int64))
        came = source.counts[UNK + 1 :]
        covered = float(came[np.diff(starts)[UNK + 1 :] > 0].sum() / came.sum()) if came.any() else 1.0
        return cls(torch.from_numpy(starts), found, torch.from_numpy(everywhere), covered)

    def allowed_words(self, source: Any) -> Tensor:
        """The words that the translations of some sentences may have.  # (sentences, |V_e|)"""
        import torch

        text = source.as_corpus()
        flat = torch.from_numpy(text.ids.astype(np.int64))
        sentence = torch.from_numpy(np.repeat(np.arange(len(text)), np.diff(text.offsets)))
        sizes = self.starts[flat + 1] - self.starts[flat]  # (words of the source,)
        first = torch.repeat_interleave(self.starts[flat] - (sizes.cumsum(0) - sizes), sizes)
        found = self.always_allowed.repeat(len(text), 1)
        found[torch.repeat_interleave(sentence, sizes), self.translations[first + torch.arange(len(first))]] = True
        return found


class _AllowedWords(NamedTuple):
    """The words that some sentences allow."""

    allowed: Tensor  # (sentences, |V|)
    words: Tensor  # (n,) those of all of them
    subset: Any  # what the translator needs to compare these
    bias: Tensor  # (sentences, n) 0 where a sentence allows a word, else -inf


class ShortlistScorer(BaseTranslator):
    """A translator by which all words outside a sentence's shortlist are impossible."""

    def __init__(self, model: Any, shortlist: Shortlist):
        if not isinstance(model, SubsetScorer) or not isinstance(model, BaseTranslator):
            raise DataError("a shortlist is for a translator; give one to each member of an ensemble")
        if getattr(model, "classes", None) is not None:
            raise DataError("a softmax by classes cannot compare some words alone; train with --softmax full")
        self.model, self.shortlist = model, shortlist
        self.vocab, self.unknown = model.vocab, model.unknown
        self.source, self.target, self.length_prior = model.source, model.target, model.length_prior
        self.source_vocab = model.source.vocab
        self.settings = getattr(model, "settings", None)
        self._prepared: Any = model.prepare_for_search()
        self._last: _AllowedWords | None = None

    @property
    def has_attention(self) -> bool:
        return self.model.has_attention

    # -- the scorer ----------------------------------------------------------------------------------------------------

    def start(self, batch: Batch, carry: Carry = None) -> State:
        import torch

        state = self._prepared.start(batch, carry)
        memory = (state.memory, self.shortlist.allowed_words(batch.source))
        return State(state.rows, memory, torch.arange(batch.num_rows) if state.sentence is None else state.sentence)

    def sparse_log_probs(self, state: State) -> tuple[Tensor, Tensor]:
        """log P of all words of the shortlists of some sentences, and which these are.  # (rows, n), (n,)"""
        union = self._allowed_in_batch(state.memory[1])
        scores = self._prepared.subset_scores(self._inner(state), union.subset)
        return (scores + union.bias[state.sentence]).log_softmax(dim=1), union.words

    def _allowed_in_batch(self, allowed: Tensor) -> _AllowedWords:
        """All that any sentence allows. Step after step asks for the same, so the last is kept.  # (sentences, |V|)"""
        import torch

        if self._last is None or self._last.allowed is not allowed:
            words = allowed.any(dim=0).nonzero()[:, 0]  # (n,)
            some = self.model.word_subset(words)
            own = allowed.index_select(1, words)  # (sentences, n)
            barred = torch.zeros(own.shape).masked_fill_(~own, -np.inf)
            self._last = _AllowedWords(allowed, words, some, barred)
        return self._last

    def log_probs(self, state: State) -> Tensor:
        return scatter_to_vocabulary(*self.sparse_log_probs(state), len(self.vocab))

    def advance(self, state: State, words: Tensor) -> State:
        inner = self._prepared.advance(self._inner(state), words)
        return State(inner.rows, (inner.memory, state.memory[1]), state.sentence)

    def finish(self, state: State) -> Carry:
        return self.model.finish(self._inner(state))

    def attention(self, state: State) -> Tensor | None:
        return self.model.attention(self._inner(state)) if isinstance(self.model, AttentionScorer) else None

    def _inner(self, state: State) -> State:
        """Where the translator itself is."""
        memory = state.memory[0]
        return State(state.rows, memory, None if memory is None else state.sentence)

    @property
    def without_shortlist(self) -> Any:
        """The translator itself, by which no word is impossible."""
        return self.model.without_shortlist
