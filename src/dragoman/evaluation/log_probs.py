"""Log-probabilities of whole texts and of given translations, by any scorer."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.scorer import BatchedScorer, PairScorer, Scorer, fold
from dragoman.data.corpus import Corpus, ParallelCorpus
from dragoman.data.ranges import split_by_size

MAX_BATCH_TOKENS = 4096  # while given translations are scored


def token_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """log P of every token of a text, in order, the class `<unk>` for unknown words.  # (tokens,)

    The text is one stream: what a model carries from a sentence reaches the next.
    """
    corpus.require_vocab(scorer.vocab)
    if isinstance(scorer, BatchedScorer):
        return scorer.token_log_probs(corpus)
    return folded_log_probs(scorer, corpus)


def folded_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """The same by the fold, sentence by sentence."""
    from dragoman.data.batches import Batch

    carry, parts = None, [np.zeros(0)]
    for sentence in corpus:
        log_probs, state = fold(scorer, Batch.from_sentences([sentence]), carry)
        carry = scorer.finish(state)
        parts.append(log_probs[0].double().numpy())
    return np.concatenate(parts)


def pair_log_probs(scorer: Scorer, source: Any, target: Corpus) -> NDArray[np.float64]:
    """log P of every token of translations given their sources, in order, `<unk>` for unknown words.  # (tokens,)

    Pairs of like lengths are read together, whatever their order. # source: a `Source`
    """
    target.require_vocab(scorer.vocab)
    pairs, found = ParallelCorpus(source, target), np.zeros(target.num_tokens)
    for run in split_by_size(
        np.argsort(pairs.sort_keys, kind="stable"), pairs.weights, MAX_BATCH_TOKENS, 4 * MAX_BATCH_TOKENS
    ):
        own = target.select(run)
        found[_token_positions(target, run)] = _batch_pair_log_probs(scorer, source.select(run), own)
    return found


def _token_positions(corpus: Corpus, sentences: NDArray[np.integer]) -> NDArray[np.int64]:
    """Where the tokens of these sentences are among all tokens.  # (tokens of these sentences,)"""
    sizes = corpus.sizes[sentences]
    first = np.cumsum(sizes) - sizes
    return np.repeat(corpus.token_offsets[sentences] - first, sizes) + np.arange(sizes.sum())


def _batch_pair_log_probs(scorer: Scorer, source: Any, target: Corpus) -> NDArray[np.float64]:
    from dragoman.data.batches import Batch

    if isinstance(scorer, PairScorer):
        return scorer.pair_log_probs(source, target)
    batch = Batch.from_sentences(target, source)
    return fold(scorer, batch)[0][batch.mask].double().numpy()


def unknown_log_probs(scorer: Scorer, corpus: Corpus) -> NDArray[np.float64]:
    """What the identity of each unknown word costs.  # (unknown words,)"""
    return (
        np.array(scorer.unknown.log_probs(corpus.spellings))[corpus.unknown_spelling_ids]
        if corpus.spellings
        else np.zeros(0)
    )
