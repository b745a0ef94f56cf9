"""How well the words of two lines explain each other, by IBM Model 1, without the counts from the lines themselves.

Model 1 gives expected counts c(f, e): how often target word e comes from source word f. A pair of lines is scored by
how much more often its words occur together than expected by chance. The counts from this pair are removed first:
otherwise two rare words that occur in one wrong pair only would count as evidence for this pair.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dragoman.align.em import run_em
from dragoman.align.pair_grid import NULL, IdLines, PairGrid
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range

ITERATIONS = 4
SMOOTHING = 1.0  # pseudo-count of each source word that is distributed by chance
CHANCE_WEIGHT = 0.1  # weight of chance in the explanation of each word: bounds how much one word can lower a score


@dataclass(frozen=True, eq=False)
class WordAssociations:
    """Expected counts of Model 1, by which pairs of lines can be scored."""

    keys: NDArray[np.int64]  # (word pairs,) source * |V_e| + target, sorted
    starts: NDArray[np.int64]  # (|V_f| + 1,) where the pairs of each source word begin
    counts: NDArray[np.float64]  # (word pairs,) c(f, e)
    previous_probs: NDArray[np.float64]  # (word pairs,) P(e | f) by which the counts were expected
    source_counts: NDArray[np.float64]  # (|V_f|,) c(f)
    target_counts: NDArray[np.float64]  # (|V_e|,) c(e)

    @classmethod
    def train(cls, source: IdLines, target: IdLines, iterations: int = ITERATIONS) -> WordAssociations:
        """Train Model 1 on lines, each a sorted set of words."""
        em = run_em(PairGrid(source, target), ("ibm1",), iterations, prior=0.0)
        cumulative = np.concatenate([[0.0], np.cumsum(em.counts)])
        return cls(
            em.keys,
            em.starts,
            em.counts,
            em.previous_probs,
            np.diff(cumulative[em.starts]),
            np.bincount(target.ids, minlength=target.vocab_size).astype(np.float64),
        )

    def pair_scores(
        self,
        source: IdLines,
        target: IdLines,
        source_lines: NDArray[np.int64],
        target_lines: NDArray[np.int64],
        is_training_pair: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """For each source line and target line: nats per word by which their words are likelier together than apart.

        About 0 or less is chance; lines without words are NaN.  # (pairs of lines,)

        `is_training_pair` states for each line i whether source line i and target line i were trained on as a pair.
        """
        tables = (self.keys, self.starts, self.counts, self.previous_probs, self.source_counts, self.target_counts)
        longest = max(1, int(source.sizes.max(initial=0)), int(target.sizes.max(initial=0)))

        def score(span: tuple[int, int]) -> NDArray[np.float64]:
            rows = (lines[slice(*span)] for lines in (source_lines, target_lines))
            scores: NDArray[np.float64] = _score(*source[:2], *target, *rows, is_training_pair, *tables, longest)
            return scores

        return np.concatenate([np.zeros(0), *parallel_map(score, split_range(0, len(source_lines)))])


@kernel
def _find(keys, starts, source, target, width):  # type: ignore[no-untyped-def]
    """The index of a word pair, or -1."""
    key = np.int64(source) * width + target
    first, last = starts[source], starts[source + 1]
    while first < last:
        middle = (first + last) // 2
        if keys[middle] < key:
            first = middle + 1
        else:
            last = middle
    return first if first < starts[source + 1] and keys[first] == key else -1


@kernel
def _position(words, first, last, word):  # type: ignore[no-untyped-def]
    """Where a word is among the sorted words first..last, or -1."""
    end = last
    while first < last:
        middle = (first + last) // 2
        if words[middle] < word:
            first = middle + 1
        else:
            last = middle
    return first if first < end and words[first] == word else -1


@kernel
def _score(  # type: ignore[no-untyped-def]
    f, f_at, e, e_at, width, source_lines, target_lines, is_training_pair,
    keys, starts, counts, previous, source_counts, target_counts, longest,
):  # fmt: skip
    """The score of each pair of lines, without the counts that these lines contributed.

    Source line a may have been trained on with target line a, and target line b with source line b. Where these
    resemble the lines that are scored, as neighbours often do, their counts must not support them either.
    """
    result = np.full(source_lines.size, np.nan)
    total = target_counts.sum()
    joint, left_out = np.empty((longest, longest)), np.empty((longest, longest))
    weights = np.empty(longest)
    for row in range(source_lines.size):
        a, b = source_lines[row], target_lines[row]
        m, n = f_at[a + 1] - f_at[a], e_at[b + 1] - e_at[b]
        if m == 0 or n == 0:
            continue
        left_out[:m, :n] = 0.0
        for j in range(n):
            word = e[e_at[b] + j]
            for i in range(m):
                index = _find(keys, starts, f[f_at[a] + i], word, width)
                joint[i, j] = counts[index] if index >= 0 else 0.0
            if is_training_pair[a] and _position(e, e_at[a], e_at[a + 1], word) >= 0:
                _add_left_out(
                    left_out, j, f, f_at[a], m, f_at[a], f_at[a + 1], word, width, keys, starts, previous, weights
                )
            if a != b and is_training_pair[b]:
                _add_left_out(
                    left_out, j, f, f_at[a], m, f_at[b], f_at[b + 1], word, width, keys, starts, previous, weights
                )
        removed = 1.0 if is_training_pair[b] else 0.0
        result[row] = _gain(
            joint,
            left_out,
            f[f_at[a] : f_at[a + 1]],
            e[e_at[b] : e_at[b + 1]],
            source_counts,
            target_counts,
            total,
            removed,
        )
    return result


@kernel
def _add_left_out(left_out, j, f, f_first, m, first, last, word, width, keys, starts, previous, weights):  # type: ignore[no-untyped-def]
    """Add to `left_out[:, j]` what a training pair with source words first..last contributed to the counts of `word`."""
    norm = previous[_find(keys, starts, NULL, word, width)]
    for k in range(first, last):
        weights[k - first] = previous[_find(keys, starts, f[k], word, width)]
        norm += weights[k - first]
    for i in range(m):
        k = _position(f, first, last, f[f_first + i])
        if k >= 0:
            left_out[i, j] += weights[k - first] / norm


@kernel
def _gain(joint, left_out, source, target, source_counts, target_counts, total, removed):  # type: ignore[no-untyped-def]
    """Mean over the words of both lines of log(chance + how much more often than by chance the other line has it)."""
    m, n = source.size, target.size
    by_target, by_source = np.zeros(n), np.zeros(m)
    for i in range(m):
        remaining = source_counts[source[i]]
        for j in range(n):
            remaining -= left_out[i, j]
        for j in range(n):
            p = (target_counts[target[j]] - removed) / total
            count = max(0.0, joint[i, j] - left_out[i, j])
            ratio = (count / p + SMOOTHING) / (max(0.0, remaining) + SMOOTHING) if p > 0 else 1.0
            by_target[j] += ratio / m
            by_source[i] += ratio / n
    gain = 0.0
    for j in range(n):
        gain += np.log(CHANCE_WEIGHT + (1 - CHANCE_WEIGHT) * by_target[j])
    for i in range(m):
        gain += np.log(CHANCE_WEIGHT + (1 - CHANCE_WEIGHT) * by_source[i])
    return gain / (m + n)
