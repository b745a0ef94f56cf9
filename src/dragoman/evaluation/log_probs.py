"""Log-probabilities of the tokens of texts and of given translations, by any scorer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.core.scorer import BatchedScorer, PairScorer, Scorer, fold
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.ranges import split_by_size

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
    target.require_vocab(scorer.vocab)
    pairs, log_probs = ParallelCorpus(source, target), np.zeros(target.num_tokens)
    order = np.argsort(pairs.sort_keys, kind="stable")
    for batch in split_by_size(order, pairs.weights, MAX_BATCH_TOKENS, 4 * MAX_BATCH_TOKENS):
        positions = _token_positions(target, batch)
        log_probs[positions] = _batch_pair_log_probs(scorer, source.select(batch), target.select(batch))
    return log_probs


def _token_positions(corpus: Corpus, sentences: NDArray[np.integer]) -> NDArray[np.int64]:
    """The positions of the tokens of these sentences among all tokens.  # (tokens of these sentences,)"""
    sizes = corpus.sizes[sentences]
    starts = np.cumsum(sizes) - sizes
    return np.repeat(corpus.token_offsets[sentences] - starts, sizes) + np.arange(sizes.sum())


def _batch_pair_log_probs(scorer: Scorer, source: Corpus, target: Corpus) -> NDArray[np.float64]:
    from dragoman.data.batches import Batch

    if isinstance(scorer, PairScorer):
        return scorer.pair_log_probs(source, target)
    batch = Batch.from_sentences(target, source)
    return fold(scorer, batch)[0][batch.mask].double().numpy()


def unknown_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """Compute log P of the spelling of each unknown word.  # (unknown words,)"""
    if not corpus.spellings:
        return np.zeros(0)
    return np.array(scorer.unknown.log_probs(corpus.spellings))[corpus.unknown_spelling_ids]
