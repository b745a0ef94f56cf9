"""Scoring of texts with an n-gram table, many tokens at a time.

For each order, the n-grams that end at all tokens of a block are looked up before those of the next order. The look-ups
are independent of each other, so the processor waits for memory in many of them at once. An n-gram exists only if the
n-gram one word shorter that ends at the token before does, so most tokens are done after two or three orders.

Frequent words have thousands of children, so bigrams are found by a hash table, longer n-grams by binary search.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import inline_kernel, kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START
from dragoman.ngram.table import NgramTable, value_at
from dragoman.ngram.trie import ROOT, Trie

ONE = np.uint64(1)
BLOCK_TOKENS = 512  # tokens looked up at a time: what is known about them fits into the fastest cache


class NgramTrace(NamedTuple):
    """The result of scoring each token."""

    log_prob: NDArray[np.float64]  # (tokens,)
    context: NDArray[np.signedinteger]  # (tokens,) the context node
    matched: NDArray[np.signedinteger]  # (tokens,) the longest matching n-gram


class NgramScorer:
    """A table with a hash table of its bigrams, made from it once."""

    def __init__(self, table: NgramTable):
        self.arrays, self.slots = table.arrays(), _bigram_slots(table.trie)

    def trace(self, corpus: Corpus, gap: int = 0, *, with_nodes: bool = True) -> NgramTrace:
        """Score all tokens of a corpus, in parallel. Without nodes, only the log-probabilities are computed."""
        size = corpus.num_tokens
        nodes, dtype = size if with_nodes else 0, self.arrays.begin.dtype
        trace = NgramTrace(np.empty(size), np.empty(nodes, dtype), np.empty(nodes, dtype))
        score = partial(_score, self.arrays, self.slots, corpus.ids, corpus.offsets, gap, trace)
        parallel_map(score, split_range(0, len(corpus), min_size=256))
        return trace


def _bigram_slots(trie: Trie) -> NDArray[np.unsignedinteger]:
    """Return a hash table of the bigrams by open addressing; the root marks an empty slot.

    Its type is that of all nodes in kernels: 32 bits if they suffice.
    """
    bigrams = trie.levels[3] - trie.levels[2] if trie.order > 1 else 0
    dtype: type[np.unsignedinteger] = np.uint32 if trie.begin.dtype == np.int32 else np.uint64
    slots: NDArray[np.unsignedinteger] = np.full(1 << (bigrams + bigrams // 2).bit_length(), ROOT, dtype)
    if bigrams:
        _fill_slots(trie.word, trie.begin, trie.levels[2], slots)
    return slots


@inline_kernel
def _slot(node: int, w: int, slots: int) -> Any:
    """Return where to look first for the child of `node` by word `w`: a multiplicative hash."""
    key = (np.uint64(node) << np.uint64(32)) | np.uint64(w)
    key = (key * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)
    return key & np.uint64(slots - 1)


@kernel
def _fill_slots(word: Any, begin: Any, unigrams_end: int, slots: Any) -> None:
    mask = np.uint64(slots.size - 1)
    for node in range(1, unigrams_end):
        for child in range(begin[node], begin[node + 1]):
            slot = _slot(node, word[child], slots.size)
            while slots[slot] != ROOT:
                slot = (slot + ONE) & mask
            slots[slot] = child


@kernel
def _score(table: Any, slots: Any, ids: Any, offsets: Any, gap: int, trace: Any, sentences: Any) -> None:
    """Score a range of sentences, in blocks of whole sentences."""
    first, last = sentences
    longest = 0
    for sentence in range(first, last):
        longest = max(longest, offsets[sentence + 1] - offsets[sentence])
    capacity = max(longest + 1, min(BLOCK_TOKENS, offsets[last] - offsets[first] + last - first))
    text = (np.zeros(capacity, np.uint32), np.zeros(capacity + 1, np.uint32), np.zeros(capacity, np.bool_))
    nodes = (np.empty(capacity, np.uint32), np.empty(capacity, slots.dtype))
    children = (np.empty(capacity, slots.dtype), np.empty(capacity, slots.dtype))
    search = (np.empty(capacity, np.uint32), np.empty(capacity, np.uint32))
    dtype = trace.context.dtype
    scored = (np.empty(capacity), np.empty(capacity, dtype), np.empty(capacity, dtype))
    sentence = first
    while sentence < last:
        start, size = offsets[sentence] + sentence, 0
        while sentence < last and size + offsets[sentence + 1] - offsets[sentence] < capacity:
            size = _add_sentence(ids, offsets[sentence], offsets[sentence + 1], gap, text, size)
            sentence += 1
        _score_block(table, slots, gap, size, text, nodes, children, search, scored)
        trace.log_prob[start : start + size] = scored[0][:size]
        if trace.context.size > 0:
            trace.context[start : start + size] = scored[1][:size]
            trace.matched[start : start + size] = scored[2][:size]


@kernel
def _add_sentence(ids: Any, first: int, last: int, gap: int, text: Any, size: int) -> int:
    """Append a sentence to a block: its words and `</s>`, the last words of their contexts, and whether it ends."""
    words, context_words, is_last = text
    for position in range(first, last):
        words[size + position - first] = ids[position]
        is_last[size + position - first] = False
    end = size + last - first
    words[end], is_last[end] = END, True
    for t in range(end + 1 - size):
        context_words[size + t] = START if t <= gap else ids[first + t - gap - 1]
    return end + 1


@kernel
def _score_block(
    table: Any, slots: Any, gap: int, size: int, text: Any, nodes: Any, children: Any, search: Any, scored: Any
) -> None:
    """Score the first `size` tokens of a block."""
    words, context_words, is_last = text
    position, parent = nodes  # of the tokens with a context of this length: their positions and contexts
    log_prob, context, matched = scored
    stored, codebook, log_backoff = table.log_prob, table.codebook, table.log_backoff
    order = table.levels.size - 2
    for t in range(size):
        node = words[t] + ONE  # of the word
        log_prob[t], matched[t] = value_at(stored, codebook, 1, node), node
        context[t] = context_words[t] + 1 if order > 1 else ROOT
        position[t], parent[t] = t, context_words[t] + 1
    active = size
    child, longer_context = children[0], children[0] if gap == 0 else children[1]
    for k in range(2, order + 1):
        level = (table.levels[k], table.levels[k + 1])
        _find_children(table.word, table.begin, slots, level, k, active, nodes, words, 0, child, search)
        if gap > 0:  # the context is not extended by the predicted word
            _find_children(
                table.word, table.begin, slots, level, k, active, nodes, context_words, 1, longer_context, search
            )
        kept = 0
        for i in range(active):
            t, node, ngram, longer = position[i], parent[i], child[i], longer_context[i]
            listed, backed_off = value_at(stored, codebook, k, ngram), log_prob[t] + log_backoff[node]
            log_prob[t] = listed if ngram != ROOT else backed_off
            context[t], matched[t] = node, ngram if ngram != ROOT else matched[t]
            position[kept], parent[kept] = t + 1, longer
            kept += 1 if longer != ROOT and not is_last[t] else 0
        active = kept


@kernel
def _find_children(
    word: Any,
    begin: Any,
    slots: Any,
    level: Any,
    order: int,
    active: int,
    nodes: Any,
    words: Any,
    shift: int,
    child: Any,
    search: Any,
) -> None:
    """Write the children of the first `active` nodes by the words at their positions, plus `shift`, or the root.

    Nodes are unsigned here: for signed numbers, numba checks whether an index counts from the end of an array. Children
    outside the `level` of this order, which only a damaged table has, are ignored: the contents of large tables are not
    checked when they are loaded.
    """
    position, parent = nodes
    if order == 2:
        mask = np.uint64(slots.size - 1)
        for i in range(active):
            node = np.uint64(parent[i])
            w = words[position[i] + np.uint64(shift)]
            slot = _slot(node, w, slots.size)
            candidate = slots[slot]
            while candidate != ROOT and not (word[candidate] == w and begin[node] <= candidate < begin[node + ONE]):
                slot = (slot + ONE) & mask
                candidate = slots[slot]
            child[i] = candidate
        return
    size, pending = search
    left = 0  # searches that are not finished
    for i in range(active):
        node = np.uint64(parent[i])
        first, end = begin[node], begin[node + ONE]
        if not level[0] <= first <= end <= level[1]:
            first = end = level[0]
        child[i], size[i], pending[left] = first, end - first, i
        left += 1 if end - first > 1 else 0
    while left > 0:  # one step of each binary search, without branches to mispredict
        rest = 0
        for j in range(left):
            search_index = pending[j]
            half, low = np.uint64(size[search_index]) >> ONE, np.uint64(child[search_index])
            is_above = word[low + half - ONE] < words[position[search_index] + np.uint64(shift)]
            rest_size = np.uint64(size[search_index]) - half
            child[search_index], size[search_index] = low + half if is_above else low, rest_size
            pending[rest] = search_index
            rest += 1 if rest_size > ONE else 0
        left = rest
    last_node = np.uint64(word.size - 1)
    for i in range(active):
        inside = min(np.uint64(child[i]), last_node)  # a context without children may begin at the end
        is_child = size[i] > 0 and word[inside] == words[position[i] + np.uint64(shift)]
        child[i] = inside if is_child else np.uint64(ROOT)
