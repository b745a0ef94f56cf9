"""All n-grams of a model as one flat trie, and walks over it.

Node 0 is the empty string. Nodes 1 to |V| are the words (word w is node 1 + w). Then come all bigrams, all trigrams and
so on, each order sorted by its words from left to right. So the children of a node (the n-grams that continue it) are
consecutive and sorted by their last word: `begin[node]` up to `begin[node + 1]`. `suffix[node]` is the same string
without its first word, which is where a back-off goes.

A node below the highest order is both an n-gram with a probability and a context with a back-off weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range

ROOT = 0


@dataclass(frozen=True)
class Trie:
    """The strings of an n-gram model, without their probabilities."""

    levels: tuple[int, ...]  # levels[k] is the first node of order k; the last entry is the number of nodes
    word: NDArray[np.int32]  # (nodes,) the last word of each string
    begin: NDArray[np.int32]  # (contexts + 1,) the first child of each context
    suffix: NDArray[np.int32]  # (nodes,) the string without its first word

    @property
    def order(self) -> int:
        return len(self.levels) - 2

    @property
    def nodes(self) -> int:
        return self.levels[-1]

    @property
    def contexts(self) -> int:
        """The number of nodes below the highest order, which can be continued."""
        return self.levels[-2]

    def span(self, order: int) -> slice:
        """Return the nodes of one order."""
        return slice(self.levels[order], self.levels[order + 1])

    def sizes(self) -> list[int]:
        """Return the number of n-grams of order 1, 2, ..."""
        return [self.levels[k + 1] - self.levels[k] for k in range(1, self.order + 1)]

    def parents(self, order: int) -> NDArray[np.int64]:
        """Return the context of each n-gram of this order."""
        contexts = self.span(order - 1)
        return np.repeat(
            np.arange(contexts.start, contexts.stop), np.diff(self.begin[contexts.start : contexts.stop + 1])
        )

    def words(self, order: int) -> NDArray[np.int32]:
        """Return all n-grams of one order as rows of words.  # (n-grams, order)"""
        rows = np.empty((self.levels[order + 1] - self.levels[order], order), np.int32)
        node = np.arange(self.levels[order], self.levels[order + 1])
        for k in range(order, 0, -1):
            rows[:, k - 1] = self.word[node]
            parents = self.parents(k)
            node = parents[node - self.levels[k]]
        return rows


def build_trie(levels: list[int], word: NDArray[np.int32], begin: NDArray[np.int32]) -> Trie:
    """Build a trie by computing its suffix links."""
    suffix = np.zeros(len(word), np.int32)
    for order in range(2, len(levels) - 1):

        def link(span: tuple[int, int]) -> None:
            _link_suffixes(word, begin, suffix, *span)

        parallel_map(link, split_range(levels[order - 1], levels[order]))
    return Trie(tuple(levels), word, begin, suffix)


def keep_with_contexts(trie: Trie, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Extend a mask of nodes by the contexts of all nodes in it.  # (nodes,)"""
    keep = keep.copy()
    for order in range(trie.order, 2, -1):
        keep[trie.parents(order)[keep[trie.span(order)]]] = True
    return keep


@kernel
def find_child(word: Any, begin: Any, node: int, w: int) -> int:
    """Return the child of `node` by word `w`, or -1."""
    if node == ROOT:
        return w + 1
    low = begin[node]
    size = begin[node + 1] - low
    if size == 0:
        return -1
    while size > 1:  # a binary search without a branch to mispredict
        half = size >> 1
        low = low + half if word[low + half - 1] < w else low
        size -= half
    return low if word[low] == w else -1


@kernel
def descend(word: Any, begin: Any, suffix: Any, log_backoff: Any, node: int, w: int) -> tuple[float, int]:
    """Return the sum of back-off weights and the longest string in the trie that ends `node` continued by `w`.

    Scoring spends its time here, so the search of `find_child` is written out, which saves a third.
    """
    backoff = 0.0
    while node != ROOT:
        low = begin[node]
        size = begin[node + 1] - low
        if size > 0:
            while size > 1:
                half = size >> 1
                low = low + half if word[low + half - 1] < w else low
                size -= half
            if word[low] == w:
                return backoff, low
        backoff += log_backoff[node]
        node = suffix[node]
    return backoff, w + 1


@kernel
def longest(word: Any, begin: Any, suffix: Any, node: int, w: int) -> int:
    """Return the longest string in the trie that ends `node` continued by `w`."""
    while True:
        child = find_child(word, begin, node, w)
        if child >= 0:
            return child
        node = suffix[node]


@kernel
def advance(word: Any, begin: Any, suffix: Any, node: int, w: int) -> int:
    """Return the context after `w`: the longest known string that ends the history and can be continued."""
    child = longest(word, begin, suffix, node, w)
    return child if child + 1 < begin.size else suffix[child]


@kernel
def _link_suffixes(word: Any, begin: Any, suffix: Any, first: int, last: int) -> None:
    """Compute the suffixes of the children of the contexts first..last from those of the contexts."""
    for node in range(first, last):
        shorter = suffix[node]
        for child in range(begin[node], begin[node + 1]):
            suffix[child] = longest(word, begin, suffix, shorter, word[child])
