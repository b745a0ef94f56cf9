"""Probabilities in 8 bits."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.ngram.table import NgramTable, renormalise

NUM_CODES = 256
ZERO_CODE = 0  # the code of probability 0; the others go from small to large


def quantise(table: NgramTable) -> NgramTable:
    """The table with each log-probability replaced by one of 255 values of its order.

    Back-off weights stay in full and are chosen anew: they are what makes every distribution sum to one. Words alone
    have nothing to back off to, so their 255 values are scaled instead. Where a context lists every word, and so backs
    off to none, there is no such freedom: such a table is left as it is, with a warning.
    """
    trie = table.trie
    codebook = np.zeros((trie.order + 1, NUM_CODES), np.float32)
    codes = np.zeros(trie.nodes, np.uint8)
    for order in range(1, trie.order + 1):
        values = np.asarray(table.values(order))
        bins = _bin(values)
        codebook[order], codes[trie.span(order)] = bins.values, bins.codes
        if order == 1:
            codebook[order] -= np.log(np.exp(bins.values[bins.codes], dtype=float).sum())
        else:
            _round_down(table, order, values, codes, codebook[order])
    rounded = renormalise(NgramTable(trie, codes, table.log_backoff, codebook))
    if (np.isneginf(rounded.log_backoff) & np.isfinite(table.log_backoff)).any():
        warnings.warn(
            "not quantised: some contexts list every word there is, and nothing would be left to even out the rounding",
            stacklevel=2,
        )
        return table
    return rounded


@dataclass(frozen=True)
class _Bins:
    """Numbers sorted into bins: values[codes] are nearly the numbers."""

    values: NDArray[np.float32]  # (CODES,) the mean of each bin, rising
    codes: NDArray[np.uint8]  # (numbers,)


def _bin(values: NDArray[np.float32]) -> _Bins:
    """Codes 1 to 255 for finite log-probabilities; with so many distinct ones or fewer, each is kept as it is."""
    possible = np.isfinite(values)
    finite = values[possible]
    number = np.searchsorted(_edges(np.sort(finite)), finite, side="right")
    members = np.bincount(number, minlength=NUM_CODES - 1)
    used = members > 0  # bins without members have no code
    code_of_bin = np.cumsum(used).astype(np.uint8)
    means = np.zeros(NUM_CODES, np.float32)
    means[1 : 1 + used.sum()] = np.bincount(number, finite, minlength=NUM_CODES - 1)[used] / members[used]
    means[ZERO_CODE] = -np.inf
    codes = np.full(len(values), ZERO_CODE, np.uint8)
    codes[possible] = code_of_bin[number]
    return _Bins(means, codes)


def _edges(ordered: NDArray[np.float32]) -> NDArray[np.float32]:
    """Where sorted numbers are cut: half of the cuts make equal shares, half equal widths.

    Shares alone would put the few frequent words, which matter most, into one wide bin; widths alone would waste
    nearly all codes if one number lay far from the others.
    """
    fresh = np.ones(len(ordered), bool)
    fresh[1:] = ordered[1:] != ordered[:-1]
    distinct = ordered[fresh]
    if len(distinct) < NUM_CODES:
        return distinct[1:]
    parts = NUM_CODES // 2
    shares = ordered[np.arange(1, parts) * len(ordered) // parts]
    widths = np.linspace(ordered[0], ordered[-1], parts + 1, dtype=np.float32)[1:-1]
    return np.unique(np.concatenate([shares, widths]))


def _round_down(
    table: NgramTable, order: int, values: NDArray[np.float32], codes: NDArray[np.uint8], book: NDArray[np.float32]
) -> None:
    """Lower the codes after contexts that rounding has left too little for unseen words."""
    first, last = table.trie.levels[order - 1], table.trie.levels[order]

    def lower(span: tuple[int, int]) -> None:
        _lower(table.trie.begin, values, last, codes, book, *span)

    parallel_map(lower, split_range(first, last))


@kernel
def _lower(begin: Any, values: Any, first_child: int, codes: Any, book: Any, first: int, last: int) -> None:
    """Go down code by code until at least half of what was left after each context is left again."""
    for node in range(first, last):
        kept = rounded = 0.0
        for child in range(begin[node], begin[node + 1]):
            kept += np.exp(values[child - first_child])
            rounded += np.exp(book[codes[child]])
        limit = min(1.0, 0.5 * (1.0 + kept))
        lowest = False
        while rounded > max(kept, limit) and not lowest:
            rounded, lowest = 0.0, True
            for child in range(begin[node], begin[node + 1]):
                if codes[child] > 1:
                    codes[child] -= 1
                    lowest = False
                rounded += np.exp(book[codes[child]])
