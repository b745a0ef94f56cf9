"""Discounts of absolute discounting, Kneser-Ney and Katz smoothing."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.data.vocabulary import START
from dragoman.ngram.counting import NgramCounts

Floats = NDArray[np.float64]
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # used if the counts of counts give no discounts


class DiscountError(ValueError):
    """The counts of counts give no usable discounts; the message says why."""


def count_of_counts(counts: NDArray[np.integer], max_count: int) -> Floats:
    """Return n_1, n_2, ..., n_max: how many n-grams occur once, twice, ... Index 0 is not used."""
    return np.array([0.0, *(np.count_nonzero(counts == count) for count in range(1, max_count + 1))])


def absolute_discount(n: Floats) -> Floats:
    """D = n_1 / (n_1 + 2 n_2), the same for every count."""
    if n[1] == 0 or n[2] == 0:
        raise DiscountError(f"no n-gram occurs {'once' if n[1] == 0 else 'twice'}")
    D = n[1] / (n[1] + 2 * n[2])
    return np.array([0.0, D, D, D])


def modified_discounts(n: Floats) -> Floats:
    """D_j = j - (j + 1) Y n_{j+1} / n_j for counts 1, 2 and 3 or more (Chen and Goodman 1998, eq. 26)."""
    missing = [j for j in (1, 2, 3) if n[j] == 0]
    if missing:
        raise DiscountError(f"no n-gram has the (adjusted) count {missing[0]}")
    Y = n[1] / (n[1] + 2 * n[2])
    D = np.array([0.0, *(j - (j + 1) * Y * n[j + 1] / n[j] for j in (1, 2, 3))])
    wrong = [j for j in (1, 2, 3) if not 0 <= D[j] <= j]
    if wrong:
        raise DiscountError(f"the discount of count {wrong[0]} would be {D[wrong[0]]:.3f}")
    return D


def good_turing(n: Floats, max_count: int) -> Floats:
    """Katz's ratio d_r = (r* / r - A) / (1 - A) for counts r up to `max_count`, 1 above; r* = (r + 1) n_{r+1} / n_r."""
    if n[1] == 0:
        raise DiscountError("no n-gram occurs once")
    A = (max_count + 1) * n[max_count + 1] / n[1]
    ratios = np.ones(max_count + 2)
    ratios[0] = 0.0
    for r in range(1, max_count + 1):
        if n[r] == 0 or n[r + 1] == 0 or A >= 1:
            raise DiscountError(f"too few n-grams occur {r} or {r + 1} times")
        ratios[r] = ((r + 1) * n[r + 1] / (r * n[r]) - A) / (1 - A)
    if not ((ratios[1:] > 0) & (ratios[1:] <= 1)).all():
        raise DiscountError("Good-Turing ratios fall outside 0 to 1")
    return ratios


# -- adjusted counts of Kneser-Ney -------------------------------------------------------------------------------


def adjusted_counts(counts: NgramCounts, order: int) -> NDArray[np.int32]:
    """Return the number of different words that precede each n-gram.

    The highest order, and n-grams that begin with `<s>` and so have no left neighbour, keep their raw counts.
    """
    trie, span = counts.trie, counts.trie.span(order)
    raw = counts.count[span]
    if order == trie.order:
        return raw
    longer = trie.span(order + 1)
    suffix = trie.suffix[longer]
    suffix = suffix[(counts.count[longer] > 0) & (suffix >= span.start)] - np.int32(span.start)
    adjusted = np.bincount(suffix, minlength=len(raw)).astype(np.int32)
    starts = count_sentence_starts(counts, order)
    adjusted[:starts] = raw[:starts]
    return adjusted


def count_sentence_starts(counts: NgramCounts, order: int) -> int:
    """Return how many n-grams of this order begin with `<s>`. They are sorted first."""
    trie = counts.trie
    node = 1 + START + 1  # the first unigram after <s>
    for _ in range(1, order):
        node = int(trie.begin[node])
    return node - trie.levels[order]


def adjusted_count_of_counts(
    counts: NgramCounts, order: int, adjusted: NDArray[np.int32], max_count: int = 4
) -> Floats:
    """Return the counts of adjusted counts, as KenLM's `lmplz` computes them.

    `lmplz` takes the suffixes of the very last n-gram (comparing words from right to left) at their raw counts. The
    effect on the estimate is tiny, but needed to agree with `lmplz` to the last digit.
    """
    statistics = count_of_counts(adjusted, max_count)
    if order < counts.trie.order:
        for node in _last_suffixes(counts):
            position = node - counts.trie.levels[order]
            if 0 <= position < len(adjusted):
                statistics += count_of_counts(counts.count[node : node + 1], max_count)
                statistics -= count_of_counts(adjusted[position : position + 1], max_count)
    return statistics


def _last_suffixes(counts: NgramCounts) -> list[int]:
    """Return the suffixes, from one word up, of the last n-gram when words are compared from right to left."""
    trie = counts.trie
    used = np.flatnonzero(counts.count[trie.span(1)])
    node = trie.levels[1] + int(used.max(initial=0))
    suffixes = [node]
    for order in range(2, trie.order + 1):
        span = trie.span(order)
        longer = np.flatnonzero((trie.suffix[span] == node) & (counts.count[span] > 0))
        if not len(longer):  # it begins with <s>
            break
        node = span.start + int(longer[-1])  # sorted by first word: the last is the largest
        suffixes.append(node)
    return suffixes
