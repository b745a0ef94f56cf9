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
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dragoman.core.memory import release_freed_memory
from dragoman.core.threads import parallel_map
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import sum_ranges
from dragoman.ngram.adjusted import adjusted_count_of_counts, adjusted_counts, count_of_counts
from dragoman.ngram.counting import Counts, NgramCounts
from dragoman.ngram.heldout import InterpolationCoefficients

Floats = NDArray[np.float64]
Begin = NDArray[np.integer]  # (contexts + 1,) the first n-gram of each of some consecutive contexts
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
class Block:
    """Consecutive contexts of one order, and the n-grams that continue them."""

    begin: Begin
    total: Floats  # (contexts,)
    mass: NDArray[np.floating]  # (n-grams,)
    lower: NDArray[np.floating]  # (n-grams,) P(w | h')

    def repeat(self, value: NDArray[np.floating]) -> NDArray[np.floating]:
        """Repeat the value of each context for its n-grams.  # (n-grams,)"""
        return np.repeat(value, np.diff(self.begin))


Rule = Callable[[Block], tuple[NDArray[np.floating], Floats]]  # returns probabilities and back-off weights


def interpolate(block: Block) -> tuple[NDArray[np.floating], Floats]:
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


def back_off(block: Block) -> tuple[NDArray[np.floating], Floats]:
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


class Smoothing(NamedTuple):
    """What a smoothing method does with counts, wherever these are stored."""

    masses: Callable[[int], Masses]  # of an order
    rule: Rule = interpolate
    adjusted: bool = False  # whether lower orders count the different words that precede an n-gram (Kneser-Ney)


class CountStatistics(Protocol):
    """What smoothing methods ask about counts."""

    @property
    def coefficients(self) -> tuple[float, ...]:
        """alpha_1, alpha_2, ... of fixed interpolation."""
        ...

    @property
    def order(self) -> int:
        """The highest order of which there are n-grams."""
        ...

    def count_of_counts(self, order: int, max_count: int, *, adjusted: bool = False) -> Floats:
        """Return n_1, n_2, ..., n_max of one order. Index 0 is not used."""
        ...

    def note(self, message: str) -> None:
        """Keep a message for the user."""
        ...


def estimate_block(
    masses: Masses,
    rule: Rule,
    counts: Counts,
    begin: Begin,
    lower: NDArray[np.floating],
    keep: NDArray[np.bool_] | None = None,
) -> tuple[NDArray[np.floating], Floats]:
    """Return probabilities and back-off weights of consecutive contexts of one order.

    Args:
        masses, rule: those of the smoothing method for this order.
        counts: of the n-grams that continue the contexts.  # (n-grams,)
        begin: the first n-gram of each context.  # (contexts + 1,)
        lower: P(w | h') of the n-grams.  # (n-grams,)
        keep: n-grams that are not pruned; the others give up their mass.  # (n-grams,)
    """
    mass, total = masses(counts, begin)
    if keep is not None:
        mass = np.where(keep, mass, 0.0)
    return rule(Block(begin, total, mass, lower))


@dataclass(frozen=True)
class SmoothingTask:
    """The input of a smoothing method whose counts are in memory."""

    counts: NgramCounts
    zerogram: Floats  # (|V|,) the distribution of order 0
    coefficients: tuple[float, ...] = ()
    heldout: tuple[Corpus, NgramCounts] | None = None  # text to fit coefficients on, and counts of other text
    keep: NDArray[np.bool_] | None = None  # (nodes,) n-grams that are not pruned; the others give up their mass
    notes: list[str] = field(default_factory=list)  # messages for the user
    _adjusted: dict[int, Counts] = field(default_factory=dict)  # those of the order that was used last

    @property
    def order(self) -> int:
        return self.counts.trie.order

    def note(self, message: str) -> None:
        self.notes.append(message)
        warnings.warn(message, stacklevel=3)

    def raw(self, order: int) -> Counts:
        """Return the counts of the n-grams of one order."""
        return self.counts.of_order(order)

    def count_of_counts(self, order: int, max_count: int, *, adjusted: bool = False) -> Floats:
        if adjusted:
            return adjusted_count_of_counts(self.counts, order, self.adjusted(order), max_count)
        return count_of_counts(self.raw(order), max_count)

    def adjusted(self, order: int) -> Counts:
        """Return the adjusted counts of one order."""
        if order not in self._adjusted:
            self._adjusted.clear()
            self._adjusted[order] = adjusted_counts(self.counts, order)
        return self._adjusted[order]

    def totals(self, order: int, value: NDArray[np.generic]) -> Floats:
        """Sum a value of the n-grams of one order over each context.  # (contexts,)"""
        contexts = self.counts.trie.span(order - 1)
        return sum_ranges(self.counts.trie.begin[contexts.start : contexts.stop + 1], value)

    def estimate(self, smoothing: Smoothing) -> BackoffEstimate:
        """Smooth from order 1 upwards, block by block in parallel.

        Below the unigrams is the zerogram distribution (eq. ngramlm:unkinterpolation).
        """
        trie = self.counts.trie
        prob = np.zeros(trie.nodes, np.float32)  # memory is used only where it is written
        backoff = np.empty(trie.contexts, np.float32)

        def estimate_order(order: int) -> None:
            masses = smoothing.masses(order)
            counts = self.adjusted(order) if smoothing.adjusted else self.raw(order)
            keep = self.keep if order > 1 else None
            # The lower probability of a unigram is that of the word in the zerogram distribution.
            lower, index = (self.zerogram, trie.word) if order == 1 else (prob, trie.suffix)
            first, last = trie.levels[order - 1], trie.levels[order]

            def fill(span: tuple[int, int]) -> None:
                begin = trie.begin[span[0] : span[1] + 1]
                ngrams = slice(int(begin[0]), int(begin[-1]))
                block_counts = counts[ngrams.start - last : ngrams.stop - last]
                kept = None if keep is None else keep[ngrams]
                prob[ngrams], backoff[slice(*span)] = estimate_block(
                    masses, smoothing.rule, block_counts, begin, lower[index[ngrams]], kept
                )

            parallel_map(fill, context_blocks(trie.begin, first, last))

        for order in range(1, trie.order + 1):
            estimate_order(order)
            release_freed_memory()
        self._adjusted.clear()
        return BackoffEstimate(prob, backoff)


def context_blocks(begin: NDArray[np.integer], first: int, last: int) -> list[tuple[int, int]]:
    """Split the contexts first..last into blocks with about BLOCK_NGRAMS n-grams each."""
    targets = np.arange(int(begin[first]) + BLOCK_NGRAMS, int(begin[last]), BLOCK_NGRAMS)
    ends = first + np.searchsorted(begin[first:last], targets)
    return list(pairwise([first, *np.unique(ends[(ends > first) & (ends < last)]).tolist(), last]))
