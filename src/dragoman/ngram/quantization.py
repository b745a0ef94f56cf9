"""Quantisation of probabilities to 8 bits."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.ngram.table import NgramTable, renormalize

NUM_CODES = 256
ZERO_CODE = 0  # the code of probability 0; the other codes are in increasing order of probability


def quantize(table: NgramTable) -> NgramTable:
    """Replace each log-probability by one of 255 values of its order.

    Back-off weights stay in full precision and are recomputed so that every distribution sums to one. Unigrams have
    nothing to back off to, so their 255 values are scaled instead. If a context lists every word, there is no back-off
    weight to adjust: such a table is returned unchanged, with a warning.
    """
    trie = table.trie
    codebook = np.zeros((trie.order + 1, NUM_CODES), np.float32)
    codes = np.zeros(trie.nodes, np.uint8)
    for order in range(1, trie.order + 1):
        values = np.asarray(table.values(order))
        codebook[order], codes[trie.span(order)] = _bin(values)
        if order == 1:
            codebook[order] -= np.log(np.exp(codebook[order][codes[trie.span(1)]], dtype=float).sum())
        else:
            first, last = trie.levels[order - 1], trie.levels[order]
            round_down = partial(_round_down, trie.begin, values, last, codes, codebook[order])
            parallel_map(round_down, split_range(first, last))
    rounded = renormalize(NgramTable(trie, codes, table.log_backoff, codebook))
    if (np.isneginf(rounded.log_backoff) & np.isfinite(table.log_backoff)).any():
        warnings.warn(
            "not quantised: some contexts list every word, so there is no back-off weight to correct the rounding",
            stacklevel=2,
        )
        return table
    return rounded


def _bin(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Assign codes 1 to 255 to finite log-probabilities. If there are at most 255 distinct ones, they are exact.

    Returns the mean of each bin, increasing, and the codes.  # (NUM_CODES,), (values,)
    """
    is_finite = np.isfinite(values)
    finite = values[is_finite]
    bin_index = np.searchsorted(_edges(np.sort(finite)), finite, side="right")
    members = np.bincount(bin_index, minlength=NUM_CODES - 1)
    used = members > 0  # empty bins have no code
    code_of_bin = np.cumsum(used).astype(np.uint8)
    means = np.zeros(NUM_CODES, np.float32)
    means[1 : 1 + used.sum()] = np.bincount(bin_index, finite, minlength=NUM_CODES - 1)[used] / members[used]
    means[ZERO_CODE] = -np.inf
    codes = np.full(len(values), ZERO_CODE, np.uint8)
    codes[is_finite] = code_of_bin[bin_index]
    return means, codes


def _edges(ordered: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the bin edges for sorted numbers: half of them divide into equal shares, half into equal widths.

    With only equal shares, the few frequent words, which matter most, would be in one wide bin. With only equal widths,
    one outlier would waste nearly all codes.
    """
    distinct = ordered[np.diff(ordered, prepend=np.float32(-np.inf)) > 0]
    if len(distinct) < NUM_CODES:
        return distinct[1:]
    parts = NUM_CODES // 2
    shares = ordered[np.arange(1, parts) * len(ordered) // parts]
    widths = np.linspace(ordered[0], ordered[-1], parts + 1, dtype=np.float32)[1:-1]
    return np.unique(np.concatenate([shares, widths]))


@kernel
def _round_down(begin: Any, values: Any, first_child: int, codes: Any, book: Any, contexts: Any) -> None:
    """Lower all codes after a context by one until at least half of the original remaining mass is left."""
    for node in range(contexts[0], contexts[1]):
        exact = rounded = 0.0
        for child in range(begin[node], begin[node + 1]):
            exact += np.exp(values[child - first_child])
            rounded += np.exp(book[codes[child]])
        limit = min(1.0, 0.5 * (1.0 + exact))
        lowest = False
        while rounded > max(exact, limit) and not lowest:
            rounded, lowest = 0.0, True
            for child in range(begin[node], begin[node + 1]):
                if codes[child] > 1:
                    codes[child] -= 1
                    lowest = False
                rounded += np.exp(book[codes[child]])
