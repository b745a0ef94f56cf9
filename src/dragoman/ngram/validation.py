"""Checks of tables read from a file, because kernels do not check array bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.ngram.table import NgramTable

ROUNDING = 1e-4  # how far a log-probability may be above 0


def validate_table(table: NgramTable, vocab_size: int) -> None:
    """Raise ValueError if the table is not valid."""
    trie, levels = table.trie, table.trie.levels
    _require(
        all(type(level) is int for level in levels)
        and levels[:3] == (0, 1, vocab_size + 1)
        and all(a <= b for a, b in zip(levels[:-1], levels[1:], strict=True)),
        "levels and vocabulary do not match",
    )
    contexts, nodes = trie.contexts, trie.nodes
    for name, array, dtype, shape in (
        ("word", trie.word, "i4", (nodes,)),
        ("begin", trie.begin, "i4", (contexts + 1,)),
        ("suffix", trie.suffix, "i4", (nodes,)),
        ("log_prob", table.log_prob, "u1" if table.quantised else "f4", (nodes,)),
        ("log_backoff", table.log_backoff, "f4", (contexts,)),
        ("codebook", table.codebook, "f4", (trie.order + 1 if table.quantised else 0, 256)),
        ("log_normaliser", table.log_normaliser, "f4", (contexts,)),
    ):
        if array is not None:
            _require(array.dtype.str[1:] == dtype and array.shape == shape, f"{name} has a wrong shape or type")
    _require(
        all(trie.begin[levels[k]] == levels[k + 1] for k in range(trie.order))
        and trie.begin[-1] == nodes
        and bool(np.all(trie.begin[:-1] <= trie.begin[1:])),
        "begin does not divide the orders",
    )
    _require(_is_trie(np.array(levels), trie.word, trie.begin, trie.suffix, vocab_size), "the n-grams are not sorted")
    values: NDArray[Any] = table.codebook if table.quantised else table.log_prob
    _require(bool(np.all(values <= ROUNDING)), "log_prob has values above 0")
    _require(bool(np.all(table.log_backoff < np.inf)), "log_backoff has infinite values")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


@kernel
def _is_trie(levels: Any, word: Any, begin: Any, suffix: Any, vocab_size: int) -> bool:
    """Return whether children are sorted by their words and every suffix is a shorter string."""
    for context in range(begin.size - 1):
        if begin[context] > begin[context + 1]:
            return False
        for child in range(begin[context], begin[context + 1]):
            if (
                word[child] < 0
                or word[child] >= vocab_size
                or (child > begin[context] and word[child] <= word[child - 1])
            ):
                return False
    for order in range(1, levels.size - 1):
        for node in range(levels[order], levels[order + 1]):
            if suffix[node] < 0 or suffix[node] >= levels[order]:
                return False
    return True
