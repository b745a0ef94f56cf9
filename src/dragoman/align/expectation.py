"""The E step: expected counts of word pairs, of both directions at once.

A sentence pair is processed in this order: P(e_j | f_i) of its cells are looked up, the posteriors P(a_j = i | F, E) of
both directions computed, and added to the counts. For the HMM, the directions are brought to agree before (Liang et al.
2006): the counts of a direction are those of its posteriors times 1 - w + w P of the same link in the other direction,
where w is close to 1 for rare words only. Otherwise, rare words are aligned with all words whose translation is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.hmm import (
    FERTILITIES,
    MAX_FERTILITY,
    JumpPositions,
    JumpWork,
    apply_fertilities,
    count_words,
    jump_posteriors,
)
from dragoman.align.pair_grid import PairGrid
from dragoman.align.positions import (
    FloatArray,
    IndependentPositions,
    PositionModel,
    Statistics,
    independent_posteriors,
    null_posteriors,
)
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map

ExpectShard = Callable[[Any], Any]

AGREEMENT_COUNT = 300.0  # w is 1/2 if the rarer of two words occurs this often


class LexiconTables(NamedTuple):
    """Probabilities of all word pairs of a text, or expected counts of them."""

    probs: FloatArray  # (word pairs, 2) P(e | f), P(f | e)
    null_target: FloatArray  # (|V_e|,) P(e | NULL)
    null_source: FloatArray  # (|V_f|,) P(f | NULL)


class Work(NamedTuple):
    """Memory for a sentence pair: P(e_j | f_i) and posteriors of both directions, NULL in the column after the last."""

    t: FloatArray  # (longest, longest + 1)
    reverse_t: FloatArray
    posteriors: FloatArray
    reverse_posteriors: FloatArray
    jumps: JumpWork

    @classmethod
    def allocate(cls, longest: int) -> Work:
        t, reverse_t, posteriors, reverse_posteriors = (np.empty((longest, longest + 1)) for _ in range(4))
        return cls(t, reverse_t, posteriors, reverse_posteriors, JumpWork.allocate(longest))


class Expectation:
    """The E step on a text. Its memory is allocated once, for all iterations."""

    def __init__(self, grid: PairGrid):
        self.grid, self.shards = grid, grid.shards
        size, sizes = len(grid.word_pairs.source), (grid.source.vocab_size, grid.target.vocab_size)
        self._counts = [LexiconTables(np.empty((size, 2)), np.empty(sizes[1]), np.empty(sizes[0])) for _ in self.shards]
        self._work = [Work.allocate(grid.longest) for _ in self.shards]
        self._previous: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def __call__(
        self, tables: LexiconTables, positions: Sequence[PositionModel]
    ) -> tuple[list[LexiconTables], list[Statistics]]:
        """Return the expected counts of each shard, and the statistics of both directions."""
        expect = self._jumps if isinstance(positions[0], JumpPositions) else self._independent
        results = parallel_map(expect(tables, positions), zip(self._work, self._counts, self.shards, strict=True))
        directions = zip(*results, strict=True)
        sums = [[sum(parts) for parts in zip(*shards, strict=True)] for shards in directions]
        return self._counts, [Statistics(*direction) for direction in sums]

    def _independent(self, tables: LexiconTables, positions: Sequence[PositionModel]) -> ExpectShard:
        parameters = [model.parameters for model in positions if isinstance(model, IndependentPositions)]
        expect = partial(_expect_independent, self.grid.arrays, self.grid.word_pairs.cell_numbers, tables, *parameters)
        return lambda shard: expect(*shard)

    def _jumps(self, tables: LexiconTables, positions: Sequence[PositionModel]) -> ExpectShard:
        grid = self.grid
        if self._previous is None:
            self._previous = np.zeros(grid.num_cells, np.float32), np.zeros(grid.num_cells, np.float32)
        weights = tuple(AGREEMENT_COUNT / (AGREEMENT_COUNT + text.counts) for text in (grid.source, grid.target))
        parameters = [model.parameters(grid.longest) for model in positions if isinstance(model, JumpPositions)]
        arguments = grid.arrays, grid.word_pairs.cell_numbers, tables, *parameters, weights, self._previous
        expect = partial(_expect_jumps, *arguments)
        return lambda shard: expect(*shard)


@kernel
def look_up(grid, cell_numbers, tables, pair, t, reverse_t):  # type: ignore[no-untyped-def]
    """Fill in P(e_j | f_i) and P(f_i | e_j) of a sentence pair, also of NULL."""
    n_f, n_e = grid.source[pair + 1] - grid.source[pair], grid.target[pair + 1] - grid.target[pair]
    cell = grid.cells[pair]
    for i in range(n_f):
        for j in range(n_e):
            number = cell_numbers[cell + j]
            t[j, i], reverse_t[i, j] = tables.probs[number, 0], tables.probs[number, 1]
        cell += n_e
        reverse_t[i, n_e] = tables.null_source[grid.source_ids[grid.source[pair] + i]]
    for j in range(n_e):
        t[j, n_f] = tables.null_target[grid.target_ids[grid.target[pair] + j]]


@kernel
def _add_counts(grid, cell_numbers, pair, posteriors, reverse_posteriors, counts):  # type: ignore[no-untyped-def]
    """Add the posteriors of a sentence pair to the counts of its word pairs."""
    n_f, n_e = grid.source[pair + 1] - grid.source[pair], grid.target[pair + 1] - grid.target[pair]
    cell = grid.cells[pair]
    for i in range(n_f):
        for j in range(n_e):
            number = cell_numbers[cell + j]
            counts.probs[number, 0] += posteriors[j, i]
            counts.probs[number, 1] += reverse_posteriors[i, j]
        cell += n_e
        counts.null_source[grid.source_ids[grid.source[pair] + i]] += reverse_posteriors[i, n_e]
    for j in range(n_e):
        counts.null_target[grid.target_ids[grid.target[pair] + j]] += posteriors[j, n_f]


@kernel
def independent_pair(t, n_f, n_e, parameters, posteriors):  # type: ignore[no-untyped-def]
    """See `independent_posteriors`; the source may be empty."""
    if n_f == 0:
        return null_posteriors(t, n_e, posteriors), 0.0, 0.0
    return independent_posteriors(t, n_f, n_e, parameters, posteriors)


@kernel
def _expect_independent(grid, cell_numbers, tables, forward, backward, work, counts, shard):  # type: ignore[no-untyped-def]
    """Count in a shard; return the statistics of both directions."""
    t, reverse_t, posteriors, reverse_posteriors, _ = work
    sums, reverse_sums = np.zeros(3), np.zeros(3)
    counts.probs[:] = 0.0
    counts.null_source[:] = 0.0
    counts.null_target[:] = 0.0
    for pair in range(shard[0], shard[1]):
        n_f, n_e = grid.source[pair + 1] - grid.source[pair], grid.target[pair + 1] - grid.target[pair]
        look_up(grid, cell_numbers, tables, pair, t, reverse_t)
        result = independent_pair(t, n_f, n_e, forward, posteriors)
        reverse_result = independent_pair(reverse_t, n_e, n_f, backward, reverse_posteriors)
        for k in range(3):
            sums[k] += result[k]
            reverse_sums[k] += reverse_result[k]
        _add_counts(grid, cell_numbers, pair, posteriors, reverse_posteriors, counts)
    nothing = np.zeros(0), np.zeros((0, 0))
    return (sums, *nothing), (reverse_sums, *nothing)


@kernel
def _expect_direction(t, words, n_e, parameters, work, previous, posteriors, statistics):  # type: ignore[no-untyped-def]
    """Compute the posteriors of one direction of a sentence pair by the HMM, and add to its statistics.

    # previous: (n_f * n_e,) the posteriors of the iteration before, by which fertilities are known; they are replaced
    """
    n_f = len(words)
    sums, jump_counts, word_counts = statistics
    if n_f == 0:
        sums[0] += null_posteriors(t, n_e, posteriors)
    elif n_e > 0:
        table = previous.reshape((n_e, n_f))
        apply_fertilities(t, words, n_e, parameters.fertility_ratios, table)
        sums[0] += jump_posteriors(t, words, n_e, parameters, work, posteriors, jump_counts)
        count_words(words, n_e, posteriors, work.transitions, word_counts)
        for j in range(n_e):
            sums[1] += 1.0 - posteriors[j, n_f]
            for i in range(n_f):
                table[j, i] = posteriors[j, i]


@kernel
def _agree(source, target, weights, posteriors, reverse_posteriors):  # type: ignore[no-untyped-def]
    """Multiply the posteriors of each direction by 1 - w + w P(the same link in the other direction); normalise them."""
    n_f, n_e = len(source), len(target)
    for i in range(n_f):
        for j in range(n_e):
            w, p, q = max(weights[0][source[i]], weights[1][target[j]]), posteriors[j, i], reverse_posteriors[i, j]
            posteriors[j, i], reverse_posteriors[i, j] = p * (1.0 - w + w * q), q * (1.0 - w + w * p)
    _normalise(posteriors, n_e, n_f + 1)
    _normalise(reverse_posteriors, n_f, n_e + 1)


@kernel
def _normalise(table, rows, columns):  # type: ignore[no-untyped-def]
    for row in range(rows):
        total = 0.0
        for column in range(columns):
            total += table[row, column]
        for column in range(columns):
            table[row, column] /= total


@kernel
def _expect_jumps(grid, cell_numbers, tables, forward, backward, weights, previous, work, counts, shard):  # type: ignore[no-untyped-def]
    """Count in a shard; return the statistics of both directions."""
    t, reverse_t, posteriors, reverse_posteriors, jump_work = work
    columns = FERTILITIES + MAX_FERTILITY + 1
    statistics = (np.zeros(3), np.zeros(len(forward.jumps)), np.zeros((len(forward.stays), columns)))
    reverse_statistics = (np.zeros(3), np.zeros(len(backward.jumps)), np.zeros((len(backward.stays), columns)))
    counts.probs[:] = 0.0
    counts.null_source[:] = 0.0
    counts.null_target[:] = 0.0
    for pair in range(shard[0], shard[1]):
        source = grid.source_ids[grid.source[pair] : grid.source[pair + 1]]
        target = grid.target_ids[grid.target[pair] : grid.target[pair + 1]]
        cells = slice(grid.cells[pair], grid.cells[pair + 1])
        look_up(grid, cell_numbers, tables, pair, t, reverse_t)
        _expect_direction(t, source, len(target), forward, jump_work, previous[0][cells], posteriors, statistics)
        _expect_direction(
            reverse_t,
            target,
            len(source),
            backward,
            jump_work,
            previous[1][cells],
            reverse_posteriors,
            reverse_statistics,
        )
        _agree(source, target, weights, posteriors, reverse_posteriors)
        _add_counts(grid, cell_numbers, pair, posteriors, reverse_posteriors, counts)
    statistics[1][:] *= forward.jumps
    reverse_statistics[1][:] *= backward.jumps
    return statistics, reverse_statistics
