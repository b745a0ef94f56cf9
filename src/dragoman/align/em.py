"""Expectation maximisation: lexicons and position models of both directions, trained on sentence pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.expectation import Expectation, LexiconTables
from dragoman.align.hmm import JumpPositions
from dragoman.align.pair_grid import NULL, PairGrid, split_evenly
from dragoman.align.positions import (
    DiagonalPositions,
    FloatArray,
    PositionModel,
    UniformPositions,
)
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map

ITERATIONS = 5
DIRICHLET_PRIORS = {"ibm1": 0.01, "ibm2": 0.01, "hmm": 0.1}  # by model: concentration of the prior on translations
MIN_PROB = 1e-30

POSITION_MODELS: dict[str, type[PositionModel]] = {
    "ibm1": UniformPositions,
    "ibm2": DiagonalPositions,
    "hmm": JumpPositions,
}
SCHEDULES = {"ibm1": ("ibm1",), "ibm2": ("ibm1", "ibm2"), "hmm": ("ibm1", "hmm")}  # models trained one after the other
FORWARD, BACKWARD = 0, 1  # columns of the tables


class EMProgress(NamedTuple):
    """Report after one iteration."""

    model: str
    iteration: int
    log_likelihood: float  # by the parameters before it; from the second iteration of the HMM on, with fertilities
    words: int

    @property
    def perplexity(self) -> float:
        """Of a target word, given the source."""
        return float(np.exp(-self.log_likelihood / max(1, self.words)))


class LexiconEntries(NamedTuple):
    """A lexicon of one direction in the order of its keys."""

    keys: NDArray[np.int64]  # (entries,) source * |V_e| + target, sorted
    null_words: NDArray[np.int64]  # (entries of NULL,) target words; these entries are the first
    order: NDArray[np.int64]  # (entries - entries of NULL,) the numbers of the word pairs

    def values(self, tables: LexiconTables, direction: int) -> FloatArray:
        """Return the numbers of a table in this order.  # (entries,)"""
        null = tables.null_target if direction == FORWARD else tables.null_source
        return np.concatenate([null[self.null_words], tables.probs[self.order, direction]])


@dataclass(frozen=True, eq=False)
class EMResult:
    """Parameters and expected counts after the last iteration."""

    grid: PairGrid
    tables: LexiconTables  # P(e | f), P(f | e)
    counts: LexiconTables  # expected counts of the last E step
    previous_tables: LexiconTables  # probabilities before the last M step; `counts` are computed with them
    positions: tuple[PositionModel, PositionModel]

    def entries(self, direction: int) -> LexiconEntries:
        pairs, sides = self.grid.word_pairs, (self.grid.source, self.grid.target)
        words = (pairs.source, pairs.target) if direction == FORWARD else (pairs.target, pairs.source)
        target = sides[1 - direction]
        keys = words[0].astype(np.int64) * target.vocab_size + words[1]
        order = np.argsort(keys, kind="stable")
        null_words = np.flatnonzero(target.counts)
        return LexiconEntries(np.concatenate([NULL * target.vocab_size + null_words, keys[order]]), null_words, order)


def run_em(
    grid: PairGrid,
    models: Sequence[str],
    iterations: int = ITERATIONS,
    *,
    prior: float | None = None,
    report: Callable[[int, EMProgress], None] = lambda direction, progress: None,
) -> EMResult:
    """Train one model after the other, each starting with the lexicons of the one before.

    The prior applies to the last model only: with the simpler models before it, which know less about positions, it
    would assign rare words to NULL; None is the default of that model. `report` is called for each direction after each
    iteration.
    """
    prior = DIRICHLET_PRIORS[models[-1]] if prior is None else prior
    sides = grid.source, grid.target
    expectation = Expectation(grid)
    tables = uniform_tables(grid)
    counts, previous = tables, tables
    positions: tuple[PositionModel, ...] = (UniformPositions(), UniformPositions())
    for model in models:
        positions = tuple(POSITION_MODELS[model].initial(side) for side in sides)
        for iteration in range(1, iterations + 1):
            shards, statistics = expectation(tables, positions)
            for direction, (side, result) in enumerate(zip(reversed(sides), statistics, strict=True)):
                report(direction, EMProgress(model, iteration, result.log_likelihood, len(side.ids)))
            counts, previous = sum_tables(shards), tables
            tables = maximise(grid, counts, prior if model == models[-1] else 0.0)
            positions = tuple(
                position.fit(source, target, result)
                for position, source, target, result in zip(positions, sides, reversed(sides), statistics, strict=True)
            )
    return EMResult(grid, tables, counts, previous, (positions[0], positions[1]))


