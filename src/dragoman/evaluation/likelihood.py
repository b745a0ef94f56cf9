"""Likelihood of texts: log-likelihood, perplexity (eq. ngramlm:perplexity), bits per character.

The probability of an unknown word has two factors: that of its class `<unk>`, by the model, and that of its spelling,
by the unknown-word model. They are kept separate here, and multiplied only where models with different vocabularies
are compared.

A model may split words into pieces or characters. The perplexities per word and per character divide by the words and
characters of the text, so that all models can be compared. The probability of a text is that of its default
segmentation: a lower bound, because other segmentations have a probability as well.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dragoman.core.scorer import BatchedScorer, PairScorer, Scorer, fold
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.corpus import TextLengths as TextLengths
from dragoman.data.ranges import split_by_size
from dragoman.evaluation.results import AdditiveResult, to_json

MAX_BATCH_TOKENS = 4096  # when translations are scored


def token_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """Compute log P of each token of a text, that of `<unk>` for unknown words.  # (tokens,)

    The text is one stream: the state that a model carries over from a sentence reaches the next.
    """
    corpus.require_vocab(scorer.vocab)
    if isinstance(scorer, BatchedScorer):
        return scorer.token_log_probs(corpus)
    return folded_log_probs(scorer, corpus)


def folded_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """Compute the same with the fold, sentence by sentence.  # (tokens,)"""
    from dragoman.data.batches import Batch

    carry, parts = None, [np.zeros(0)]
    for sentence in corpus:
        log_probs, state = fold(scorer, Batch.from_sentences([sentence]), carry)
        carry = scorer.finish(state)
        parts.append(log_probs[0].double().numpy())
    return np.concatenate(parts)


def pair_log_probs(scorer: Scorer, source: Corpus, target: Corpus) -> NDArray[np.float64]:
    """Compute log P of each token of translations given their sources, that of `<unk>` for unknown words.  # (tokens,)

    Pairs of similar lengths are batched, whatever their order.
    """
    from dragoman.data.batches import Batch

    target.require_vocab(scorer.vocab)
    pairs, log_probs = ParallelCorpus(source, target), np.zeros(target.num_tokens)
    order = np.argsort(pairs.sort_keys, kind="stable")
    for batch in split_by_size(order, pairs.weights, MAX_BATCH_TOKENS, 4 * MAX_BATCH_TOKENS):
        sources, targets, sizes = source.select(batch), target.select(batch), target.sizes[batch]
        starts = target.token_offsets[batch] - np.cumsum(sizes) + sizes
        positions = np.repeat(starts, sizes) + np.arange(sizes.sum())  # of the batch's tokens among all tokens
        if isinstance(scorer, PairScorer):
            log_probs[positions] = scorer.pair_log_probs(sources, targets)
        else:
            padded = Batch.from_sentences(targets, sources)
            log_probs[positions] = fold(scorer, padded)[0][padded.mask].double().numpy()
    return log_probs


def unknown_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """Compute log P of the spelling of each unknown word.  # (unknown words,)"""
    if not corpus.spellings:
        return np.zeros(0)
    return np.array(scorer.unknown.log_probs(corpus.spellings))[corpus.unknown_spelling_ids]


@runtime_checkable
class NgramOrderReporter(Protocol):
    """A scorer that reports how many tokens were predicted by n-grams of each order."""

    def matched_orders(self, corpus: Corpus) -> dict[int, int]: ...


@dataclass(frozen=True)
class Likelihood(AdditiveResult):
    """The likelihood of a text.

    >>> likelihood = Likelihood(sentences=1, words=1, log_likelihood_known=-2 * math.log(4))
    >>> round(likelihood.perplexity, 9), round(likelihood.perplexity_words, 9)
    (4.0, 16.0)
    >>> (likelihood + likelihood).perplexity == likelihood.perplexity
    True
    """

    sentences: int = 0
    words: int = 0  # separated by spaces
    extra_pieces: int = 0  # tokens of the model beyond one per word: 0 for models of words
    unknown_words: int = 0  # tokens outside the vocabulary; a literal `<unk>` is not counted
    characters: int = 0
    impossible: int = 0  # tokens of probability 0
    log_likelihood_known: float = 0.0  # log P of the tokens that are not unknown words, including `</s>`
    log_likelihood_unknown_class: float = 0.0  # log P(<unk>) of the unknown words
    log_likelihood_unknown: float = 0.0  # log P of their spellings
    matched_orders: Mapping[int, int] = field(default_factory=dict)  # tokens predicted by n-grams of each order

    @property
    def tokens(self) -> int:
        """What the model predicts: words, pieces or characters, and sentence ends."""
        return self.words + self.extra_pieces + self.sentences

    @property
    def log_likelihood(self) -> float:
        """log P(E) of all sentences, counting only the class of unknown words (eq. ngramlm:loglikelihood)."""
        return self.log_likelihood_known + self.log_likelihood_unknown_class

    @property
    def log_likelihood_total(self) -> float:
        """log P(E) of all sentences, including the spellings of unknown words."""
        return self.log_likelihood + self.log_likelihood_unknown

    @property
    def perplexity(self) -> float:
        """Per word, with sentence ends and the spellings of unknown words: exp(-log P / (words + sentence ends))."""
        return _perplexity(self.log_likelihood_total, self.words + self.sentences)

    @property
    def perplexity_words(self) -> float:
        """Per word, including the spellings of unknown words: `</s>` is predicted but not counted, as in the tutorial."""
        return _perplexity(self.log_likelihood_total, self.words)

    @property
    def perplexity_class(self) -> float:
        """Per word, with sentence ends, counting only the class of unknown words."""
        return _perplexity(self.log_likelihood, self.words + self.sentences)

    @property
    def perplexity_known(self) -> float:
        """Per token, without unknown words."""
        return _perplexity(self.log_likelihood_known, self.tokens - self.unknown_words)

    @property
    def perplexity_tokens(self) -> float:
        """Per token of the model, including the spellings of unknown words; not comparable between units."""
        return _perplexity(self.log_likelihood_total, self.tokens)

    @property
    def perplexity_characters(self) -> float:
        """Per character (with spaces and line breaks), including the spellings of unknown words."""
        return _perplexity(self.log_likelihood_total, self.characters)

    @property
    def bits_per_character(self) -> float:
        """Including the spellings of unknown words, per character (with spaces and line breaks), for any tokenisation."""
        return -self.log_likelihood_total / math.log(2) / self.characters if self.characters else math.nan

    def as_dict(self) -> dict[str, object]:
        """Plain values; infinite and undefined ones are None, as JSON has no notation for them."""
        names = (
            *("sentences", "words", "tokens", "unknown_words", "log_likelihood", "log_likelihood_unknown"),
            *("perplexity", "perplexity_words", "perplexity_class", "perplexity_known", "bits_per_character"),
            *("perplexity_characters", "perplexity_tokens", "characters", "impossible"),
        )
        orders = {"found_orders": dict(self.matched_orders)} if self.matched_orders else {}
        return {name: to_json(getattr(self, name)) for name in names} | orders


