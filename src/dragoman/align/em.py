"""Expectation and maximisation: a lexicon and a model of positions, learned from pairs in one direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.align.lexicon import UNSEEN, Lexicon
from dragoman.align.pair_grid import Cells
from dragoman.align.positions import Anywhere, Array, Diagonal, Expected, Jumps, Positions
from dragoman.core.kernels import kernel
from dragoman.core.threads import share

ITERATIONS = 5
PRIOR = 0.01  # of the Dirichlet distribution from which each word's translations are thought to come

MODELS: dict[str, Callable[[], Positions]] = {"ibm1": Anywhere, "ibm2": Diagonal, "hmm": Jumps.first}
KINDS: dict[str, Callable[..., Positions]] = {
    "ibm1": Anywhere,
    "ibm2": Diagonal,
    "hmm": lambda jumps, null: Jumps(np.array(jumps, np.float64), float(null)),
}


class Progress(NamedTuple):
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
class Direction:
    """P(E | F), all alignments together: a word comes from somewhere (positions), and is translated (lexicon)."""

    model: str
    lexicon: Lexicon
    positions: Positions

    def expect(self, cells: Cells) -> Expected:
        """P(a_j = i | F, E) in all cells of a text, which need not be the one it was learned from."""
        entry = self.lexicon.entries_of(cells.keys())
        return self.positions.expect(cells, entry, np.append(self.lexicon.probs, UNSEEN))

    def aligned(self, cells: Cells) -> NDArray[np.int32]:
        """For each target word the source word that it most probably comes from, or -1.  # (target words,)"""
        return most_probable(cells, self.expect(cells).posteriors)

    def config(self) -> dict[str, Any]:
        return {"model": self.model, **self.positions.config()}


def learn(
    cells: Cells,
    models: Sequence[str],
    iterations: int = ITERATIONS,
    *,
    prior: float = PRIOR,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Direction:
    """One model after the other, each beginning with the lexicon of the one before. The prior is for the last one:
    those before, which know less of positions, would take it for a reason to leave rare words to the empty word."""
    keys, entry = _entries(cells)
    lexicon = Lexicon(cells.source.vocab, cells.target.vocab, keys, np.zeros(len(keys)))
    t = _alike(lexicon)
    positions: Positions = Anywhere()
    for model in models:
        positions = MODELS[model]()
        for iteration in range(1, iterations + 1):
            expected = positions.expect(cells, entry, t)
            report(Progress(model, iteration, expected.log_likelihood, cells.target.words))
            counts: Array = np.bincount(entry, expected.posteriors, len(keys)).astype(np.float64)  # (entries,)
            t = _maximised(lexicon, counts, prior if model == models[-1] else 0.0)
            positions = positions.fitted(cells, expected.noted)
    return Direction(models[-1], Lexicon(lexicon.source, lexicon.target, keys, t), positions)


def _entries(cells: Cells) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """The pairs of words that come together, and of each cell which one it is."""
    keys, entry = np.unique(cells.keys(), return_inverse=True)
    return keys, entry.astype(np.int32)


def _alike(lexicon: Lexicon) -> Array:
    """To begin with, all words that come together with a word are alike as its translations.  # (entries,)"""
    sizes = np.diff(lexicon.starts)
    return np.repeat(1.0 / np.maximum(sizes, 1), sizes)


def _maximised(lexicon: Lexicon, counts: Array, prior: float) -> Array:
    """P(e | f) from expected counts.  # (entries,)

    Without a prior, relative frequencies. With one, exp psi(c + prior) in the place of c (variational Bayes, as
    Johnson 2007 has it), which takes probability from what was seen too rarely to be believed; then scaled to sum to
    one, as a lexicon's must.
    """
    starts = lexicon.starts
    weights = counts if prior == 0 else _expected_weights(counts + prior)
    sizes = np.diff(starts)
    seen = np.flatnonzero(sizes)
    sums = np.zeros(len(sizes))
    if len(seen):
        sums[seen] = np.add.reduceat(weights, starts[:-1][seen])
    each = np.repeat(sums, sizes)
    return np.maximum(np.divide(weights, each, out=np.zeros_like(weights), where=each > 0), 1e-300)


@kernel
def _expected_weights(counts):  # type: ignore[no-untyped-def]
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


def most_probable(cells: Cells, posteriors: Array) -> NDArray[np.int32]:
    """Of each target word the source word with the highest posterior; -1 where that is the empty one."""
    found = np.empty(cells.target.words, np.int32)
    share(lambda part: _choose(*part, *cells.places, posteriors, found), cells.parts)
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
