"""Two directions brought together: of what the one and the other found, which links are believed (Och and Ney 2003,
Koehn et al. 2003)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import PairGrid
from dragoman.core.errors import DataError
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map
from dragoman.data.alignments import WordAlignments

FORWARD, BACKWARD, INTERSECTION, UNION, GROW_DIAG_FINAL_AND = (
    "forward",
    "backward",
    "intersection",
    "union",
    "grow-diag-final-and",
)
SYMMETRIZATIONS = (GROW_DIAG_FINAL_AND, INTERSECTION, UNION, FORWARD, BACKWARD)


def symmetrize(
    cells: PairGrid, forward: NDArray[np.int32], backward: NDArray[np.int32], method: str = GROW_DIAG_FINAL_AND
) -> WordAlignments:
    """The links of each pair.

    # forward: (target words,) the source word of each, or -1; backward: (source words,) the target word of each, or -1
    """
    if method not in SYMMETRIZATIONS:
        raise DataError(f"to symmetrise by {method!r}: there are {', '.join(SYMMETRIZATIONS)}")
    places = cells.offset_arrays[:2]
    done = parallel_map(
        lambda part: _links(*part, *places, forward, backward, SYMMETRIZATIONS.index(method)), cells.chunks
    )
    counts = np.concatenate([np.zeros(1, np.int64), *(one[0] for one in done)])
    source, target = (np.concatenate([np.zeros(0, np.int32), *(one[n] for one in done)]) for n in (1, 2))
    return WordAlignments(np.cumsum(counts), source, target)


@kernel
def _links(first, last, source_at, target_at, forward, backward, way):  # type: ignore[no-untyped-def]
    """How many links each pair has, and these."""
    room = 0
    for pair in range(first, last):
        room += (source_at[pair + 1] - source_at[pair]) * (target_at[pair + 1] - target_at[pair])
    counts = np.zeros(last - first, np.int64)
    source, target = np.empty(room, np.int32), np.empty(room, np.int32)
    total = 0
    for pair in range(first, last):
        n_f, n_e = source_at[pair + 1] - source_at[pair], target_at[pair + 1] - target_at[pair]
        one, other = np.zeros((n_f, n_e), np.bool_), np.zeros((n_f, n_e), np.bool_)
        for j in range(n_e):
            if forward[target_at[pair] + j] >= 0:
                one[forward[target_at[pair] + j], j] = True
        for i in range(n_f):
            if backward[source_at[pair] + i] >= 0:
                other[i, backward[source_at[pair] + i]] = True
        if way == 0:
            kept = _grow_diag_final_and(one, other)
        elif way == 1:
            kept = one & other
        elif way == 2:
            kept = one | other
        else:
            kept = one if way == 3 else other
        for i in range(n_f):
            for j in range(n_e):
                if kept[i, j]:
                    source[total], target[total] = i, j
                    total += 1
                    counts[pair - first] += 1
    return counts, source[:total].copy(), target[:total].copy()


@kernel
def _grow_diag_final_and(one, other):  # type: ignore[no-untyped-def]
    """The intersection, grown to links of the union beside it, diagonally too, as long as they reach a word without a
    link; at last, links of either direction between words that both have none."""
    n_f, n_e = one.shape
    kept, union = one & other, one | other
    rows, columns = np.zeros(n_f, np.bool_), np.zeros(n_e, np.bool_)
    for i in range(n_f):
        for j in range(n_e):
            if kept[i, j]:
                rows[i] = columns[j] = True
    grew = True
    while grew:
        grew = False
        for i in range(n_f):
            for j in range(n_e):
                if not kept[i, j]:
                    continue
                for di in range(-1, 2):
                    for dj in range(-1, 2):
                        a, b = i + di, j + dj
                        if a < 0 or b < 0 or a >= n_f or b >= n_e or kept[a, b] or not union[a, b]:
                            continue
                        if not rows[a] or not columns[b]:
                            kept[a, b] = rows[a] = columns[b] = True
                            grew = True
    for found in (one, other):
        for i in range(n_f):
            for j in range(n_e):
                if found[i, j] and not rows[i] and not columns[j]:
                    kept[i, j] = rows[i] = columns[j] = True
    return kept
