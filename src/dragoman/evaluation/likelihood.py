"""How probable a model finds a text: log-likelihood, perplexity (eq. ngramlm:perplexity), bits per character.

Every unknown word is paid for twice: its class `<unk>` by the model, its identity by the unknown-word model. The
numbers here keep the two parts apart, and add them up only where models of different vocabularies are compared.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dragoman.core.scorer import Scorer
from dragoman.data.corpus import Corpus
from dragoman.evaluation.log_probs import token_log_probs, unknown_log_probs


@runtime_checkable
class NgramOrderReporter(Protocol):
    """A scorer that can say how many tokens were answered by n-grams of each order."""

    def matched_orders(self, corpus: Corpus) -> dict[int, int]: ...


@dataclass(frozen=True)
class Likelihood:
    """What a text cost, in numbers that add up: the likelihood of two texts is the sum of theirs.

    >>> one = Likelihood(sentences=1, words=1, known=-2 * math.log(4))
    >>> round(one.perplexity, 9), round(one.perplexity_words, 9)
    (4.0, 16.0)
    >>> (one + one).perplexity == one.perplexity
    True
    """

    sentences: int = 0
    words: int = 0
    unknown_words: int = 0  # words outside the vocabulary; a literal `<unk>` is a word like any other
    characters: int = 0
    impossible: int = 0  # tokens of probability 0
    log_likelihood_known: float = 0.0  # log P of the tokens that are not unknown words, `</s>` among them
    log_likelihood_unknown_class: float = 0.0  # log P(<unk>) wherever an unknown word stands
    log_likelihood_unknown: float = 0.0  # which unknown words they were
    found_orders: Mapping[int, int] = field(default_factory=dict)  # tokens answered by each order of n-grams

    def __add__(self, other: Likelihood) -> Likelihood:
        return Likelihood(
            self.sentences + other.sentences,
            self.words + other.words,
            self.unknown_words + other.unknown_words,
            self.characters + other.characters,
            self.impossible + other.impossible,
            self.log_likelihood_known + other.log_likelihood_known,
            self.log_likelihood_unknown_class + other.log_likelihood_unknown_class,
            self.log_likelihood_unknown + other.log_likelihood_unknown,
            {
                order: self._order_count(order) + other._order_count(order)
                for order in {**self.found_orders, **other.found_orders}
            },
        )

    def _order_count(self, order: int) -> int:
        return self.found_orders.get(order, 0)

    @property
    def tokens(self) -> int:
        """Words and sentence ends."""
        return self.words + self.sentences

    @property
    def log_likelihood(self) -> float:
        """log P(E) of all sentences, where an unknown word costs its class alone (eq. ngramlm:loglikelihood)."""
        return self.log_likelihood_known + self.log_likelihood_unknown_class

    @property
    def log_likelihood_total(self) -> float:
        """log P(E) with unknown words paid for in full."""
        return self.log_likelihood + self.log_likelihood_unknown

    @property
    def perplexity(self) -> float:
        """The full price, a token: exp(-log P / (words + sentence ends))."""
        return _perplexity(self.log_likelihood_total, self.tokens)

    @property
    def perplexity_words(self) -> float:
        """The full price, a word: `</s>` is paid for but not counted: the tutorial's length."""
        return _perplexity(self.log_likelihood_total, self.words)

    @property
    def perplexity_class(self) -> float:
        """A token's price where an unknown word costs only its class."""
        return _perplexity(self.log_likelihood, self.tokens)

    @property
    def perplexity_known(self) -> float:
        """A token's price with unknown words left out of both sum and count."""
        return _perplexity(self.log_likelihood_known, self.tokens - self.unknown_words)

    @property
    def bits_per_character(self) -> float:
        """The full price in bits for each character, spaces and line breaks among them: free of any tokenisation."""
        return -self.log_likelihood_total / math.log(2) / self.characters if self.characters else math.nan

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values; what is infinite or undefined is None, as JSON has no name for it."""
        names = (
            *("sentences", "words", "tokens", "unknown_words", "log_likelihood", "log_likelihood_unknown"),
            *("perplexity", "perplexity_words", "perplexity_class", "perplexity_known", "bits_per_character"),
            *("characters", "impossible"),
        )
        report: dict[str, Any] = {name: finite_or_none(getattr(self, name)) for name in names}
        return {**report, "found_orders": dict(self.found_orders)} if self.found_orders else report


@dataclass(frozen=True, eq=False)
class TokenScores:
    """What each token of a text cost by a model, before anything is added up."""

    corpus: Corpus
    log_probs: NDArray[np.float64]  # (tokens,) the class `<unk>` for unknown words
    unknown_log_probs: NDArray[np.float64]  # (unknown words,) which word each of them was
    found_orders: Mapping[int, int] = field(default_factory=dict)

    @property
    def sentence_class_log_probs(self) -> NDArray[np.float64]:
        """log P of each sentence, where an unknown word costs its class alone.  # (sentences,)"""
        return self._by_sentence(self.log_probs)

    @property
    def full_log_probs(self) -> NDArray[np.float64]:
        """log P of each token with unknown words paid for in full.  # (tokens,)"""
        log_probs = self.log_probs.copy()
        log_probs[self.corpus.unknown_token_positions] += self.unknown_log_probs
        return log_probs

    @property
    def sentence_log_probs(self) -> NDArray[np.float64]:
        """log P of each sentence with unknown words paid for in full.  # (sentences,)"""
        return self._by_sentence(self.full_log_probs)

    def _by_sentence(self, tokens: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(self.corpus):
            return np.zeros(0)
        return np.add.reduceat(tokens, self.corpus.token_offsets[:-1])

    def likelihood(self) -> Likelihood:
        """The sum of it all."""
        is_unknown = np.zeros(self.corpus.num_tokens, bool)
        is_unknown[self.corpus.unknown_token_positions] = True
        unknown_class = self.log_probs[is_unknown]
        known = self.log_probs[~is_unknown]
        return Likelihood(
            sentences=self.corpus.num_sentences,
            words=self.corpus.num_words,
            unknown_words=len(self.unknown_log_probs),
            characters=self.corpus.num_characters,
            impossible=int(np.isneginf(known).sum() + np.isneginf(unknown_class + self.unknown_log_probs).sum()),
            log_likelihood_known=float(known.sum()),
            log_likelihood_unknown_class=float(unknown_class.sum()),
            log_likelihood_unknown=float(self.unknown_log_probs.sum()),
            found_orders=self.found_orders,
        )


def token_scores(scorer: Scorer, corpus: Corpus) -> TokenScores:
    """What each token costs by this model. The text must be read with the model's own vocabulary."""
    return TokenScores(
        corpus,
        token_log_probs(scorer, corpus),
        unknown_log_probs(scorer, corpus),
        scorer.matched_orders(corpus) if isinstance(scorer, NgramOrderReporter) else {},
    )


def likelihood(scorer: Scorer, corpus: Corpus) -> Likelihood:
    """What the text costs by this model. The text must be read with the model's own vocabulary."""
    return token_scores(scorer, corpus).likelihood()


def _perplexity(log_likelihood: float, count: int) -> float:
    """exp(-log-likelihood / count); of nothing it is undefined."""
    if count == 0:
        return math.nan
    try:
        return math.exp(-log_likelihood / count)
    except OverflowError:
        return math.inf


def finite_or_none(value: float) -> float | None:
    """A value that JSON has a name for, or None."""
    return value if math.isfinite(value) else None
