"""The entropy of n-gram distributions, without computing whole distributions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.ngram.table import NgramTable, lookup, stored_log_prob
from dragoman.ngram.trie import ROOT, Trie


def entropies(table: NgramTable, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return H = -sum_w P(w | h) log P(w | h) of each context node, in nats.  # (contexts,)

    Words that are not listed after h have beta(h) times their probability after the shorter context h', so their part
    of the sum follows from the sum of h'. The work per context is proportional to the words listed, not to |V|.
    """
    nodes = _with_suffixes(table.trie, contexts)
    shorter = np.searchsorted(nodes, table.trie.suffix[nodes])
    sums = np.empty(len(nodes))
    _sum_p_log_p(*table.arrays(), nodes, shorter, sums)
    return np.maximum(0.0, -sums[np.searchsorted(nodes, contexts)])


def _with_suffixes(trie: Trie, contexts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return these contexts and all contexts that they back off to, sorted and distinct, the empty one first."""
    nodes = [np.array([ROOT], np.int64)]
    while len(contexts):
        contexts = np.unique(contexts)
        nodes.append(contexts)
        contexts = trie.suffix[contexts[contexts != ROOT]].astype(np.int64)
    return np.unique(np.concatenate(nodes))


# -- kernels -----------------------------------------------------------------------------------------------------


@kernel
def _p_log_p(log_p: float) -> float:
    """p log p, which is 0 if p is 0."""
    return np.exp(log_p) * log_p if log_p > -np.inf else 0.0


@kernel
def _sum_p_log_p(
    levels: Any,
    word: Any,
    begin: Any,
    suffix: Any,
    log_prob: Any,
    log_backoff: Any,
    codebook: Any,
    nodes: Any,
    shorter: Any,
    sums: Any,
) -> None:
    """Sum p log p after each node. `shorter` is the index of its suffix, which comes before it in `nodes`."""
    sums[0] = 0.0
    for node in range(levels[1], levels[2]):
        sums[0] += _p_log_p(stored_log_prob(levels, log_prob, codebook, node))
    for i in range(1, nodes.size):
        node = nodes[i]
        listed = 0.0  # sum of p log p over the words listed after this context
        rest, free = sums[shorter[i]], 1.0  # sum of q log q and of q over the other words, after the shorter context
        for child in range(begin[node], begin[node + 1]):
            listed += _p_log_p(stored_log_prob(levels, log_prob, codebook, child))
            q, _ = lookup(levels, word, begin, suffix, log_prob, log_backoff, codebook, suffix[node], word[child])
            rest -= _p_log_p(q)
            free -= np.exp(q)
        backoff = log_backoff[node]
        sums[i] = listed + (np.exp(backoff) * (rest + backoff * free) if backoff > -np.inf else 0.0)
