"""Entropy pruning: remove n-grams whose removal hardly changes the model (Stolcke 1998)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.vocabulary import END, START
from dragoman.ngram.table import NgramTable, keep_nodes, lookup, renormalise, stored_log_prob
from dragoman.ngram.trie import keep_with_contexts

Floats = NDArray[np.float64]


def prune_by_entropy(table: NgramTable, threshold: float) -> NgramTable:
    """Remove the n-grams whose removal raises the perplexity by less than the share `threshold`.

    Unigrams and the contexts of longer n-grams that stay are kept. The effect of each n-gram is computed as if only it
    were removed; the back-off weights are recomputed after all have been removed.
    """
    keep = np.expm1(pruning_losses(table)) >= threshold
    keep[: table.trie.levels[2]] = True
    return renormalise(keep_nodes(table, keep_with_contexts(table.trie, keep)))


def pruning_losses(table: NgramTable) -> Floats:
    """Return D(p || p') of every n-gram of two words or more: the relative entropy of the models with and without it."""
    trie = table.trie
    marginal = np.exp(context_log_probs(table))
    loss = np.zeros(trie.nodes)
    for order in range(1, trie.order):

        def fill(span: tuple[int, int]) -> None:
            _losses(*table.arrays(), marginal, *span, loss)

        parallel_map(fill, split_range(trie.levels[order], trie.levels[order + 1]))
    return loss


def context_log_probs(table: NgramTable) -> Floats:
    """Return log p(h) of every context by the model's probabilities along the string.  # (contexts,)

    `<s>` is never predicted. It occurs as often as `</s>`, so it is given the same probability.
    """
    trie = table.trie
    log_prob = np.zeros(trie.contexts)
    for order in range(1, trie.order):
        span = trie.span(order)
        log_prob[span] = table.values(order)
        if order == 1:
            log_prob[1 + START] = log_prob[1 + END]
        else:
            log_prob[span] += log_prob[trie.parents(order)]
    return log_prob


# -- kernels -----------------------------------------------------------------------------------------------------


@kernel
def _losses(
    levels: Any,
    word: Any,
    begin: Any,
    suffix: Any,
    log_prob: Any,
    log_backoff: Any,
    codebook: Any,
    marginal: Any,
    first: int,
    last: int,
    loss: Any,
) -> None:
    """Fill in the losses of the n-grams that continue the contexts first..last."""
    for node in range(first, last):
        free = 1.0  # what the shorter context gives to words that are not listed here
        for child in range(begin[node], begin[node + 1]):
            lower, _ = lookup(levels, word, begin, suffix, log_prob, log_backoff, codebook, suffix[node], word[child])
            loss[child] = np.exp(lower)  # stored here until the sum is known
            free -= loss[child]
        free = max(free, 0.0)
        left = np.exp(log_backoff[node]) * free
        for child in range(begin[node], begin[node + 1]):
            prob = np.exp(stored_log_prob(levels, log_prob, codebook, child))
            loss[child] = _divergence(prob, loss[child], left, free) * marginal[node] if marginal[node] > 0.0 else 0.0


@kernel
def _divergence(prob: float, lower: float, left: float, free: float) -> float:
    """sum_w P(w | h) log P(w | h) / P'(w | h), where P' backs off for one more listed word.

    That word has P(w | h) = prob and P(w | h') = lower. The unlisted words have the mass `left` in P and `free` in the
    shorter context, so the back-off weight changes from left / free to (left + prob) / (free + lower).
    """
    if prob > 0.0 and lower == 0.0:
        return np.inf  # nothing else gives this word a probability
    divergence = 0.0
    if prob > 0.0:
        divergence += prob * np.log(prob * (free + lower) / (lower * (left + prob)))
    if left > 0.0:
        divergence += left * np.log(left * (free + lower) / (free * (left + prob)))
    return max(divergence, 0.0)  # rounding can make it negative
