"""The most probable alignment of a text, in both directions at once."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from dragoman.align.expectation import LexiconTables, Work, independent_pair, look_up
from dragoman.align.hmm import JumpPositions, apply_fertilities, jump_posteriors
from dragoman.align.pair_grid import PairGrid
from dragoman.align.positions import IndependentPositions, PositionModel, null_posteriors
from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map

FERTILITY_PASSES = 1  # how often the posteriors of the HMM are computed again, with the fertilities by those before


def most_probable_sources(
    grid: PairGrid, tables: LexiconTables, positions: tuple[PositionModel, PositionModel]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the source position with the highest posterior of each word, -1 for NULL.

    # (target words,) positions in the source, (source words,) positions in the target
    """
    links = np.empty(len(grid.target.ids), np.int32), np.empty(len(grid.source.ids), np.int32)
    arguments = grid.arrays, grid.word_pairs.cell_numbers, tables
    if isinstance(positions[0], JumpPositions) and isinstance(positions[1], JumpPositions):
        jumps = [model.parameters(grid.longest) for model in positions if isinstance(model, JumpPositions)]
        align = partial(_align_by_jumps, *arguments, *jumps, *links)
    else:
        independent = [model.parameters for model in positions if isinstance(model, IndependentPositions)]
        align = partial(_align_independently, *arguments, *independent, *links)
    parallel_map(lambda chunk: align(Work.allocate(grid.longest), chunk), grid.chunks)
    return links


@kernel
def _fill_in_best(posteriors, n_f, n_e, links):  # type: ignore[no-untyped-def]
    """The position with the highest posterior of each target word; NULL if it has the same."""
    for j in range(n_e):
        best = n_f
        for i in range(n_f):
            if posteriors[j, i] > posteriors[j, best]:
                best = i
        links[j] = best if best < n_f else -1


@kernel
def _align_independently(grid, cell_numbers, tables, forward, backward, links, reverse_links, work, chunk):  # type: ignore[no-untyped-def]
    t, reverse_t, posteriors, reverse_posteriors, _ = work
    for pair in range(chunk[0], chunk[1]):
        n_f, n_e = grid.source[pair + 1] - grid.source[pair], grid.target[pair + 1] - grid.target[pair]
        look_up(grid, cell_numbers, tables, pair, t, reverse_t)
        independent_pair(t, n_f, n_e, forward, posteriors)
        independent_pair(reverse_t, n_e, n_f, backward, reverse_posteriors)
        _fill_in_best(posteriors, n_f, n_e, links[grid.target[pair] :])
        _fill_in_best(reverse_posteriors, n_e, n_f, reverse_links[grid.source[pair] :])


@kernel
def _jump_pass(t, words, n_e, parameters, work, posteriors, jump_counts, number):  # type: ignore[no-untyped-def]
    if len(words) == 0:
        null_posteriors(t, n_e, posteriors)
    elif n_e > 0:
        if number > 0:
            apply_fertilities(t, words, n_e, parameters.fertility_ratios, posteriors)
        jump_posteriors(t, words, n_e, parameters, work, posteriors, jump_counts)


@kernel
def _align_by_jumps(grid, cell_numbers, tables, forward, backward, links, reverse_links, work, chunk):  # type: ignore[no-untyped-def]
    t, reverse_t, posteriors, reverse_posteriors, jump_work = work
    jump_counts = np.zeros_like(forward.jumps)  # not used
    for pair in range(chunk[0], chunk[1]):
        source = grid.source_ids[grid.source[pair] : grid.source[pair + 1]]
        target = grid.target_ids[grid.target[pair] : grid.target[pair + 1]]
        for number in range(FERTILITY_PASSES + 1):
            look_up(grid, cell_numbers, tables, pair, t, reverse_t)
            _jump_pass(t, source, len(target), forward, jump_work, posteriors, jump_counts, number)
            _jump_pass(reverse_t, target, len(source), backward, jump_work, reverse_posteriors, jump_counts, number)
        _fill_in_best(posteriors, len(source), len(target), links[grid.target[pair] :])
        _fill_in_best(reverse_posteriors, len(target), len(source), reverse_links[grid.source[pair] :])
