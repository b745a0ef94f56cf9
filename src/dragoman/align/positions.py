"""Position models: the probability that a target word comes from a source position, whatever the words are.

`expect` is the E step: it computes posteriors for all cells of a text, given P(e | f) of each cell, and statistics.
`fit` is the M step: it estimates the parameters from these statistics.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import PairGrid
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map

FloatArray = NDArray[np.float64]
MAX_JUMP = 40  # longer jumps have the probability of this one
# The step to the next word is the likeliest.
INITIAL_JUMPS = 1.0 / (1.0 + np.abs(np.arange(-MAX_JUMP, MAX_JUMP + 1) - 1)) ** 1.5
NULL_PROB = 0.08  # probability that a target word comes from NULL
MAX_TENSION = 40.0


@dataclass(frozen=True, eq=False)
class Expectation:
    """Result of the E step."""

    posteriors: FloatArray  # (cells,) each row of a pair sums to 1
    log_likelihood: float  # of the target, given the source
    statistics: FloatArray  # to fit the position model to


class PositionModel(ABC):
    """A position model of any kind. Without arguments, it has the parameters that training starts with."""

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        return cls(**config)

    def config(self) -> dict[str, object]:
        """The parameters as plain values, for `from_config`."""
        return dict(vars(self))

    @abstractmethod
    def expect(self, grid: PairGrid, entries: NDArray[np.int32], probs: FloatArray) -> Expectation:
        """Compute the posteriors of all cells.  # entries: (cells,) index of each cell's P(e | f) in `probs`"""

    def fit(self, grid: PairGrid, statistics: FloatArray) -> Self:
        """Return the model with the parameters that maximise the expected likelihood."""
        return self


@dataclass(frozen=True)
class UniformPositions(PositionModel):
    """P(a_j = i) = 1 / (|F| + 1) (IBM Model 1, Brown et al. 1993)."""

    def expect(self, grid: PairGrid, entries: NDArray[np.int32], probs: FloatArray) -> Expectation:
        return _expect_independent(grid, entries, probs, 0.0, -1.0)


@dataclass(frozen=True)
class DiagonalPositions(PositionModel):
    """P(a_j = i) is proportional to exp(-tension |i/|F| - j/|E||); NULL has a fixed probability (Dyer et al. 2013)."""

    tension: float = 4.0
    null: float = NULL_PROB

    def __post_init__(self) -> None:
        if not (0 <= self.tension <= MAX_TENSION and 0 < self.null < 1):
            raise ValueError(f"tension {self.tension} must be from 0 to {MAX_TENSION:g}, null {self.null} in (0, 1)")

    def expect(self, grid: PairGrid, entries: NDArray[np.int32], probs: FloatArray) -> Expectation:
        return _expect_independent(grid, entries, probs, self.tension, self.null)

    def fit(self, grid: PairGrid, statistics: FloatArray) -> Self:
        """Find, by Newton's method, the tension at which the mean distance equals the expected one."""
        aligned, distance = statistics.tolist()
        if not aligned:
            return self
        sizes = np.stack([grid.source.sizes, grid.target.sizes], axis=1)  # (pairs, 2)
        shapes, frequencies = np.unique(sizes[(sizes > 0).all(axis=1)], axis=0, return_counts=True)
        tension = self.tension
        for _ in range(8):
            total, mean, variance = _distance_moments(shapes, frequencies.astype(np.float64), tension)
            step = (mean / total - distance / aligned) / max(variance / total, 1e-9)
            tension = float(np.clip(tension + np.clip(step, -2.0, 2.0), 0.0, MAX_TENSION))
        return replace(self, tension=tension)


