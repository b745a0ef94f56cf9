"""From counts to probabilities: the recursions that every smoothing method shares.

A method says, for each order, how much mass every n-gram keeps and what it is divided by (a `Level`). What happens to
the rest is one of two things: interpolation adds the shorter context's probability to everything, back-off gives it
to unseen words alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.ngram.counting import NgramCounts

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class OrderMasses:
    """The n-grams of one order: P(w | h) keeps mass(hw) / total(h); a total of 0 means h was never seen."""

    mass: NDArray[np.floating]  # (n-grams,)
    total: Floats  # (contexts,)


@dataclass(frozen=True)
class BackoffEstimate:
    """Probabilities and back-off weights of all nodes: P(w | h) = prob[hw], else backoff[h] P(w | h')."""

    prob: NDArray[np.float32]  # (nodes,)
    backoff: NDArray[np.float32]  # (contexts,)
    normaliser: NDArray[np.float32] | None = None  # (contexts,) what scores were divided by to sum to one


MassFunction = Callable[[int], OrderMasses]


def context_totals(counts: NgramCounts, order: int, value: NDArray[Any]) -> Floats:
    """Sum a value of the n-grams of one order over each context."""
    contexts = counts.trie.span(order - 1)
    return _sums(counts.trie.begin, contexts.start, contexts.stop, value)


def interpolate(
    counts: NgramCounts, zerogram: Floats, method: MassFunction, keep: NDArray[np.bool_] | None = None
) -> BackoffEstimate:
    """P(w | h) = mass(hw) / total(h) + alpha(h) P(w | h'): eq. ngramlm:recursiveinterpolation.

    alpha(h), the mass that is left over, becomes the back-off weight; below the unigrams stands the zerogram
    distribution (eq. ngramlm:unkinterpolation). N-grams not to `keep` give their mass to alpha.
    """
    return _estimate(counts, zerogram, method, keep, _interpolate)


def back_off(
    counts: NgramCounts, zerogram: Floats, method: MassFunction, keep: NDArray[np.bool_] | None = None
) -> BackoffEstimate:
    """P(w | h) = mass(hw) / total(h) where hw was seen, else beta(h) P(w | h'): Katz's form."""
    return _estimate(counts, zerogram, method, keep, _back_off)


def _estimate(
    counts: NgramCounts,
    zerogram: Floats,
    method: MassFunction,
    keep: NDArray[np.bool_] | None,
    kernel: Callable[..., None],
) -> BackoffEstimate:
    trie = counts.trie
    prob = np.zeros(trie.nodes, np.float32)
    backoff = np.ones(trie.contexts, np.float32)
    for order in range(1, trie.order + 1):
        level = method(order)
        mass = level.mass if keep is None or order == 1 else np.where(keep[trie.span(order)], level.mass, 0.0)
        # A unigram's shorter self is the word in the zerogram distribution.
        lower, index = (zerogram, trie.word) if order == 1 else (prob, trie.suffix)
        starts = trie.levels[order - 1], trie.levels[order]

        def fill(span: tuple[int, int], args: tuple[Any, ...] = (index, lower, level.total, mass, *starts)) -> None:
            kernel(trie.begin, prob, backoff, *args, *span)

        parallel_map(fill, split_range(*starts))
    return BackoffEstimate(prob, backoff)


@kernel
def _sums(begin: Any, first: int, last: int, value: Any) -> Any:
    sums = np.zeros(last - first)
    for context in range(first, last):
        for child in range(begin[context], begin[context + 1]):
            sums[context - first] += value[child - begin[first]]
    return sums


@kernel
def _interpolate(
    begin: Any,
    prob: Any,
    backoff: Any,
    index: Any,
    lower: Any,
    totals: Any,  # of the contexts from first_context on
    mass: Any,  # of the n-grams from first_child on
    first_context: int,
    first_child: int,
    start: int,
    stop: int,
) -> None:
    for context in range(start, stop):
        total = totals[context - first_context]
        if total == 0.0:
            total, alpha = 1.0, 1.0
        else:
            kept = 0.0
            for child in range(begin[context], begin[context + 1]):
                kept += mass[child - first_child]
            alpha = max(0.0, 1.0 - kept / total)
        backoff[context] = alpha
        for child in range(begin[context], begin[context + 1]):
            prob[child] = mass[child - first_child] / total + alpha * lower[index[child]]


@kernel
def _back_off(
    begin: Any,
    prob: Any,
    backoff: Any,
    index: Any,
    lower: Any,
    totals: Any,
    mass: Any,
    first_context: int,
    first_child: int,
    start: int,
    stop: int,
) -> None:
    noise = 1e-12 if lower.itemsize == 8 else 1e-6  # a sum of lower probabilities is only so exact
    for context in range(start, stop):
        total = totals[context - first_context]
        kept = covered = 0.0
        for child in range(begin[context], begin[context + 1]):
            if mass[child - first_child] > 0.0:
                kept += mass[child - first_child]
                covered += lower[index[child]]
        free = max(0.0, 1.0 - covered)  # what the shorter context gives to unseen words
        beta = 1.0
        if free <= noise:  # there are none to speak of: words that were seen share all the rest
            total = kept / (1.0 - free)
        elif total > 0.0:
            beta = max(0.0, 1.0 - kept / total) / free
        backoff[context] = beta
        for child in range(begin[context], begin[context + 1]):
            if mass[child - first_child] > 0.0:
                prob[child] = mass[child - first_child] / total
            else:
                prob[child] = beta * lower[index[child]]
