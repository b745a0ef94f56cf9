"""Entropy pruning: n-grams go whose loss the model hardly feels (Stolcke 1998)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.vocabulary import END, START
from dragoman.ngram.table import NgramTable, keep_nodes, lookup, renormalise, stored_log_prob

Floats = NDArray[np.float64]


def prune_by_entropy(table: NgramTable, threshold: float) -> NgramTable:
    """The table without the n-grams whose loss raises the perplexity by less than the share `threshold`.

    Words all stay, and so does an n-gram that is the context of a longer one that stays. Each n-gram is judged as if
    it alone were dropped; the back-off weights are chosen anew when all are gone.
    """
    trie, loss = table.trie, pruning_losses(table)
    keep = np.ones(trie.nodes, bool)
    above = np.zeros(0, np.int64)  # contexts of the n-grams that stay, one order up
    for order in range(trie.order, 1, -1):
        span = trie.span(order)
        keep[span] = np.expm1(loss[span]) >= threshold
        keep[above] = True
        above = trie.parents(order)[keep[span]]
    return renormalise(keep_nodes(table, keep))


def pruning_losses(table: NgramTable) -> Floats:
    """D(p || p') for every n-gram of two words or more: the relative entropy between the model with and without it."""
    trie = table.trie
    marginal = np.exp(context_log_probs(table))
    loss = np.zeros(trie.nodes)
    for order in range(1, trie.order):

        def fill(span: tuple[int, int]) -> None:
            _losses(*table.arrays(), marginal, *span, loss)

        parallel_map(fill, split_range(trie.levels[order], trie.levels[order + 1]))
    return loss


def context_log_probs(table: NgramTable) -> Floats:
    """log p(h) of every context: the model's own probabilities along the string.  # (contexts,)

    `<s>` is never predicted; there are as many of it as of `</s>`, so it borrows that probability.
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
            loss[child] = np.exp(lower)  # kept here until the sum is known
            free -= loss[child]
        free = max(free, 0.0)
        left = np.exp(log_backoff[node]) * free
        for child in range(begin[node], begin[node + 1]):
            kept = np.exp(stored_log_prob(levels, log_prob, codebook, child))
            loss[child] = _divergence(kept, loss[child], left, free) * marginal[node] if marginal[node] > 0.0 else 0.0


@kernel
def _divergence(kept: float, lower: float, left: float, free: float) -> float:
    """sum_w P(w | h) log P(w | h) / P'(w | h), where P' backs off for one listed word more.

    That word has P(w | h) = kept and P(w | h') = lower. The unlisted words have the mass `left` in P, `free` in the
    shorter context, so that the back-off weight goes from left / free to (left + kept) / (free + lower).
    """
    if kept > 0.0 and lower == 0.0:
        return np.inf  # nothing else gives this word a probability
    divergence = 0.0
    if kept > 0.0:
        divergence += kept * np.log(kept * (free + lower) / (lower * (left + kept)))
    if left > 0.0:
        divergence += left * np.log(left * (free + lower) / (free * (left + kept)))
    return max(divergence, 0.0)  # rounding can make it negative
