"""Counts of counts, and the adjusted counts of Kneser-Ney smoothing, of n-grams in memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.data.vocabulary import START
from dragoman.ngram.counting import Counts, NgramCounts

Floats = NDArray[np.float64]
BLOCK_NGRAMS = 1 << 16  # computed at a time


def count_of_counts(counts: NDArray[np.integer], max_count: int) -> Floats:
    """Return n_1, n_2, ..., n_max: how many n-grams occur once, twice, ... Index 0 is not used."""
    return np.array([0.0, *(np.count_nonzero(counts == count) for count in range(1, max_count + 1))])


def adjusted_counts(counts: NgramCounts, order: int) -> Counts:
    """Return the number of different words that precede each n-gram.

    The highest order, and n-grams that begin with `<s>` and so have no left neighbour, keep their raw counts.
    """
    trie, raw = counts.trie, counts.of_order(order)
    if order == trie.order:
        return raw
    first, longer = trie.levels[order], trie.span(order + 1)
    suffix = trie.suffix[longer]
    adjusted = np.zeros(len(raw), np.int32)
    for start in range(0, len(suffix), BLOCK_NGRAMS):
        block = slice(start, start + BLOCK_NGRAMS)
        is_counted = (counts.of_order(order + 1)[block] > 0) & (suffix[block] >= first)
        np.add.at(adjusted, suffix[block][is_counted] - np.int32(first), np.int32(1))
    node = 1 + START + 1  # the first n-gram that does not begin with <s>: those that do are sorted first
    for _ in range(1, order):
        node = int(trie.begin[node])
    starts = node - first
    adjusted[:starts] = raw[:starts]
    return adjusted


def adjusted_count_of_counts(counts: NgramCounts, order: int, adjusted: Counts, max_count: int = 4) -> Floats:
    """Return the counts of adjusted counts, as KenLM's `lmplz` computes them.

    `lmplz` takes the suffixes of the very last n-gram (comparing words from right to left) at their raw counts. The
    effect on the estimate is tiny, but needed to agree with `lmplz` to the last digit.
    """
    statistics = count_of_counts(adjusted, max_count)
    if order < counts.trie.order:
        for node in _last_suffixes(counts):
            position = node - counts.trie.levels[order]
            if 0 <= position < len(adjusted):
                statistics += count_of_counts(counts.of_order(order)[position : position + 1], max_count)
                statistics -= count_of_counts(adjusted[position : position + 1], max_count)
    return statistics


def _last_suffixes(counts: NgramCounts) -> list[int]:
    """Return the suffixes, from one word up, of the last n-gram when words are compared from right to left."""
    trie = counts.trie
    node = trie.levels[1] + int(np.flatnonzero(counts.of_order(1)).max(initial=0))
    suffixes = [node]
    for order in range(2, trie.order + 1):
        span = trie.span(order)
        longer = np.flatnonzero((trie.suffix[span] == node) & (counts.of_order(order) > 0))
        if not len(longer):  # it begins with <s>
            break
        node = span.start + int(longer[-1])  # sorted by first word: the last is the largest
        suffixes.append(node)
    return suffixes
