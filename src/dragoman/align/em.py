"""Expectation and maximisation: a lexicon and a model of positions, learned from pairs in one direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.lexicon import UNSEEN_PROB, Lexicon
from dragoman.align.pair_grid import PairGrid
from dragoman.align.positions import (
    Array,
    DiagonalPositions,
    Expectation,
    JumpPositions,
    PositionModel,
    UniformPositions,
)
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map

ITERATIONS = 5
DIRICHLET_PRIOR = 0.01  # of the Dirichlet distribution from which each word's translations are thought to come

INITIAL_POSITION_MODELS: dict[str, Callable[[], PositionModel]] = {
    "ibm1": UniformPositions,
    "ibm2": DiagonalPositions,
    "hmm": JumpPositions.initial,
}
POSITION_MODELS: dict[str, Callable[..., PositionModel]] = {
    "ibm1": UniformPositions,
    "ibm2": DiagonalPositions,
    "hmm": lambda jumps, null: JumpPositions(np.array(jumps, np.float64), float(null)),
}


class EMProgress(NamedTuple):
    """After one iteration."""

    model: str
    iteration: int
    log_likelihood: float  # by the parameters before it
    words: int

    @property
    def perplexity(self) -> float:
        """Of a target word, given the source."""
        return float(np.exp(-self.log_likelihood / max(1, self.words)))


@dataclass(frozen=True, eq=False)
class DirectionalModel:
    """P(E | F), all alignments together: a word comes from somewhere (positions), and is translated (lexicon)."""

    model: str
    lexicon: Lexicon
    positions: PositionModel

    def expect(self, grid: PairGrid) -> Expectation:
        """P(a_j = i | F, E) in all cells of a text, which need not be the one it was learned from."""
        entry = self.lexicon.entry_indices(grid.keys())
        return self.positions.expect(grid, entry, np.append(self.lexicon.probs, UNSEEN_PROB))

    def align(self, grid: PairGrid) -> NDArray[np.int32]:
        """For each target word the source word that it most probably comes from, or -1.  # (target words,)"""
        return most_probable_source(grid, self.expect(grid).posteriors)

    def config(self) -> dict[str, Any]:
        return {"model": self.model, **self.positions.config()}


def train_directional_model(
    grid: PairGrid,
    models: Sequence[str],
    iterations: int = ITERATIONS,
    *,
    prior: float = DIRICHLET_PRIOR,
    report: Callable[[EMProgress], None] = lambda progress: None,
) -> DirectionalModel:
    """One model after the other, each beginning with the lexicon of the one before. The prior is for the last one:
    those before, which know less of positions, would take it for a reason to leave rare words to the empty word."""
    keys, entry = _lexicon_entries(grid)
    lexicon = Lexicon(grid.source.vocab, grid.target.vocab, keys, np.zeros(len(keys)))
    t = _uniform(lexicon)
    positions: PositionModel = UniformPositions()
    for model in models:
        positions = INITIAL_POSITION_MODELS[model]()
        for iteration in range(1, iterations + 1):
            expected = positions.expect(grid, entry, t)
            report(EMProgress(model, iteration, expected.log_likelihood, grid.target.num_words))
            counts: Array = np.bincount(entry, expected.posteriors, len(keys)).astype(np.float64)  # (entries,)
            t = _maximise(lexicon, counts, prior if model == models[-1] else 0.0)
            positions = positions.fit(grid, expected.statistics)
    return DirectionalModel(models[-1], Lexicon(lexicon.source, lexicon.target, keys, t), positions)


def _lexicon_entries(cells: PairGrid) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The pairs of words that come together, and of each cell which one it is."""
    keys, entry = np.unique(cells.keys(), return_inverse=True)
    return keys, entry.astype(np.int32)


def _uniform(lexicon: Lexicon) -> Array:
    """To begin with, all words that come together with a word are alike as its translations.  # (entries,)"""
    sizes = np.diff(lexicon.starts)
    return np.repeat(1.0 / np.maximum(sizes, 1), sizes)


def _maximise(lexicon: Lexicon, counts: Array, prior: float) -> Array:
    """P(e | f) from expected counts.  # (entries,)

    Without a prior, relative frequencies. With one, exp psi(c + prior) in the place of c (variational Bayes, as
    Johnson 2007 has it), which takes probability from what was seen too rarely to be believed; then scaled to sum to
    one, as a lexicon's must.
    """
    starts = lexicon.starts
    weights = counts if prior == 0 else _exp_digamma(counts + prior)
    sizes = np.diff(starts)
    seen = np.flatnonzero(sizes)
    sums = np.zeros(len(sizes))
    if len(seen):
        sums[seen] = np.add.reduceat(weights, starts[:-1][seen])
    each = np.repeat(sums, sizes)
    return np.maximum(np.divide(weights, each, out=np.zeros_like(weights), where=each > 0), 1e-300)


@kernel
def _exp_digamma(counts):  # type: ignore[no-untyped-def]
    """exp psi(c), psi the digamma function, by its recurrence up to 6 and its asymptotic series from there on."""
    found = np.empty_like(counts)
    for place in range(len(counts)):
        x, psi = counts[place], 0.0
        while x < 6.0:
            psi -= 1.0 / x
            x += 1.0
        y = 1.0 / (x * x)
        psi += np.log(x) - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252))
        found[place] = np.exp(psi)
    return found


def most_probable_source(grid: PairGrid, posteriors: Array) -> NDArray[np.int32]:
    """Of each target word the source word with the highest posterior; -1 where that is the empty one."""
    found = np.empty(grid.target.num_words, np.int32)
    parallel_map(lambda part: _choose(*part, *grid.offset_arrays, posteriors, found), grid.chunks)
    return found


@kernel
def _choose(first, last, source_at, target_at, cell_at, posteriors, found):  # type: ignore[no-untyped-def]
    for pair in range(first, last):
        n_f = source_at[pair + 1] - source_at[pair]
        for j in range(target_at[pair + 1] - target_at[pair]):
            row = cell_at[pair] + j * (n_f + 1)
            best = 0
            for i in range(1, n_f + 1):
                if posteriors[row + i] > posteriors[row + best]:
                    best = i
            found[target_at[pair] + j] = best - 1
