"""How well the words of two lines explain each other, by IBM Model 1, without the counts from the lines themselves.

Model 1 gives expected counts c(f, e): how often target word e comes from source word f. A pair of lines is scored by
how much more often its words occur together than if they were independent. The counts from this pair are removed first:
otherwise two rare words that occur in one wrong pair only would count as evidence for this pair.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.em import FORWARD, run_em
from dragoman.align.pair_grid import NULL, IdLines, PairGrid
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range

ITERATIONS = 4
SMOOTHING = 1.0  # pseudo-count of each source word that is distributed independently
UNIFORM_WEIGHT = 0.1  # weight of no association at all: bounds how much one word can lower a score


class WordAssociations(NamedTuple):
    """Expected counts of Model 1, to score pairs of lines with."""

    keys: NDArray[np.int64]  # (word pairs,) source * |V_e| + target, sorted
    starts: NDArray[np.int64]  # (|V_f| + 1,) where the pairs of each source word begin
    counts: NDArray[np.float64]  # (word pairs,) c(f, e)
    previous_probs: NDArray[np.float64]  # (word pairs,) P(e | f) that the counts were computed with
    source_counts: NDArray[np.float64]  # (|V_f|,) c(f)
    target_counts: NDArray[np.float64]  # (|V_e|,) c(e)

    @classmethod
    def train(cls, source: IdLines, target: IdLines, iterations: int = ITERATIONS) -> WordAssociations:
        """Train Model 1 on lines, each a sorted set of words."""
        em = run_em(PairGrid(source, target), ("ibm1",), iterations, prior=0.0)
        entries = em.entries(FORWARD)
        starts = np.searchsorted(entries.keys, np.arange(source.vocab_size + 1, dtype=np.int64) * target.vocab_size)
        counts, previous_probs = (entries.values(tables, FORWARD) for tables in (em.counts, em.previous_tables))
        source_counts = np.diff(np.concatenate([[0.0], np.cumsum(counts)])[starts])
        return cls(entries.keys, starts, counts, previous_probs, source_counts, target.counts.astype(np.float64))

    def pair_scores(
        self,
        source: IdLines,
        target: IdLines,
        source_lines: NDArray[np.int64],
        target_lines: NDArray[np.int64],
        is_training_pair: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """For each source line and target line: nats per word by which their words are likelier together than apart.

        Unrelated lines have about 0 or less; lines without words are NaN.  # (pairs of lines,)

        `is_training_pair` states for each line i whether source line i and target line i were trained on as a pair.
        """
        if not self.target_counts.any():  # nothing was trained on
            return np.full(len(source_lines), np.nan)
        longest = max(1, int(source.sizes.max(initial=0)), int(target.sizes.max(initial=0)))
        score = partial(_score, self, source, target, source_lines, target_lines, is_training_pair, longest)
        return np.concatenate([np.zeros(0), *parallel_map(score, split_range(0, len(source_lines)))])


@kernel
def _find(keys, first, last, key):  # type: ignore[no-untyped-def]
    """Where a key is among the sorted keys first..last, or -1."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if keys[middle] < key:
            first = middle + 1
        else:
            last = middle
    return first if first < end and keys[first] == key else -1


@kernel
def _find_pair(keys, starts, width, source, target):  # type: ignore[no-untyped-def]
    """The index of a word pair, or -1."""
    return _find(keys, starts[source], starts[source + 1], np.int64(source) * width + target)


@kernel
def _score(associations, source, target, source_lines, target_lines, is_training_pair, longest, rows):  # type: ignore[no-untyped-def]
    """The score of each pair of lines, without the counts that these lines contributed.

    Source line a may have been trained on with target line a, and target line b with source line b. Where these
    resemble the lines that are scored, as neighbours often do, their counts must not support them either.
    """
    result = np.full(rows[1] - rows[0], np.nan)
    joint, left_out = np.empty((longest, longest)), np.empty((longest, longest))
    weights, total = np.empty(longest), associations.target_counts.sum()
    keys, starts = associations.keys, associations.starts
    for row in range(rows[0], rows[1]):
        a, b = source_lines[row], target_lines[row]
        f = source.ids[source.offsets[a] : source.offsets[a + 1]]
        e = target.ids[target.offsets[b] : target.offsets[b + 1]]
        if f.size == 0 or e.size == 0:
            continue
        left_out[: f.size, : e.size] = 0.0
        for j in range(e.size):
            for i in range(f.size):
                index = _find_pair(keys, starts, target.vocab_size, f[i], e[j])
                joint[i, j] = associations.counts[index] if index >= 0 else 0.0
            if is_training_pair[a] and _find(target.ids, target.offsets[a], target.offsets[a + 1], e[j]) >= 0:
                _add_left_out(left_out[:, j], f, f, e[j], associations, weights)
            if a != b and is_training_pair[b]:
                trained = source.ids[source.offsets[b] : source.offsets[b + 1]]
                _add_left_out(left_out[:, j], f, trained, e[j], associations, weights)
        removed = 1.0 if is_training_pair[b] else 0.0
        result[row - rows[0]] = _gain(joint, left_out, f, e, associations, total, removed)
    return result


@kernel
def _add_left_out(left_out, f, trained, word, associations, weights):  # type: ignore[no-untyped-def]
    """Add to `left_out` what a training pair with the source words `trained` contributed to the counts of `word`."""
    keys, starts, _, previous_probs, _, target_counts = associations
    norm = previous_probs[_find_pair(keys, starts, target_counts.size, NULL, word)]
    for k in range(trained.size):
        weights[k] = previous_probs[_find_pair(keys, starts, target_counts.size, trained[k], word)]
        norm += weights[k]
    for i in range(f.size):
        k = _find(trained, 0, trained.size, f[i])
        if k >= 0:
            left_out[i] += weights[k] / norm


@kernel
def _gain(joint, left_out, source, target, associations, total, removed):  # type: ignore[no-untyped-def]
    """Mean over the words of both lines of log(weight + how much more often than independently the other line has it)."""
    m, n = source.size, target.size
    by_target, by_source = np.zeros(n), np.zeros(m)
    for i in range(m):
        remaining = associations.source_counts[source[i]]
        for j in range(n):
            remaining -= left_out[i, j]
        for j in range(n):
            p = (associations.target_counts[target[j]] - removed) / total
            count = max(0.0, joint[i, j] - left_out[i, j])
            ratio = (count / p + SMOOTHING) / (max(0.0, remaining) + SMOOTHING) if p > 0 else 1.0
            by_target[j] += ratio / m
            by_source[i] += ratio / n
    gain = 0.0
    for j in range(n):
        gain += np.log(UNIFORM_WEIGHT + (1 - UNIFORM_WEIGHT) * by_target[j])
    for i in range(m):
        gain += np.log(UNIFORM_WEIGHT + (1 - UNIFORM_WEIGHT) * by_source[i])
    return gain / (m + n)