@dataclass(frozen=True, eq=False)
class JumpPositions(PositionModel):
    """P(a_j = i | a_{j-1} = k) is proportional to jumps[i - k]; NULL has a fixed probability and keeps the position.

    The HMM of Vogel et al. (1996), with NULL as in Och and Ney (2003).
    """

    jumps: FloatArray = field(default_factory=INITIAL_JUMPS.copy)  # (2 * MAX_JUMP + 1,) from -MAX_JUMP to MAX_JUMP
    null: float = NULL_PROB

    def __post_init__(self) -> None:
        """Check the shape: kernels use jumps without bounds checks."""
        has_jumps = self.jumps.shape == (2 * MAX_JUMP + 1,) and ((self.jumps > 0) & (self.jumps < np.inf)).all()
        if not has_jumps or not 0 < self.null < 1:
            raise ValueError(f"expected {2 * MAX_JUMP + 1} jumps above 0, and null in (0, 1)")

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        if set(config) != {"jumps", "null"}:
            raise ValueError("expected the parameters jumps and null")
        return cls(np.array(config["jumps"], np.float64), float(np.array(config["null"], np.float64)))

    def config(self) -> dict[str, object]:
        return {"jumps": self.jumps.tolist(), "null": self.null}

    def expect(self, grid: PairGrid, entries: NDArray[np.int32], probs: FloatArray) -> Expectation:
        posteriors = np.empty(grid.num_cells)
        forward_backward = partial(_forward_backward, grid.offsets, entries, probs, self.jumps, self.null, posteriors)
        results = parallel_map(forward_backward, grid.chunks)
        log_likelihood = sum(value for value, _ in results)
        return Expectation(posteriors, log_likelihood, sum((counts for _, counts in results), np.zeros(1)))

    def fit(self, grid: PairGrid, statistics: FloatArray) -> Self:
        """Use relative frequencies, as is usual, although the normaliser of a jump depends on the sentence length."""
        return replace(self, jumps=(statistics + 1e-3) / (statistics + 1e-3).sum())


POSITION_MODELS: dict[str, type[PositionModel]] = {
    "ibm1": UniformPositions,
    "ibm2": DiagonalPositions,
    "hmm": JumpPositions,
}


def _expect_independent(
    grid: PairGrid, entries: NDArray[np.int32], probs: FloatArray, tension: float, null: float
) -> Expectation:
    """E step of the models in which the target words are aligned independently of each other."""
    posteriors = np.empty(grid.num_cells)
    row_posteriors = partial(_row_posteriors, grid.offsets, entries, probs, tension, null, posteriors)
    sums = parallel_map(row_posteriors, grid.chunks)
    log_likelihood, aligned, distance = np.array(sums, np.float64).reshape(-1, 3).sum(axis=0).tolist()
    return Expectation(posteriors, log_likelihood, np.array([aligned, distance]))


@kernel
def _row_posteriors(at, entries, t, tension, null, posteriors, chunk):  # type: ignore[no-untyped-def]
    """Fill in posteriors row by row; return log-likelihood, expected aligned words, and their distance sum.

    A negative `null` stands for 1 / (|F| + 1).
    """
    likelihood = aligned = distance = 0.0
    for pair in range(chunk[0], chunk[1]):
        n_f, n_e = at.source[pair + 1] - at.source[pair], at.target[pair + 1] - at.target[pair]
        if n_f == 0:
            likelihood += _align_with_null(at.cells[pair], n_e, entries, t, posteriors)
            continue
        p_null = 1.0 / (n_f + 1) if null < 0 else null
        for j in range(n_e):
            row, norm = at.cells[pair] + j * (n_f + 1), 0.0
            for i in range(n_f):
                weight = np.exp(-tension * abs((i + 0.5) / n_f - (j + 0.5) / n_e)) if tension > 0 else 1.0
                posteriors[row + 1 + i] = weight
                norm += weight
            total = p_null * t[entries[row]]
            posteriors[row] = total
            for i in range(n_f):
                p = (1.0 - p_null) * posteriors[row + 1 + i] / norm * t[entries[row + 1 + i]]
                posteriors[row + 1 + i] = p
                total += p
            likelihood += np.log(total)
            posteriors[row] /= total
            for i in range(n_f):
                posteriors[row + 1 + i] /= total
                aligned += posteriors[row + 1 + i]
                distance += posteriors[row + 1 + i] * abs((i + 0.5) / n_f - (j + 0.5) / n_e)
    return likelihood, aligned, distance


@kernel
def _align_with_null(first, n_e, entries, t, posteriors):  # type: ignore[no-untyped-def]
    """Align all words of a target sentence whose source is empty; return the log-likelihood."""
    likelihood = 0.0
    for cell in range(first, first + n_e):
        posteriors[cell] = 1.0
        likelihood += np.log(t[entries[cell]])
    return likelihood


@kernel
def _distance_moments(shapes, frequencies, tension):  # type: ignore[no-untyped-def]
    """Over sentence pairs of these lengths: target words, and the sums of mean and variance of the distance."""
    total = mean = variance = 0.0
    for shape in range(len(shapes)):
        n_f, n_e = shapes[shape]
        for j in range(n_e):
            norm = first_moment = second_moment = 0.0
            for i in range(n_f):
                d = abs((i + 0.5) / n_f - (j + 0.5) / n_e)
                weight = np.exp(-tension * d)
                norm += weight
                first_moment += weight * d
                second_moment += weight * d * d
            total += frequencies[shape]
            mean += frequencies[shape] * first_moment / norm
            variance += frequencies[shape] * (second_moment / norm - (first_moment / norm) ** 2)
    return total, mean, variance


