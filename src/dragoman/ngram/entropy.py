"""The entropy of n-gram distributions, and pruning by it (Stolcke 1998), without computing whole distributions."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.data.vocabulary import END, START
from dragoman.ngram.table import NgramTable, keep_nodes, lookup, renormalize, stored_log_prob
from dragoman.ngram.trie import ROOT, keep_with_contexts

Floats = NDArray[np.float64]


def entropies(table: NgramTable, contexts: NDArray[np.int64]) -> Floats:
    """Return H = -sum_w P(w | h) log P(w | h) of each context node, in nats.  # (contexts,)

    Words that are not listed after h have beta(h) times their probability after the shorter context h', so their part
    of the sum follows from the sum of h'. The work per context is proportional to the words listed, not to |V|.
    """
    suffix, visited, longer = table.trie.suffix, [np.array([ROOT], np.int64)], contexts
    while len(longer):  # also all contexts that they back off to
        visited.append(np.unique(longer))
        longer = suffix[visited[-1][visited[-1] != ROOT]].astype(np.int64)
    nodes = np.unique(np.concatenate(visited))
    sums = np.empty(len(nodes))
    _sum_p_log_p(table.arrays(), suffix, nodes, np.searchsorted(nodes, suffix[nodes]), sums)
    return np.maximum(0.0, -sums[np.searchsorted(nodes, contexts)])


def prune_by_entropy(table: NgramTable, threshold: float) -> NgramTable:
    """Remove the n-grams whose removal raises the perplexity by less than the share `threshold`.

    Unigrams and the contexts of longer n-grams that stay are kept. The effect of each n-gram is computed as if only it
    were removed; the back-off weights are recomputed after all have been removed.
    """
    keep = np.expm1(pruning_losses(table)) >= threshold
    keep[: table.trie.levels[2]] = True
    return renormalize(keep_nodes(table, keep_with_contexts(table.trie, keep)))


def pruning_losses(table: NgramTable) -> Floats:
    """Return D(p || p') of every n-gram of two words or more: the relative entropy of the models with and without it."""
    loss = np.zeros(table.trie.nodes)
    table.trie.for_each_level(
        partial(_losses, table.arrays(), table.trie.suffix, np.exp(context_log_probs(table)), loss)
    )
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


@kernel
def _p_log_p(log_p: float) -> float:
    """p log p, which is 0 if p is 0."""
    return np.exp(log_p) * log_p if log_p > -np.inf else 0.0


@kernel
def _sum_p_log_p(table: Any, suffix: Any, nodes: Any, shorter: Any, sums: Any) -> None:
    """Sum p log p after each node. `shorter` is the index of its suffix, which comes before it in `nodes`."""
    sums[0] = 0.0
    for node in range(table.levels[1], table.levels[2]):
        sums[0] += _p_log_p(stored_log_prob(table, node))
    for i in range(1, nodes.size):
        node = nodes[i]
        listed = 0.0  # sum of p log p over the words listed after this context
        rest, free = sums[shorter[i]], 1.0  # sum of q log q and of q over the other words, after the shorter context
        for child in range(table.begin[node], table.begin[node + 1]):
            listed += _p_log_p(stored_log_prob(table, child))
            q = lookup(table, suffix, suffix[node], table.word[child])
            rest -= _p_log_p(q)
            free -= np.exp(q)
        backoff = table.log_backoff[node]
        sums[i] = listed + (np.exp(backoff) * (rest + backoff * free) if backoff > -np.inf else 0.0)


@kernel
def _losses(table: Any, suffix: Any, marginal: Any, loss: Any, contexts: Any) -> None:
    """Fill in the losses of the n-grams that continue a range of contexts."""
    for node in range(contexts[0], contexts[1]):
        free = 1.0  # what the shorter context gives to words that are not listed here
        for child in range(table.begin[node], table.begin[node + 1]):
            loss[child] = np.exp(lookup(table, suffix, suffix[node], table.word[child]))  # until the sum is known
            free -= loss[child]
        free = max(free, 0.0)
        left = np.exp(table.log_backoff[node]) * free
        for child in range(table.begin[node], table.begin[node + 1]):
            prob = np.exp(stored_log_prob(table, child))
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
