"""Probabilities in 8 bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.ngram.table import Table, renormalise

CODES = 256


def quantised(table: Table) -> Table:
    """The table with each log-probability replaced by one of 256 values of its order.

    The values are the means of 256 equal shares of the sorted log-probabilities. Back-off weights stay in full and
    are chosen anew: they are what makes every distribution sum to one.
    """
    codebook = np.zeros((table.trie.order + 1, CODES), np.float32)
    codes = np.zeros(table.trie.nodes, np.uint8)
    for order in range(1, table.trie.order + 1):
        codebook[order], codes[table.trie.span(order)] = _bin(table.values(order))
    return renormalise(Table(table.trie, codes, table.log_backoff, codebook))


def _bin(values: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Codes 1 to 255 by equal shares; code 0 is for impossible words."""
    raise NotImplementedError
