"""The HMM alignment model (Vogel et al. 1996), with a probability to stay at each source word, and fertilities.

The source position of a target word depends on that of the target word before:

    P(a_j = k | a_{j-1} = k) = (1 - null) stay[f_k]
    P(a_j = i | a_{j-1} = k) = (1 - null) (1 - stay[f_k]) jump[i - k] / sum over i' != k of jump[i' - k]

NULL has one probability and keeps the position of the word before (Och and Ney 2003). The probability to stay depends on
the source word (Toutanova et al. 2002). Fertilities, the number of target words that a source word has, are not part of
a HMM; they enter as a factor on P(e_j | f_i), see `apply_fertilities`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from dragoman.align.pair_grid import IdLines
from dragoman.align.positions import NULL_PROB, Config, FloatArray, PositionModel, Statistics
from dragoman.core.kernels import kernel

MAX_JUMP = 40  # longer jumps have the probability of this one
# The step to the next word is the likeliest.
INITIAL_JUMPS = 1.0 / (1.0 + np.abs(np.arange(-MAX_JUMP, MAX_JUMP + 1) - 1)) ** 1.5
MIN_JUMP_COUNT = 1e-3
INITIAL_STAY = 0.1
STAY_PRIOR = 10.0  # jumps from each source word that are assumed to be as likely to stay as those from all words
MIN_NULL, MAX_NULL = 0.001, 0.5
MAX_FERTILITY = 4  # more target words have the probability of this many
FERTILITY_PRIOR = 5.0  # occurrences of each source word that are assumed to have the fertilities of all words

# Columns of the statistics of a source word: expected times that the next target word has the same source word, or
# another one, and how often it is expected to have 0, 1, ... target words.
STAYS, MOVES, FERTILITIES = 0, 1, 2


class JumpParameters(NamedTuple):
    """For kernels. Jumps have zero at the distance 0, which is a stay."""

    jumps: FloatArray  # (2 * reach + 1,) from -reach to reach
    reversed_jumps: FloatArray  # (2 * reach + 1,) from reach to -reach
    cumulative: FloatArray  # (2 * reach + 2,) sums of all jumps before
    null: float
    stays: FloatArray  # (|V_f|,)
    fertility_ratios: FloatArray  # (|V_f|, MAX_FERTILITY) P(n + 1 | f) / P(n | f)


@dataclass(frozen=True, eq=False)
class JumpPositions(PositionModel):
    """The parameters of the HMM."""

    jumps: FloatArray  # (2 * MAX_JUMP + 1,) from -MAX_JUMP to MAX_JUMP, in proportion; the one at 0 is not used
    null: float
    stays: FloatArray  # (|V_f|,)
    fertilities: FloatArray  # (|V_f|, MAX_FERTILITY + 1) P(n | f)

    def __post_init__(self) -> None:
        """Check the values: kernels use them without bounds checks."""
        if self.jumps.shape != (2 * MAX_JUMP + 1,) or not ((self.jumps > 0) & (self.jumps < np.inf)).all():
            raise ValueError(f"expected {2 * MAX_JUMP + 1} jumps above 0")
        if not 0 < self.null < 1:
            raise ValueError("expected null in (0, 1)")
        if self.stays.ndim != 1 or not ((self.stays > 0) & (self.stays < 1)).all():
            raise ValueError("expected stays in (0, 1)")
        has_shape = self.fertilities.shape == (len(self.stays), MAX_FERTILITY + 1)
        if not has_shape or not ((self.fertilities > 0) & (self.fertilities < 1)).all():
            raise ValueError("expected fertilities in (0, 1), one row per source word")

    @classmethod
    def initial(cls, source: IdLines) -> Self:
        size = source.vocab_size
        uniform = np.full((size, MAX_FERTILITY + 1), 1.0 / (MAX_FERTILITY + 1))
        return cls(INITIAL_JUMPS.copy(), NULL_PROB, np.full(size, INITIAL_STAY), uniform)

    @classmethod
    def from_saved(cls, config: Config, arrays: Mapping[str, FloatArray]) -> Self:
        if set(config) != {"jumps", "null"} or set(arrays) != {"stays", "fertilities"}:
            raise ValueError("expected the parameters jumps, null, stays and fertilities")
        stays, fertilities = (np.array(arrays[name], np.float64) for name in ("stays", "fertilities"))
        jumps, null = np.array(config["jumps"], np.float64), float(np.array(config["null"], np.float64))
        return cls(jumps, null, stays, fertilities)

    def config(self) -> dict[str, object]:
        return {"jumps": self.jumps.tolist(), "null": self.null}

    def arrays(self) -> dict[str, FloatArray]:
        return {"stays": self.stays, "fertilities": self.fertilities}

    def parameters(self, longest: int) -> JumpParameters:
        """Return the parameters for lines of up to `longest` words."""
        reach = max(longest, MAX_JUMP)
        jumps = np.pad(self.jumps, reach - MAX_JUMP, mode="edge")
        jumps[reach] = 0.0
        cumulative = np.concatenate([[0.0], np.cumsum(jumps)])
        return JumpParameters(jumps, jumps[::-1].copy(), cumulative, self.null, self.stays, self._fertility_ratios)

    @cached_property
    def _fertility_ratios(self) -> FloatArray:
        return np.ascontiguousarray(self.fertilities[:, 1:] / self.fertilities[:, :-1])

    def fit(self, source: IdLines, target: IdLines, statistics: Statistics) -> Self:
        """Estimate the parameters from the statistics of the E step (the M step).

        Relative frequencies are used for jumps, as is usual, although their normaliser depends on the sentence length.
        """
        counts = _clip_distances(statistics.jumps) + MIN_JUMP_COUNT
        null = 1.0 - statistics.sums[1] / max(1, len(target.ids))
        stays, moves, fertilities = np.split(statistics.words, [MOVES, FERTILITIES], axis=1)  # (|V_f|, ...)
        mean_stay = (stays.sum() + 0.1) / (stays.sum() + moves.sum() + 1.0)
        mean_fertilities = (fertilities.sum(axis=0) + 1.0) / (fertilities.sum() + MAX_FERTILITY + 1)
        return type(self)(
            counts / counts.sum(),
            float(np.clip(null, MIN_NULL, MAX_NULL)),
            ((stays + STAY_PRIOR * mean_stay) / (stays + moves + STAY_PRIOR))[:, 0],
            (fertilities + FERTILITY_PRIOR * mean_fertilities)
            / (fertilities.sum(axis=1, keepdims=True) + FERTILITY_PRIOR),
        )


def _clip_distances(jumps: FloatArray) -> FloatArray:
    """Add jumps of more than `MAX_JUMP` to those of `MAX_JUMP`.  # (2 * MAX_JUMP + 1,)"""
    reach = len(jumps) // 2
    distances = np.clip(np.arange(-reach, reach + 1), -MAX_JUMP, MAX_JUMP)
    return np.bincount(distances + MAX_JUMP, jumps, 2 * MAX_JUMP + 1).astype(np.float64)


