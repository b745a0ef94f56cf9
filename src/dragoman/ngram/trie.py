"""All n-grams of a model as one flat trie, and walks over it.

Node 0 is the empty string. Nodes 1 to |V| are the words (word w is node 1 + w). Then come all bigrams, all trigrams and
so on, each order sorted by its words from left to right. So the children of a node (the n-grams that continue it) are
consecutive and sorted by their last word: `begin[node]` up to `begin[node + 1]`. `suffix[node]` is the longest string of
the trie that ends this one and is shorter, which is where a back-off goes. It follows from the rest, so it is not saved.

A node below the highest order is both an n-gram with a probability and a context with a back-off weight.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import inline_kernel, kernel
from dragoman.core.threads import parallel_map, split_range

R = TypeVar("R")

ROOT = 0
MAX_NODES = 2**31 - 1  # whose numbers take 32 bits
Words = NDArray[np.integer]  # in 16 or 32 bits


def word_type(vocab_size: int) -> np.dtype[np.integer]:
    """Return the type of the words of a trie: 16 bits if they suffice."""
    return np.dtype(np.uint16 if vocab_size <= 1 << 16 else np.int32)


def node_type(nodes: int) -> np.dtype[np.signedinteger]:
    """Return the type of the numbers of nodes: 32 bits if they suffice."""
    return np.dtype(np.int32 if nodes <= MAX_NODES else np.int64)


@dataclass(frozen=True)
class Trie:
    """The strings of an n-gram model, without their probabilities."""

    levels: tuple[int, ...]  # levels[k] is the first node of order k; the last entry is the number of nodes
    word: Words  # (nodes,) the last word of each string
    begin: NDArray[np.signedinteger]  # (contexts + 1,) the first child of each context
    known_suffix: NDArray[np.signedinteger] | None = None  # (nodes,) if counting has found it
    check: Callable[[], None] | None = None  # raises an error if the arrays, not checked yet, are not valid

    @cached_property
    def suffix(self) -> NDArray[np.signedinteger]:
        """The longest shorter string that ends each string.  # (nodes,)"""
        if self.known_suffix is not None:
            return self.known_suffix
        self.require_valid()
        suffix = np.zeros(self.nodes, self.begin.dtype)
        self.for_each_level(partial(_link_suffixes, self.word, self.begin, suffix))
        return suffix

    def require_valid(self) -> None:
        """Raise an error if the arrays are not valid. Kernels other than those of scoring rely on them."""
        if self.check is not None:
            self.check()

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
        return np.diff(self.levels[1:]).tolist()

    def parents(self, order: int) -> NDArray[np.int64]:
        """Return the context of each n-gram of this order."""
        first, last = self.levels[order - 1], self.levels[order]
        return np.repeat(np.arange(first, last), np.diff(self.begin[first : last + 1]))

    def for_each_level(self, visit: Callable[[tuple[int, int]], R]) -> list[R]:
        """Call a function on ranges of contexts of order 1, then of order 2 and so on, each order in parallel."""
        ranges = (split_range(self.levels[order], self.levels[order + 1]) for order in range(1, self.order))
        return [result for level in ranges for result in parallel_map(visit, level)]


def keep_with_contexts(trie: Trie, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Extend a mask of nodes by the contexts of all nodes in it.  # (nodes,)"""
    keep = keep.copy()
    for order in range(trie.order, 2, -1):
        keep[trie.parents(order)[keep[trie.span(order)]]] = True
    return keep


@inline_kernel
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


@inline_kernel
def longest(word: Any, begin: Any, suffix: Any, node: int, w: int) -> int:
    """Return the longest string in the trie that ends `node` continued by `w`."""
    child = find_child(word, begin, node, w)
    while child < 0:
        node = suffix[node]
        child = find_child(word, begin, node, w)
    return child


@inline_kernel
def advance(word: Any, begin: Any, suffix: Any, node: int, w: int) -> int:
    """Return the context after `w`: the longest known string that ends the history and can be continued."""
    child = longest(word, begin, suffix, node, w)
    return child if child + 1 < begin.size else suffix[child]


@kernel
def _link_suffixes(word: Any, begin: Any, suffix: Any, contexts: Any) -> None:
    """Compute the suffixes of the children of a range of contexts from those of the contexts."""
    for node in range(contexts[0], contexts[1]):
        shorter = suffix[node]
        for child in range(begin[node], begin[node + 1]):
            suffix[child] = longest(word, begin, suffix, shorter, word[child])
