"""Symmetrisation: combine the alignments of two directions (Och and Ney 2003, Koehn et al. 2003)."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import PairGrid
from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map
from dragoman.data.alignments import WordAlignments

GROW_DIAG_FINAL_AND = "grow-diag-final-and"
SYMMETRIZATIONS = (GROW_DIAG_FINAL_AND, "intersection", "union", "forward", "backward")


def symmetrize(
    grid: PairGrid, forward: NDArray[np.int32], backward: NDArray[np.int32], method: str = GROW_DIAG_FINAL_AND
) -> WordAlignments:
    """Return the links of each pair.

    # forward: (target words,) source position of each, or -1; backward: (source words,) target position of each, or -1
    """
    if method not in SYMMETRIZATIONS:
        raise DataError(f"unknown symmetrization {method!r}; choose from {', '.join(SYMMETRIZATIONS)}")
    links = partial(_symmetrized_links, grid.arrays, forward, backward, SYMMETRIZATIONS.index(method))
    empty = np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32)
    chunks = zip(empty, *parallel_map(links, grid.chunks), strict=True)
    counts, source, target = (np.concatenate(parts) for parts in chunks)
    return WordAlignments(np.cumsum(counts), source, target)


@kernel
def _symmetrized_links(at, forward, backward, method, chunk):  # type: ignore[no-untyped-def]
    """The number of links of each pair, and their source and target positions."""
    first, last, source_at, target_at, size = chunk[0], chunk[1], at.source, at.target, 0
    for pair in range(first, last):
        size += (source_at[pair + 1] - source_at[pair]) * (target_at[pair + 1] - target_at[pair])
    counts = np.zeros(last - first, np.int64)
    source, target = np.empty(size, np.int32), np.empty(size, np.int32)
    total = 0
    for pair in range(first, last):
        n_f, n_e = source_at[pair + 1] - source_at[pair], target_at[pair + 1] - target_at[pair]
        f_links, b_links = np.zeros((n_f, n_e), np.bool_), np.zeros((n_f, n_e), np.bool_)
        for j in range(n_e):
            if forward[target_at[pair] + j] >= 0:
                f_links[forward[target_at[pair] + j], j] = True
        for i in range(n_f):
            if backward[source_at[pair] + i] >= 0:
                b_links[i, backward[source_at[pair] + i]] = True
        if method == 0:
            links = _grow_diag_final_and(f_links, b_links)
        elif method == 1:
            links = f_links & b_links
        elif method == 2:
            links = f_links | b_links
        else:
            links = f_links if method == 3 else b_links
        for i in range(n_f):
            for j in range(n_e):
                if links[i, j]:
                    source[total], target[total] = i, j
                    total += 1
                    counts[pair - first] += 1
    return counts, source[:total].copy(), target[:total].copy()


@kernel
def _grow_diag_final_and(forward, backward):  # type: ignore[no-untyped-def]
    """Start with the intersection; add neighbouring links of the union (also diagonal ones) that reach a word without
    a link; finally add links of either direction between two words without a link."""
    n_f, n_e = forward.shape
    links, union = forward & backward, forward | backward
    linked_f, linked_e = np.zeros(n_f, np.bool_), np.zeros(n_e, np.bool_)
    for i in range(n_f):
        for j in range(n_e):
            if links[i, j]:
                linked_f[i] = linked_e[j] = True
    grew = True
    while grew:
        grew = False
        for i in range(n_f):
            for j in range(n_e):
                if not links[i, j]:
                    continue
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        a, b = i + di, j + dj
                        if a < 0 or b < 0 or a >= n_f or b >= n_e or links[a, b] or not union[a, b]:
                            continue
                        if not linked_f[a] or not linked_e[b]:
                            links[a, b] = linked_f[a] = linked_e[b] = True
                            grew = True
    for direction in (forward, backward):
        for i in range(n_f):
            for j in range(n_e):
                if direction[i, j] and not linked_f[i] and not linked_e[j]:
                    links[i, j] = linked_f[i] = linked_e[j] = True
    return links