@dataclass(frozen=True, eq=False)
class TokenScores:
    """The log-probability of each token of a text."""

    corpus: Corpus
    log_probs: NDArray[np.float64]  # (tokens,) of the class `<unk>` for unknown words
    unknown_log_probs: NDArray[np.float64]  # (unknown words,) of their spellings
    matched_orders: Mapping[int, int] = field(default_factory=dict)

    @property
    def full_log_probs(self) -> NDArray[np.float64]:
        """log P of each token, including the spellings of unknown words.  # (tokens,)"""
        log_probs = self.log_probs.copy()
        log_probs[self.corpus.unknown_token_positions] += self.unknown_log_probs
        return log_probs

    @property
    def sentence_log_probs(self) -> NDArray[np.float64]:
        """log P of each sentence, including the spellings of unknown words.  # (sentences,)"""
        return self._sum_by_sentence(self.full_log_probs)

    @property
    def sentence_class_log_probs(self) -> NDArray[np.float64]:
        """log P of each sentence, counting only the class of unknown words.  # (sentences,)"""
        return self._sum_by_sentence(self.log_probs)

    def _sum_by_sentence(self, log_probs: NDArray[np.float64]) -> NDArray[np.float64]:
        if not len(self.corpus):
            return np.zeros(0)
        return np.add.reduceat(log_probs, self.corpus.token_offsets[:-1])

    def likelihood(self) -> Likelihood:
        """Return the sums over the text."""
        is_unknown = np.zeros(self.corpus.num_tokens, bool)
        is_unknown[self.corpus.unknown_token_positions] = True
        unknown_class, known = self.log_probs[is_unknown], self.log_probs[~is_unknown]
        lengths = self.corpus.text_lengths
        return Likelihood(
            sentences=lengths.sentences,
            words=lengths.words,
            extra_pieces=self.corpus.num_words - lengths.words,
            unknown_words=len(self.unknown_log_probs),
            characters=lengths.characters,
            impossible=int(np.isneginf(known).sum() + np.isneginf(unknown_class + self.unknown_log_probs).sum()),
            log_likelihood_known=float(known.sum()),
            log_likelihood_unknown_class=float(unknown_class.sum()),
            log_likelihood_unknown=float(self.unknown_log_probs.sum()),
            matched_orders=self.matched_orders,
        )


def token_scores(scorer: Scorer, corpus: Corpus) -> TokenScores:
    """Score each token of a text, which must be encoded with the scorer's vocabulary."""
    return TokenScores(
        corpus,
        token_log_probs(scorer, corpus),
        unknown_log_probs(scorer, corpus),
        scorer.matched_orders(corpus) if isinstance(scorer, NgramOrderReporter) else {},
    )


def likelihood(scorer: Scorer, corpus: Corpus) -> Likelihood:
    """Compute the likelihood of a text, which must be encoded with the scorer's vocabulary."""
    return token_scores(scorer, corpus).likelihood()


def _perplexity(log_likelihood: float, count: int) -> float:
    """exp(-log-likelihood / count); undefined without tokens."""
    if count == 0:
        return math.nan
    try:
        return math.exp(-log_likelihood / count)
    except OverflowError:
        return math.inf


@dataclass(frozen=True)
class PairLikelihood:
    """The likelihood of translations given their sources. Perplexities do not depend on the segmentation."""

    log_likelihood: float  # natural log; an unknown token is `<unk>`
    log_likelihood_unknown: float  # of the spellings of unknown tokens
    unknown: int  # unknown tokens
    lengths: TextLengths  # of the translations

    @property
    def perplexity(self) -> float:
        """Per word and sentence end, the spellings of unknown tokens included."""
        return _perplexity(self.log_likelihood + self.log_likelihood_unknown, self.lengths.tokens)

    @property
    def perplexity_class(self) -> float:
        """Per word and sentence end, with unknown tokens as `<unk>`."""
        return _perplexity(self.log_likelihood, self.lengths.tokens)

    @property
    def perplexity_characters(self) -> float:
        """Per character, the spellings of unknown tokens included."""
        return _perplexity(self.log_likelihood + self.log_likelihood_unknown, self.lengths.characters)