def uniform_tables(grid: PairGrid) -> LexiconTables:
    """Probabilities that are uniform over the words seen together with each word."""
    pairs = grid.word_pairs
    tables = LexiconTables(
        np.ones((len(pairs.source), 2)),
        (grid.target.counts > 0).astype(np.float64),
        (grid.source.counts > 0).astype(np.float64),
    )
    return maximise(grid, tables, 0.0)


def sum_tables(shards: Sequence[LexiconTables]) -> LexiconTables:
    """Add up the counts of all shards."""
    size = len(shards[0].probs)
    probs = np.empty((size, 2))

    def add(rows: tuple[int, int]) -> None:
        part = slice(*rows)
        probs[part] = shards[0].probs[part]
        for shard in shards[1:]:
            probs[part] += shard.probs[part]

    parallel_map(add, split_evenly(np.arange(size + 1)))
    null_target = np.sum([shard.null_target for shard in shards], axis=0)
    return LexiconTables(probs, null_target, np.sum([shard.null_source for shard in shards], axis=0))


def maximise(grid: PairGrid, counts: LexiconTables, prior: float) -> LexiconTables:
    """Compute P(e | f) and P(f | e) from expected counts.

    Without a prior, relative frequencies. With a prior, exp psi(c + prior) takes the place of c (variational Bayes,
    Johnson 2007), which takes probability from rare pairs; then the values are normalised to sum to one.
    """
    pairs = grid.word_pairs
    rows = split_evenly(np.arange(len(pairs.source) + 1))
    weights, totals = counts.probs, []
    if prior > 0:
        weights = np.empty_like(counts.probs)
        parallel_map(partial(_exp_digamma_rows, counts.probs, prior, weights), rows)
    for direction, (words, size) in enumerate(
        ((pairs.source, grid.source.vocab_size), (pairs.target, grid.target.vocab_size))
    ):
        totals.append(np.bincount(words, weights[:, direction], size))
    probs = np.empty_like(weights)
    parallel_map(partial(_divide_rows, weights, pairs.source, pairs.target, *totals, probs), rows)
    null_target = _maximise_null(counts.null_target, prior, grid.target.counts > 0)
    return LexiconTables(probs, null_target, _maximise_null(counts.null_source, prior, grid.source.counts > 0))


def _maximise_null(counts: FloatArray, prior: float, occurs: NDArray[np.bool_]) -> FloatArray:
    """Compute P(e | NULL) of the words that occur; 0 for others."""
    weights = np.where(occurs, counts if prior == 0 else _exp_digamma(counts + prior), 0.0)
    total = weights.sum()
    return np.where(occurs, np.maximum(weights / total if total > 0 else 0.0, MIN_PROB), 0.0)


@kernel
def _divide_rows(weights, source, target, source_totals, target_totals, probs, rows):  # type: ignore[no-untyped-def]
    for k in range(rows[0], rows[1]):
        total, reverse_total = source_totals[source[k]], target_totals[target[k]]
        probs[k, 0] = max(weights[k, 0] / total, MIN_PROB) if total > 0 else MIN_PROB
        probs[k, 1] = max(weights[k, 1] / reverse_total, MIN_PROB) if reverse_total > 0 else MIN_PROB


@kernel
def _exp_digamma_rows(counts, prior, result, rows):  # type: ignore[no-untyped-def]
    for k in range(rows[0], rows[1]):
        for column in range(2):
            result[k, column] = _exp_digamma_of(counts[k, column] + prior)


@kernel
def _exp_digamma(counts):  # type: ignore[no-untyped-def]
    result = np.empty_like(counts)
    for k in range(len(counts)):
        result[k] = _exp_digamma_of(counts[k])
    return result


@kernel
def _exp_digamma_of(x):  # type: ignore[no-untyped-def]
    """exp psi(x), psi the digamma function, by its recurrence up to 6 and its asymptotic series from there on."""
    psi = 0.0
    while x < 6.0:
        psi -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    return x * np.exp(psi - 0.5 / x - y * (1.0 / 12 - y * (1.0 / 120 - y / 252)))
