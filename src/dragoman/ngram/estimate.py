"""From counts to probabilities: the two recursions that all smoothing methods share.

A smoothing method gives, for each order, the mass that every n-gram keeps and the total to divide it by (`Masses`). The
remaining mass is used in one of two ways: interpolation adds the probability given the shorter context to all words,
back-off gives it only to words that were not seen after the context.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dragoman.core.memory import release_freed_memory
from dragoman.core.threads import parallel_map
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import sum_ranges
from dragoman.ngram.counting import Counts, NgramCounts
from dragoman.ngram.heldout import InterpolationCoefficients

Floats = NDArray[np.float64]
Begin = NDArray[np.int32]  # (contexts + 1,) the first n-gram of each of some consecutive contexts
# Returns mass(hw) and total(h) of consecutive contexts of one order from the counts of their n-grams: P(w | h) keeps
# mass(hw) / total(h). A total of 0 means that h was never seen.
Masses = Callable[[Counts, Begin], tuple[NDArray[np.floating], Floats]]
BLOCK_NGRAMS = 1 << 16  # computed at a time: temporary arrays of this size stay in the cache


@dataclass(frozen=True)
class BackoffEstimate:
    """Probabilities and back-off weights: P(w | h) = prob[hw] if the trie has hw, else backoff[h] P(w | h')."""

    prob: NDArray[np.float32]  # (nodes,)
    backoff: NDArray[np.float32]  # (contexts,)
    normalizer: NDArray[np.float32] | None = None  # (contexts,) what scores were divided by to sum to one
    coefficients: InterpolationCoefficients | None = None  # if they were fitted


@dataclass(frozen=True)
class _Block:
    """Consecutive contexts of one order, and the n-grams that continue them."""

    begin: Begin
    total: Floats  # (contexts,)
    mass: NDArray[np.floating]  # (n-grams,)
    lower: NDArray[np.floating]  # (n-grams,) P(w | h')

    def repeat(self, value: NDArray[np.floating]) -> NDArray[np.floating]:
        """Repeat the value of each context for its n-grams.  # (n-grams,)"""
        return np.repeat(value, np.diff(self.begin))


Rule = Callable[[_Block], tuple[NDArray[np.floating], Floats]]  # returns probabilities and back-off weights


def interpolate(block: _Block) -> tuple[NDArray[np.floating], Floats]:
    """P(w | h) = mass(hw) / total(h) + alpha(h) P(w | h'): eq. ngramlm:recursiveinterpolation.

    alpha(h), the remaining mass, becomes the back-off weight.
    """
    is_seen = block.total != 0.0
    total = np.where(is_seen, block.total, 1.0)
    alpha = np.where(is_seen, np.maximum(0.0, 1.0 - sum_ranges(block.begin, block.mass) / total), 1.0)
    prob, lower = block.mass / block.repeat(total), block.repeat(alpha)
    lower *= block.lower
    prob += lower
    return prob, alpha


def back_off(block: _Block) -> tuple[NDArray[np.floating], Floats]:
    """P(w | h) = mass(hw) / total(h) if hw was seen, else beta(h) P(w | h'): Katz's form."""
    is_seen = block.mass > 0.0
    mass = sum_ranges(block.begin, np.where(is_seen, block.mass, 0.0))
    covered = sum_ranges(block.begin, np.where(is_seen, block.lower, 0.0))
    free = np.maximum(0.0, 1.0 - covered)  # what the shorter context gives to unseen words
    precision = 1e-12 if block.lower.dtype == np.float64 else 1e-6  # of a sum of lower probabilities
    all_seen = free <= precision  # there are no unseen words to speak of: seen words share all of the mass
    total = np.where(all_seen, mass / (1.0 - np.where(all_seen, free, 0.0)), block.total)
    divisor = np.where(total > 0.0, total, 1.0)
    share = np.maximum(0.0, 1.0 - mass / divisor)
    beta = np.where(all_seen | (total <= 0.0), 1.0, share / np.where(all_seen, 1.0, free))
    listed = block.mass / block.repeat(divisor)
    return np.where(is_seen, listed, block.repeat(beta) * block.lower), beta


@dataclass(frozen=True)
class SmoothingTask:
    """The input of a smoothing method."""

    counts: NgramCounts
    zerogram: Floats  # (|V|,) the distribution of order 0
    coefficients: tuple[float, ...] = ()  # alpha_1, alpha_2, ... of fixed interpolation
    heldout: tuple[Corpus, NgramCounts] | None = None  # text to fit coefficients on, and counts of other text
    keep: NDArray[np.bool_] | None = None  # (nodes,) n-grams that are not pruned; the others give up their mass
    notes: list[str] = field(default_factory=list)  # messages for the user

    def note(self, message: str) -> None:
        self.notes.append(message)
        warnings.warn(message, stacklevel=3)

    def raw(self, order: int) -> Counts:
        """Return the counts of the n-grams of one order."""
        return self.counts.of_order(order)

    def totals(self, order: int, value: NDArray[np.generic]) -> Floats:
        """Sum a value of the n-grams of one order over each context.  # (contexts,)"""
        contexts = self.counts.trie.span(order - 1)
        return sum_ranges(self.counts.trie.begin[contexts.start : contexts.stop + 1], value)

    def estimate(self, masses: Callable[[int], tuple[Counts, Masses]], rule: Rule = interpolate) -> BackoffEstimate:
        """Apply a rule from order 1 upwards, block by block in parallel.

        `masses` gives, for an order, the counts and what becomes of them. Below the unigrams is the zerogram
        distribution (eq. ngramlm:unkinterpolation).
        """
        trie, keep = self.counts.trie, self.keep
        prob = np.zeros(trie.nodes, np.float32)  # memory is used only where it is written
        backoff = np.empty(trie.contexts, np.float32)

        def estimate_order(order: int) -> None:
            counts, masses_of = masses(order)
            # The lower probability of a unigram is that of the word in the zerogram distribution.
            lower, index = (self.zerogram, trie.word) if order == 1 else (prob, trie.suffix)
            first, last = trie.levels[order - 1], trie.levels[order]

            def fill(span: tuple[int, int]) -> None:
                begin = trie.begin[span[0] : span[1] + 1]
                ngrams = slice(int(begin[0]), int(begin[-1]))
                mass, total = masses_of(counts[ngrams.start - last : ngrams.stop - last], begin)
                if keep is not None and order > 1:
                    mass = np.where(keep[ngrams], mass, 0.0)
                prob[ngrams], backoff[slice(*span)] = rule(_Block(begin, total, mass, lower[index[ngrams]]))

            parallel_map(fill, _context_blocks(trie.begin, first, last))

        for order in range(1, trie.order + 1):
            estimate_order(order)
            release_freed_memory()
        return BackoffEstimate(prob, backoff)


def _context_blocks(begin: NDArray[np.int32], first: int, last: int) -> list[tuple[int, int]]:
    """Split the contexts first..last into blocks with about BLOCK_NGRAMS n-grams each."""
    targets = np.arange(int(begin[first]) + BLOCK_NGRAMS, int(begin[last]), BLOCK_NGRAMS)
    ends = first + np.searchsorted(begin[first:last], targets)
    return list(pairwise([first, *np.unique(ends[(ends > first) & (ends < last)]).tolist(), last]))
