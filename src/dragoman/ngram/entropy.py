"""How sure an n-gram model is: the entropy of its distributions, without writing any of them out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.ngram.table import NgramTable, lookup, stored_log_prob
from dragoman.ngram.trie import ROOT, Trie


def entropies(table: NgramTable, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
    """H = -sum_w P(w | h) log P(w | h) of each context node, in nats.  # (contexts,)

    The words not listed after h have beta(h) times their probability after the shorter context h', so their part of
    the sum comes from that of h': the work a context takes is the number of words listed, not that of the vocabulary.
    """
    nodes = _with_suffixes(table.trie, contexts)
    shorter = np.searchsorted(nodes, table.trie.suffix[nodes])
    sums = np.empty(len(nodes))
    _sum_p_log_p(*table.arrays(), nodes, shorter, sums)
    return np.maximum(0.0, -sums[np.searchsorted(nodes, contexts)])


def _with_suffixes(trie: Trie, contexts: NDArray[np.int64]) -> NDArray[np.int64]:
    """These contexts and all shorter ones that they back off to, each once, the empty one first."""
    found = [np.array([ROOT], np.int64)]
    while len(contexts):
        contexts = np.unique(contexts)
        found.append(contexts)
        contexts = trie.suffix[contexts[contexts != ROOT]].astype(np.int64)
    return np.unique(np.concatenate(found))


# -- kernels -----------------------------------------------------------------------------------------------------


@kernel
def _p_log_p(log_p: float) -> float:
    """p log p, which is 0 where p is."""
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
    """The sum of p log p after each node. Its suffix stands before it among the nodes: `shorter` says where."""
    sums[0] = 0.0
    for node in range(levels[1], levels[2]):
        sums[0] += _p_log_p(stored_log_prob(levels, log_prob, codebook, node))
    for i in range(1, nodes.size):
        node = nodes[i]
        listed = 0.0  # sum of p log p over the words listed after this context
        rest, free = sums[shorter[i]], 1.0  # what the shorter context gives to all the others: sum of q log q, and of q
        for child in range(begin[node], begin[node + 1]):
            listed += _p_log_p(stored_log_prob(levels, log_prob, codebook, child))
            q, _ = lookup(levels, word, begin, suffix, log_prob, log_backoff, codebook, suffix[node], word[child])
            rest -= _p_log_p(q)
            free -= np.exp(q)
        spread = log_backoff[node]
        sums[i] = listed + (np.exp(spread) * (rest + spread * free) if spread > -np.inf else 0.0)
