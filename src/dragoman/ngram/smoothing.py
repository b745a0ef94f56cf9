"""Smoothing methods: each turns counts into P(e_t | e_{t-n+1} ... e_{t-1}).

`METHODS` lists those that say what becomes of the counts of a block of contexts, so that counts may be in memory or on
disk. `SMOOTHINGS` lists all: functions of a `SmoothingTask`, whose counts are in memory, that return a `BackoffEstimate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.ranges import sum_ranges
from dragoman.ngram.counting import Counts
from dragoman.ngram.estimate import (
    BackoffEstimate,
    Begin,
    CountStatistics,
    Floats,
    Masses,
    Smoothing,
    SmoothingTask,
    back_off,
)
from dragoman.ngram.heldout import InterpolationCoefficients, fit_coefficients
from dragoman.ngram.trie import ROOT

KATZ_MAX_COUNT = 5  # larger counts are not discounted
STUPID_BACKOFF_FACTOR = 0.4  # a score is multiplied by this for each word of context that is dropped
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # used if the counts of counts give no discounts
DEFAULT_FIRST_COEFFICIENT, DEFAULT_COEFFICIENT = 0.05, 0.5  # alpha_1, and alpha_m of longer contexts


def _interpolate(totals: Callable[[int, Counts, Begin], Floats]) -> Smoothing:
    """P(w | h) = c(hw) / total(h) + alpha(h) P(w | h'), where total(h) is c(h) or more."""

    def masses(order: int) -> Masses:
        return lambda counts, begin: (counts.astype(np.float32), totals(order, counts, begin))

    return Smoothing(masses)


def maximum_likelihood(statistics: CountStatistics) -> Smoothing:
    """P(e_t | context) = c(context e_t) / c(context): eq. ngramlm:mle. Unseen words have probability 0."""
    return _interpolate(lambda order, counts, begin: sum_ranges(begin, counts))


def fixed_interpolation(statistics: CountStatistics) -> Smoothing:
    """(1 - alpha_m) P_ML + alpha_m P_{m-1} with given alpha_m: eq. ngramlm:recursiveinterpolation."""
    order = statistics.order
    coefficients = statistics.coefficients or (DEFAULT_FIRST_COEFFICIENT, *[DEFAULT_COEFFICIENT] * (order - 1))
    # A short text may not have n-grams of the last orders.
    return _interpolate_with(InterpolationCoefficients.fixed(coefficients[:order]))


def fitted_interpolation(task: SmoothingTask, *, bucketed: bool) -> BackoffEstimate:
    """Interpolation with one alpha_m per order, or per bucket of context counts, fitted on held-out text by EM."""
    if task.heldout is None:
        raise DataError("fitted coefficients need held-out text: give --dev-text")
    corpus, counts = task.heldout
    coefficients = fit_coefficients(counts, task.zerogram, corpus, bucketed=bucketed)
    return replace(task.estimate(_interpolate_with(coefficients)), coefficients=coefficients)


def _interpolate_with(coefficients: InterpolationCoefficients) -> Smoothing:
    def totals(order: int, counts: Counts, begin: Begin) -> Floats:
        total = sum_ranges(begin, counts)
        with np.errstate(divide="ignore"):
            return np.divide(total, 1 - coefficients.alpha(order, total))

    return _interpolate(totals)


def witten_bell(statistics: CountStatistics) -> Smoothing:
    """alpha(h) = N(h) / (N(h) + c(h)), where N(h) different words follow h (Witten and Bell 1991)."""
    return _interpolate(lambda order, counts, begin: sum_ranges(begin, counts) + sum_ranges(begin, counts > 0))


def katz(statistics: CountStatistics) -> Smoothing:
    """Good-Turing discounted counts, backing off to shorter contexts for unseen words (Katz 1987)."""

    def masses(order: int) -> Masses:
        try:
            ratios = good_turing(statistics.count_of_counts(order, KATZ_MAX_COUNT + 1), KATZ_MAX_COUNT)
            discounts = None
        except DiscountError as error:
            discounts = fallback_discounts(statistics, order, error, "Good-Turing discounts")

        def masses_of(counts: Counts, begin: Begin) -> tuple[Floats, Floats]:
            if discounts is None:
                mass = counts * ratios[np.minimum(counts, KATZ_MAX_COUNT + 1)]
            else:
                mass = counts - discounts[np.minimum(counts, 3)]
            total, remaining = sum_ranges(begin, counts), sum_ranges(begin, mass)
            undiscounted = (remaining >= total) & (total > 0)
            return mass, np.where(undiscounted, total + 1, total)  # leave some mass for unseen words

        return masses_of

    return Smoothing(masses, back_off)


def discounting(statistics: CountStatistics, discounts: Callable[[Floats], Floats], *, adjusted: bool) -> Smoothing:
    """Subtract D(c) from every count c.

    With adjusted counts (Kneser-Ney), lower orders count the different words that precede an n-gram.
    """

    def masses(order: int) -> Masses:
        try:
            D = discounts(statistics.count_of_counts(order, 4, adjusted=adjusted))
        except DiscountError as error:
            D = fallback_discounts(statistics, order, error, "discounts")
        D32 = D.astype(np.float32)

        def masses_of(counts: Counts, begin: Begin) -> tuple[NDArray[np.float32], Floats]:
            mass = D32[np.minimum(counts, 3)]
            np.subtract(counts, mass, out=mass, dtype=np.float64, casting="same_kind")
            return mass, sum_ranges(begin, counts)

        return masses_of

    return Smoothing(masses, adjusted=adjusted)


def fallback_discounts(statistics: CountStatistics, order: int, error: DiscountError, what: str) -> Floats:
    """Return the discounts that are used if a text gives none, and note why."""
    discounts = ", ".join(map(str, FALLBACK_DISCOUNTS))
    statistics.note(f"order {order}: no {what} from this text ({error}); using {discounts} for counts 1, 2, 3+")
    return np.array([0.0, *FALLBACK_DISCOUNTS])


def stupid_backoff(task: SmoothingTask) -> BackoffEstimate:
    """S(w | h) = c(hw) / c(h), else 0.4 S(w | h') (Brants et al. 2007), divided by Z(h) = sum_w S(w | h).

    Z(h) = (sum of S over the words seen after h) + 0.4 (Z(h') - sum of S(. | h') over the same words), so the
    normalised scores are a back-off model with weights 0.4 Z(h') / Z(h).
    """
    trie = task.counts.trie
    score = replace(task, keep=None).estimate(maximum_likelihood(task)).prob
    words = score[trie.span(1)]
    words[:] = np.where(task.raw(1) > 0, words, STUPID_BACKOFF_FACTOR * task.zerogram)  # unseen: back off to order 0
    Z = np.ones(trie.contexts)
    Z[ROOT] = words.sum(dtype=float)
    backoff = np.ones(trie.contexts, np.float32)
    for order in range(2, trie.order + 1):
        ngrams, contexts = trie.span(order), trie.span(order - 1)
        is_seen = task.raw(order) > 0 if task.keep is None else (task.raw(order) > 0) & task.keep[ngrams]
        lower = score[trie.suffix[ngrams]]
        score[ngrams] = np.where(is_seen, score[ngrams], STUPID_BACKOFF_FACTOR * lower)
        shorter = Z[trie.suffix[contexts]]
        listed = task.totals(order, np.where(is_seen, score[ngrams], 0.0))
        covered = task.totals(order, np.where(is_seen, lower, 0.0))
        Z[contexts] = listed + STUPID_BACKOFF_FACTOR * (shorter - covered)
        backoff[contexts] = STUPID_BACKOFF_FACTOR * shorter / Z[contexts]
    prob = np.zeros_like(score)
    for order in range(1, trie.order + 1):
        ngrams = trie.span(order)
        prob[ngrams] = score[ngrams] / Z[trie.parents(order)]
    return BackoffEstimate(prob, backoff, Z.astype(np.float32))


class DiscountError(ValueError):
    """The counts of counts give no usable discounts; the message says why."""


def absolute_discount(n: Floats) -> Floats:
    """D = n_1 / (n_1 + 2 n_2), the same for every count."""
    if n[1] == 0 or n[2] == 0:
        raise DiscountError(f"no n-gram occurs {'once' if n[1] == 0 else 'twice'}")
    D = n[1] / (n[1] + 2 * n[2])
    return np.array([0.0, D, D, D])


def modified_discounts(n: Floats) -> Floats:
    """D_j = j - (j + 1) Y n_{j+1} / n_j for counts 1, 2 and 3 or more (Chen and Goodman 1998, eq. 26)."""
    missing = [j for j in (1, 2, 3) if n[j] == 0]
    if missing:
        raise DiscountError(f"no n-gram has the (adjusted) count {missing[0]}")
    Y = n[1] / (n[1] + 2 * n[2])
    D = np.array([0.0, *(j - (j + 1) * Y * n[j + 1] / n[j] for j in (1, 2, 3))])
    wrong = [j for j in (1, 2, 3) if not 0 <= D[j] <= j]
    if wrong:
        raise DiscountError(f"the discount of count {wrong[0]} would be {D[wrong[0]]:.3f}")
    return D


def good_turing(n: Floats, max_count: int) -> Floats:
    """Katz's ratio d_r = (r* / r - A) / (1 - A) for counts r up to `max_count`, 1 above; r* = (r + 1) n_{r+1} / n_r."""
    if n[1] == 0:
        raise DiscountError("no n-gram occurs once")
    A = (max_count + 1) * n[max_count + 1] / n[1]
    ratios = np.ones(max_count + 2)
    ratios[0] = 0.0
    for r in range(1, max_count + 1):
        if n[r] == 0 or n[r + 1] == 0 or A >= 1:
            raise DiscountError(f"too few n-grams occur {r} or {r + 1} times")
        ratios[r] = ((r + 1) * n[r + 1] / (r * n[r]) - A) / (1 - A)
    if not ((ratios[1:] > 0) & (ratios[1:] <= 1)).all():
        raise DiscountError("Good-Turing ratios fall outside 0 to 1")
    return ratios


def _in_memory(method: Callable[[CountStatistics], Smoothing], task: SmoothingTask) -> BackoffEstimate:
    return task.estimate(method(task))


# Methods that work on counts wherever these are stored.
METHODS: dict[str, Callable[[CountStatistics], Smoothing]] = {
    "maximum-likelihood": maximum_likelihood,
    "interpolated": fixed_interpolation,
    "witten-bell": witten_bell,
    "katz": katz,
    "absolute-discounting": partial(discounting, discounts=absolute_discount, adjusted=False),  # Ney et al. 1994
    "kneser-ney": partial(discounting, discounts=absolute_discount, adjusted=True),
    "modified-kneser-ney": partial(discounting, discounts=modified_discounts, adjusted=True),
}
# All methods, for counts in memory.
SMOOTHINGS: dict[str, Callable[[SmoothingTask], BackoffEstimate]] = {
    "maximum-likelihood": partial(_in_memory, maximum_likelihood),
    "whole-prefix": partial(_in_memory, maximum_likelihood),  # with counts of sentence beginnings
    "interpolated": partial(_in_memory, fixed_interpolation),
    "interpolated-fitted": partial(fitted_interpolation, bucketed=False),
    "interpolated-bucketed": partial(fitted_interpolation, bucketed=True),
    **{name: partial(_in_memory, METHODS[name]) for name in list(METHODS)[2:]},
    "stupid-backoff": stupid_backoff,
}
FITTED_SMOOTHINGS = {"interpolated-fitted", "interpolated-bucketed"}  # these need held-out text