@kernel
def _fill_transitions(n_f, jumps, null, transitions):  # type: ignore[no-untyped-def]
    """P(a_j = i | a_{j-1} = k) in row k; the last row is the start of a sentence, one position before the first."""
    for k in range(n_f + 1):
        previous = k if k < n_f else -1
        norm = 0.0
        for i in range(n_f):
            norm += jumps[min(max(i - previous, -MAX_JUMP), MAX_JUMP) + MAX_JUMP]
        for i in range(n_f):
            jump = jumps[min(max(i - previous, -MAX_JUMP), MAX_JUMP) + MAX_JUMP]
            transitions[k, i] = (1.0 - null) * jump / norm


@kernel
def _forward(first, n_f, n_e, entries, t, null, work):  # type: ignore[no-untyped-def]
    """P(a_j, e_1 ... e_j), scaled to sum to 1 for each j; return the log-likelihood of the sentence."""
    transitions, at_word, at_null, _, scale = work
    likelihood = 0.0
    for j in range(n_e):
        row = first + j * (n_f + 1)
        total = 0.0
        for i in range(n_f):
            if j == 0:
                p_word = transitions[n_f, i]
                p_null = null / n_f
            else:
                p_word = 0.0
                for k in range(n_f):
                    p_word += (at_word[j - 1, k] + at_null[j - 1, k]) * transitions[k, i]
                p_null = null * (at_word[j - 1, i] + at_null[j - 1, i])
            at_word[j, i] = p_word * t[entries[row + 1 + i]]
            at_null[j, i] = p_null * t[entries[row]]
            total += at_word[j, i] + at_null[j, i]
        scale[j] = total
        likelihood += np.log(total)
        for i in range(n_f):
            at_word[j, i] /= total
            at_null[j, i] /= total
    return likelihood


@kernel
def _backward(first, n_f, n_e, entries, t, null, work, posteriors, counts):  # type: ignore[no-untyped-def]
    """P(e_{j+1} ... | a_j), with the same scale; fill in the posteriors and add up the expected jumps."""
    transitions, at_word, at_null, backward, scale = work
    for i in range(n_f):
        backward[n_e - 1, i] = 1.0
    for j in range(n_e - 1, -1, -1):
        row = first + j * (n_f + 1)
        p_null = 0.0
        for i in range(n_f):
            posteriors[row + 1 + i] = at_word[j, i] * backward[j, i]
            p_null += at_null[j, i] * backward[j, i]
            if j == 0:
                counts[min(i + 1, MAX_JUMP) + MAX_JUMP] += posteriors[row + 1 + i]
        posteriors[row] = p_null
        if j == 0:
            break
        for k in range(n_f):
            total = null * t[entries[row]] * backward[j, k]
            for i in range(n_f):
                step = transitions[k, i] * t[entries[row + 1 + i]] * backward[j, i]
                total += step
                expected = (at_word[j - 1, k] + at_null[j - 1, k]) * step / scale[j]
                counts[min(max(i - k, -MAX_JUMP), MAX_JUMP) + MAX_JUMP] += expected
            backward[j - 1, k] = total / scale[j]


@kernel
def _forward_backward(at, entries, t, jumps, null, posteriors, chunk):  # type: ignore[no-untyped-def]
    """Forward-backward over each target sentence. Return the log-likelihood and the expected jumps."""
    max_f = max_e = 1
    for pair in range(chunk[0], chunk[1]):
        max_f = max(max_f, at.source[pair + 1] - at.source[pair])
        max_e = max(max_e, at.target[pair + 1] - at.target[pair])
    transitions, backward, scale = np.empty((max_f + 1, max_f)), np.empty((max_e, max_f)), np.empty(max_e)
    at_word = np.empty((max_e, max_f))  # forward probability of position i
    at_null = np.empty((max_e, max_f))  # forward probability of NULL, i the last position before
    work = (transitions, at_word, at_null, backward, scale)
    likelihood, counts = 0.0, np.zeros_like(jumps)
    for pair in range(chunk[0], chunk[1]):
        n_f, n_e, first = at.source[pair + 1] - at.source[pair], at.target[pair + 1] - at.target[pair], at.cells[pair]
        if n_f == 0:
            likelihood += _align_with_null(first, n_e, entries, t, posteriors)
        elif n_e > 0:
            _fill_transitions(n_f, jumps, null, transitions)
            likelihood += _forward(first, n_f, n_e, entries, t, null, work)
            _backward(first, n_f, n_e, entries, t, null, work, posteriors, counts)
    return likelihood, counts
