"""Expectation maximisation: a lexicon and a position model, trained on sentence pairs in one direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.lexicon import UNSEEN_PROB, Lexicon
from dragoman.align.pair_grid import PairGrid
from dragoman.align.positions import POSITION_MODELS, Expectation, FloatArray, PositionModel, UniformPositions
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map
from dragoman.data.corpus import ParallelCorpus
from dragoman.data.ranges import sum_ranges

ITERATIONS = 5
DIRICHLET_PRIOR = 0.01  # concentration of the prior on each word's translations
MIN_PROB = 1e-300

SCHEDULES = {"ibm1": ("ibm1",), "ibm2": ("ibm1", "ibm2"), "hmm": ("ibm1", "hmm")}  # models trained one after the other


class EMProgress(NamedTuple):
    """Report after one iteration."""

    model: str
    iteration: int
    log_likelihood: float  # by the parameters before it
    words: int

    @property
    def perplexity(self) -> float:
        """Of a target word, given the source."""
        return float(np.exp(-self.log_likelihood / max(1, self.words)))


@dataclass(frozen=True, eq=False)
class EMResult:
    """Parameters and expected counts after the last iteration."""

    keys: NDArray[np.int64]  # (word pairs,) source * |V_e| + target, sorted
    starts: NDArray[np.int64]  # (|V_f| + 1,) where the word pairs of each source word begin
    probs: FloatArray  # (word pairs,) P(e | f)
    counts: FloatArray  # (word pairs,) expected counts of the last E step
    previous_probs: FloatArray  # (word pairs,) P(e | f) before the last M step; `counts` are computed with them
    positions: PositionModel


def run_em(
    grid: PairGrid,
    models: Sequence[str],
    iterations: int = ITERATIONS,
    *,
    prior: float = DIRICHLET_PRIOR,
    report: Callable[[EMProgress], None] = lambda progress: None,
) -> EMResult:
    """Train one model after the other, each starting with the lexicon of the one before.

    The prior applies to the last model only: with the simpler models before it, which know less about positions, it
    would assign rare words to NULL.
    """
    keys, index = grid.word_pairs()
    starts = np.searchsorted(keys, np.arange(grid.source.vocab_size + 1, dtype=np.int64) * grid.target.vocab_size)
    sizes = np.diff(starts)
    probs = np.repeat(1.0 / np.maximum(sizes, 1), sizes)  # uniform over the words seen together with each word
    previous_probs, counts = probs, np.zeros(len(keys))
    positions: PositionModel = UniformPositions()
    for model in models:
        positions = POSITION_MODELS[model]()
        for iteration in range(1, iterations + 1):
            expectation = positions.expect(grid, index, probs)
            report(EMProgress(model, iteration, expectation.log_likelihood, len(grid.target.ids)))
            counts = np.bincount(index, expectation.posteriors, len(keys)).astype(np.float64)
            previous_probs = probs
            probs = maximise(starts, counts, prior if model == models[-1] else 0.0)
            positions = positions.fit(grid, expectation.statistics)
    return EMResult(keys, starts, probs, counts, previous_probs, positions)


def maximise(starts: NDArray[np.int64], counts: FloatArray, prior: float) -> FloatArray:
    """Compute P(e | f) from expected counts.  # (word pairs,)

    Without a prior, relative frequencies. With a prior, exp psi(c + prior) takes the place of c (variational Bayes,
    Johnson 2007), which takes probability from rare pairs; then the values are normalised to sum to one.
    """
    weights = counts if prior == 0 else _exp_digamma(counts + prior)
    totals = np.repeat(sum_ranges(starts, weights), np.diff(starts))
    return np.maximum(np.divide(weights, totals, out=np.zeros_like(weights), where=totals > 0), MIN_PROB)


@kernel
def _exp_digamma(counts):  # type: ignore[no-untyped-def]
    """exp psi(c), psi the digamma function, by its recurrence up to 6 and its asymptotic series from there on."""
    result = np.empty_like(counts)
    for k in range(len(counts)):
        x, psi = counts[k], 0.0
        while x < 6.0:
            psi -= 1.0 / x
            x += 1.0
        y = 1.0 / (x * x)
        psi += np.log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252))
        result[k] = np.exp(psi)
    return result


@dataclass(frozen=True, eq=False)
class DirectionalModel:
    """P(E | F), summed over all alignments: a position model and a lexicon."""

    model: str
    lexicon: Lexicon
    positions: PositionModel

    def expect(self, grid: PairGrid) -> Expectation:
        """Compute P(a_j = i | F, E) in all cells of a text, which need not be the training text."""
        keys, index = grid.word_pairs()
        entries = self.lexicon.entry_indices(keys)[index]
        return self.positions.expect(grid, entries, np.append(self.lexicon.probs, UNSEEN_PROB))

    def align(self, grid: PairGrid) -> NDArray[np.int32]:
        """Return the most probable source position of each target word, or -1 for NULL.  # (target words,)"""
        return most_probable_source(grid, self.expect(grid).posteriors)

    def config(self) -> dict[str, object]:
        return {"model": self.model, **self.positions.config()}


def train_directional_model(
    pairs: ParallelCorpus,
    model: str,
    iterations: int = ITERATIONS,
    *,
    prior: float = DIRICHLET_PRIOR,
    report: Callable[[EMProgress], None] = lambda progress: None,
) -> DirectionalModel:
    """Train an alignment model, after the simpler ones that it starts from (see `SCHEDULES`)."""
    em = run_em(PairGrid.from_pairs(pairs), SCHEDULES[model], iterations, prior=prior, report=report)
    return DirectionalModel(model, Lexicon(pairs.source.vocab, pairs.target.vocab, em.keys, em.probs), em.positions)


def most_probable_source(grid: PairGrid, posteriors: FloatArray) -> NDArray[np.int32]:
    """Return the source position with the highest posterior of each target word; -1 where that is NULL."""
    positions = np.empty(len(grid.target.ids), np.int32)
    parallel_map(partial(_argmax_rows, grid.offsets, posteriors, positions), grid.chunks)
    return positions


@kernel
def _argmax_rows(at, posteriors, positions, chunk):  # type: ignore[no-untyped-def]
    for pair in range(chunk[0], chunk[1]):
        n_f = at.source[pair + 1] - at.source[pair]
        for j in range(at.target[pair + 1] - at.target[pair]):
            row = at.cells[pair] + j * (n_f + 1)
            positions[at.target[pair] + j] = np.argmax(posteriors[row : row + n_f + 1]) - 1