class JumpWork(NamedTuple):
    """Memory for `jump_posteriors`, used for one sentence pair after the other."""

    forward: FloatArray  # (n_e, n_f) P(a_j = i, e_1 ... e_j), also where e_j is from NULL, scaled to sum to 1
    scale: FloatArray  # (n_e,)
    backward: FloatArray  # (n_f,) P(e_{j+1} ... | a_j = i), with the same scale
    next_word: FloatArray  # (n_f,) P(e_{j+1} ... | a_{j+1} = i), with the same scale
    leaving: FloatArray  # (n_f,) forward times `leave`
    leave: FloatArray  # (n_f,) (1 - null) (1 - stay) / normaliser of the jumps from each position
    stay: FloatArray  # (n_f,) (1 - null) stay
    row: FloatArray  # (n_f,) P(a_j = i, e_1 ... e_{j-1})
    transitions: FloatArray  # (n_f, 2) expected stays and moves from each position

    @classmethod
    def allocate(cls, longest: int) -> Self:
        scale, backward, next_word, leaving, leave, stay, row = np.empty((7, longest))
        forward, transitions = np.empty((longest, longest)), np.empty((longest, 2))
        return cls(forward, scale, backward, next_word, leaving, leave, stay, row, transitions)


@kernel
def jump_posteriors(t, words, n_e, parameters, work, posteriors, jump_counts):  # type: ignore[no-untyped-def]
    """P(a_j = i | F, E) of one sentence pair by the forward-backward algorithm; return the log-likelihood.

    Adds the expected jumps, divided by `jumps`, to `jump_counts`, and fills in the expected stays and moves of `work`.

    # words: (n_f,); t, posteriors: (n_e or more, n_f + 1 or more) P(e_j | f_i) in column i, and of NULL in column n_f
    """
    likelihood = _forward(t, words, n_e, parameters, work, posteriors)
    _backward(t, words, n_e, parameters, work, posteriors, jump_counts)
    return likelihood


@kernel
def _dot(x, y, size):  # type: ignore[no-untyped-def]
    total = 0.0
    for k in range(size):
        total += x[k] * y[k]
    return total


