"""Position models: the probability that a target word comes from a source position, whatever the words are.

Models in which the target words are aligned independently of each other. The HMM is in `hmm.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dragoman.align.pair_grid import IdLines
from dragoman.core.kernels import kernel

FloatArray = NDArray[np.float64]
Config = Mapping[str, object]
NULL_PROB = 0.08  # probability that a target word comes from NULL
MAX_TENSION = 40.0


class Statistics(NamedTuple):
    """What the E step computes to fit a position model to. Models leave out what they do not use."""

    sums: FloatArray  # (3,) log-likelihood of the target, given the source; expected words aligned with a source word,
    #                   and the sum of their distances from the diagonal
    jumps: FloatArray  # (2 * reach + 1,) expected jumps from -reach to reach
    words: FloatArray  # (|V_f|, columns) see `hmm.STAYS`

    @property
    def log_likelihood(self) -> float:
        return float(self.sums[0])


class PositionModel(ABC):
    """A position model of any kind. `config` and `arrays` are its parameters, of which `from_saved` makes it again."""

    @classmethod
    def from_saved(cls, config: Config, arrays: Mapping[str, FloatArray]) -> Self:
        if arrays:
            raise ValueError("unexpected arrays")
        return cls(**config)

    @classmethod
    @abstractmethod
    def initial(cls, source: IdLines) -> Self:
        """The parameters that training starts with."""

    def config(self) -> dict[str, object]:
        """The parameters that are plain values."""
        return dict(vars(self))

    def arrays(self) -> dict[str, FloatArray]:
        """The parameters that are arrays with one row per source word."""
        return {}

    def fit(self, source: IdLines, target: IdLines, statistics: Statistics) -> Self:
        """Return the model with the parameters that maximise the expected likelihood of these texts (the M step)."""
        return self


class IndependentParameters(NamedTuple):
    """For kernels."""

    tension: float
    null: float  # a negative value stands for 1 / (|F| + 1)


class IndependentPositions(PositionModel):
    """A model in which the target words are aligned independently of each other."""

    @classmethod
    def initial(cls, source: IdLines) -> Self:
        return cls()

    @property
    @abstractmethod
    def parameters(self) -> IndependentParameters: ...


@dataclass(frozen=True)
class UniformPositions(IndependentPositions):
    """P(a_j = i) = 1 / (|F| + 1) (IBM Model 1, Brown et al. 1993)."""

    @property
    def parameters(self) -> IndependentParameters:
        return IndependentParameters(0.0, -1.0)


@dataclass(frozen=True)
class DiagonalPositions(IndependentPositions):
    """P(a_j = i) is proportional to exp(-tension |i/|F| - j/|E||); NULL has a fixed probability (Dyer et al. 2013)."""

    tension: float = 4.0
    null: float = NULL_PROB

    def __post_init__(self) -> None:
        if not (0 <= self.tension <= MAX_TENSION and 0 < self.null < 1):
            raise ValueError(f"tension {self.tension} must be from 0 to {MAX_TENSION:g}, null {self.null} in (0, 1)")

    @property
    def parameters(self) -> IndependentParameters:
        return IndependentParameters(float(self.tension), float(self.null))

    def fit(self, source: IdLines, target: IdLines, statistics: Statistics) -> Self:
        """Find, by Newton's method, the tension at which the mean distance equals the expected one."""
        _, aligned, distance = statistics.sums.tolist()
        if not aligned:
            return self
        sizes = np.stack([source.sizes, target.sizes], axis=1)  # (pairs, 2)
        shapes, frequencies = np.unique(sizes[(sizes > 0).all(axis=1)], axis=0, return_counts=True)
        tension = self.tension
        for _ in range(8):
            total, mean, variance = _distance_moments(shapes, frequencies.astype(np.float64), tension)
            step = (mean / total - distance / aligned) / max(variance / total, 1e-9)
            tension = float(np.clip(tension + np.clip(step, -2.0, 2.0), 0.0, MAX_TENSION))
        return replace(self, tension=tension)


@kernel
def independent_posteriors(t, n_f, n_e, parameters, posteriors):  # type: ignore[no-untyped-def]
    """P(a_j = i | F, E) of one sentence pair, and three sums: log-likelihood, aligned words, their distances.

    # t, posteriors: (n_e or more, n_f + 1 or more) P(e_j | f_i) in column i, and of NULL in column n_f
    """
    tension, p_null = parameters.tension, parameters.null if parameters.null >= 0 else 1.0 / (n_f + 1)
    likelihood = aligned = distance = 0.0
    for j in range(n_e):
        norm = float(n_f)
        for i in range(n_f):
            posteriors[j, i] = 1.0
        if tension > 0:
            norm = 0.0
            for i in range(n_f):
                posteriors[j, i] = np.exp(-tension * abs((i + 0.5) / n_f - (j + 0.5) / n_e))
                norm += posteriors[j, i]
        total = posteriors[j, n_f] = p_null * t[j, n_f]
        p_word = (1.0 - p_null) / norm
        for i in range(n_f):
            posteriors[j, i] *= p_word * t[j, i]
            total += posteriors[j, i]
        likelihood += np.log(total)
        inverse = 1.0 / total
        for i in range(n_f + 1):
            posteriors[j, i] *= inverse
        aligned += 1.0 - posteriors[j, n_f]
        if parameters.null >= 0:  # the distances are used to fit the tension
            for i in range(n_f):
                distance += posteriors[j, i] * abs((i + 0.5) / n_f - (j + 0.5) / n_e)
    return likelihood, aligned, distance


@kernel
def null_posteriors(t, n_e, posteriors):  # type: ignore[no-untyped-def]
    """Align all words of a target sentence whose source is empty with NULL; return the log-likelihood."""
    likelihood = 0.0
    for j in range(n_e):
        posteriors[j, 0] = 1.0
        likelihood += np.log(t[j, 0])
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
