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