@kernel
def _forward(t, words, n_e, parameters, work, posteriors):  # type: ignore[no-untyped-def]
    """Compute `forward` and `scale`; fill in posteriors[j, i] = P(a_j = i, e_1 ... e_j), scaled, of the words."""
    forward, scale, _, _, leaving, leave, stay, row, _ = work
    jumps, reversed_jumps, cumulative, null, stays, _ = parameters
    n_f, reach, likelihood = len(words), len(jumps) // 2, 0.0
    for k in range(n_f):
        p_stay = stays[words[k]] if n_f > 1 else 1.0
        norm = cumulative[reach - k + n_f] - cumulative[reach - k]
        leave[k] = (1.0 - null) * (1.0 - p_stay) / norm if n_f > 1 else 0.0
        stay[k] = (1.0 - null) * p_stay
    norm = cumulative[reach + 1 + n_f] - cumulative[reach + 1]
    for j in range(n_e):
        if j == 0:
            for i in range(n_f):
                row[i] = (1.0 - null) * jumps[reach + 1 + i] / norm
        else:
            for k in range(n_f):
                leaving[k] = forward[j - 1, k] * leave[k]
            for i in range(n_f):
                row[i] = forward[j - 1, i] * stay[i] + _dot(leaving, reversed_jumps[reach - i :], n_f)  # jumps i - k
        total = 0.0
        for i in range(n_f):
            before = forward[j - 1, i] if j > 0 else 1.0 / n_f
            posteriors[j, i] = row[i] * t[j, i]
            forward[j, i] = posteriors[j, i] + null * before * t[j, n_f]
            total += forward[j, i]
        scale[j] = total
        likelihood += np.log(total)
        inverse = 1.0 / total
        for i in range(n_f):
            posteriors[j, i] *= inverse
            forward[j, i] *= inverse
    return likelihood


@kernel
def _backward(t, words, n_e, parameters, work, posteriors, jump_counts):  # type: ignore[no-untyped-def]
    """Compute `backward` from the last word to the first; turn forward probabilities into posteriors, and count."""
    forward, scale, backward, next_word, leaving, leave, stay, _, transitions = work
    jumps, _, _, null, _, _ = parameters
    n_f, reach = len(words), len(jumps) // 2
    for i in range(n_f):
        backward[i] = 1.0
        transitions[i, STAYS] = transitions[i, MOVES] = 0.0
    for j in range(n_e - 1, -1, -1):
        p_null = 1.0
        for i in range(n_f):
            posteriors[j, i] *= backward[i]
            p_null -= posteriors[j, i]
        posteriors[j, n_f] = max(p_null, 0.0)
        if j == 0:
            for i in range(n_f):
                jump_counts[reach + 1 + i] += posteriors[j, i] / jumps[reach + 1 + i]
            break
        for i in range(n_f):
            next_word[i] = t[j, i] * backward[i] / scale[j]  # (n_f,) if the next word comes from position i
        for k in range(n_f):
            leaving[k] = forward[j - 1, k] * leave[k]
            arriving = _dot(next_word, jumps[reach - k :], n_f)  # over the jumps i - k
            transitions[k, STAYS] += forward[j - 1, k] * stay[k] * next_word[k]
            transitions[k, MOVES] += leaving[k] * arriving
            backward[k] = stay[k] * next_word[k] + leave[k] * arriving + null * t[j, n_f] * backward[k] / scale[j]
        for jump in range(1, n_f):
            jump_counts[reach + jump] += _dot(leaving, next_word[jump:], n_f - jump)
            jump_counts[reach - jump] += _dot(leaving[jump:], next_word, n_f - jump)


@kernel
def apply_fertilities(t, words, n_e, ratios, posteriors):  # type: ignore[no-untyped-def]
    """Multiply P(e_j | f_i) by P(n + 1 | f_i) / P(n | f_i), where n other target words come from position i.

    By the given posteriors, n is their expected number; ratios are interpolated.
    # t: (n_e, n_f); posteriors: (n_e, n_f); ratios: (|V_f|, MAX_FERTILITY)
    """
    for i in range(len(words)):
        expected = 0.0
        for j in range(n_e):
            expected += posteriors[j, i]
        for j in range(n_e):
            others = min(max(expected - posteriors[j, i], 0.0), MAX_FERTILITY - 1.0)
            n = min(int(others), MAX_FERTILITY - 2)
            ratio = ratios[words[i], n] + (others - n) * (ratios[words[i], n + 1] - ratios[words[i], n])
            t[j, i] *= ratio


@kernel
def count_words(words, n_e, posteriors, transitions, word_counts):  # type: ignore[no-untyped-def]
    """Add expected stays, moves and fertilities: P(n target words come from position i), as if they were independent."""
    distribution = np.empty(MAX_FERTILITY + 1)
    for i in range(len(words)):
        if len(words) > 1:
            word_counts[words[i], STAYS] += transitions[i, STAYS]
            word_counts[words[i], MOVES] += transitions[i, MOVES]
        distribution[:] = 0.0
        distribution[0] = 1.0
        for j in range(n_e):
            p = posteriors[j, i]
            distribution[MAX_FERTILITY] += p * distribution[MAX_FERTILITY - 1]
            for n in range(MAX_FERTILITY - 1, 0, -1):
                distribution[n] += p * (distribution[n - 1] - distribution[n])
            distribution[0] *= 1.0 - p
        for n in range(MAX_FERTILITY + 1):
            word_counts[words[i], FERTILITIES + n] += distribution[n]
