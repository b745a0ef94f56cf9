"""Smoothing methods: each turns counts into P(e_t | e_{t-n+1} ... e_{t-1}).

`SMOOTHINGS` lists them. Each is a function of a `SmoothingTask` that returns a `BackoffEstimate`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.corpus import Corpus
from dragoman.ngram.counting import NgramCounts
from dragoman.ngram.discounts import (
    FALLBACK_DISCOUNTS,
    DiscountError,
    absolute_discount,
    adjusted_count_of_counts,
    adjusted_counts,
    count_of_counts,
    good_turing,
    modified_discounts,
)
from dragoman.ngram.estimate import BackoffEstimate, Floats, OrderMasses, back_off, context_totals, interpolate
from dragoman.ngram.heldout import InterpolationCoefficients, fit_coefficients
from dragoman.ngram.trie import ROOT

KATZ_MAX_COUNT = 5  # larger counts are not discounted
STUPID_BACKOFF_FACTOR = 0.4  # a score is multiplied by this for each word of context that is dropped
DEFAULT_FIRST_COEFFICIENT, DEFAULT_COEFFICIENT = 0.05, 0.5  # alpha_1, and alpha_m of longer contexts


@dataclass(frozen=True)
class HeldoutText:
    """Text to fit coefficients on, and the counts of other text that they are fitted to."""

    corpus: Corpus
    counts: NgramCounts


@dataclass(frozen=True)
class SmoothingTask:
    """The input of a smoothing method."""

    counts: NgramCounts
    zerogram: Floats  # (|V|,) the distribution of order 0
    coefficients: tuple[float, ...] = ()  # alpha_1, alpha_2, ... of fixed interpolation
    heldout: HeldoutText | None = None  # for fitted coefficients
    keep: NDArray[np.bool_] | None = None  # (nodes,) n-grams that are not pruned
    notes: list[str] = field(default_factory=list)  # messages for the user
    fitted_coefficients: list[InterpolationCoefficients] = field(default_factory=list)

    def raw(self, order: int) -> NDArray[np.int32]:
        """Return the counts of the n-grams of one order."""
        return self.counts.count[self.counts.trie.span(order)]

    def totals(self, order: int, value: NDArray[np.generic]) -> Floats:
        """Sum a value of the n-grams of one order over each context."""
        return context_totals(self.counts, order, value)

    def note(self, message: str) -> None:
        self.notes.append(message)
        warnings.warn(message, stacklevel=3)


def maximum_likelihood(task: SmoothingTask) -> BackoffEstimate:
    """P(e_t | context) = c(context e_t) / c(context): eq. ngramlm:mle. Unseen words have probability 0."""

    def masses(order: int) -> OrderMasses:
        counts = task.raw(order).astype(np.float32)
        return OrderMasses(counts, task.totals(order, counts))

    return interpolate(task.counts, task.zerogram, masses, task.keep)


def fixed_interpolation(task: SmoothingTask) -> BackoffEstimate:
    """(1 - alpha_m) P_ML + alpha_m P_{m-1} with given alpha_m: eq. ngramlm:recursiveinterpolation."""
    order = task.counts.trie.order
    coefficients = task.coefficients or (DEFAULT_FIRST_COEFFICIENT, *[DEFAULT_COEFFICIENT] * (order - 1))
    # A short text may not have n-grams of the last orders.
    return _interpolate_with(task, InterpolationCoefficients.fixed(coefficients[:order]))


def fitted_interpolation(task: SmoothingTask) -> BackoffEstimate:
    """Interpolation with one alpha_m per order, fitted on held-out text by EM."""
    return _interpolate_with(task, _fit(task, bucketed=False))


def bucketed_interpolation(task: SmoothingTask) -> BackoffEstimate:
    """Interpolation with an alpha_m for each bucket of context counts, fitted on held-out text by EM."""
    return _interpolate_with(task, _fit(task, bucketed=True))


def witten_bell(task: SmoothingTask) -> BackoffEstimate:
    """alpha(h) = N(h) / (N(h) + c(h)), where N(h) different words follow h (Witten and Bell 1991)."""

    def masses(order: int) -> OrderMasses:
        counts = task.raw(order).astype(np.float32)
        return OrderMasses(counts, task.totals(order, counts) + task.totals(order, counts > 0))

    return interpolate(task.counts, task.zerogram, masses, task.keep)


def katz(task: SmoothingTask) -> BackoffEstimate:
    """Good-Turing discounted counts, backing off to shorter contexts for unseen words (Katz 1987)."""

    def masses(order: int) -> OrderMasses:
        counts = task.raw(order)
        try:
            ratios = good_turing(count_of_counts(counts, KATZ_MAX_COUNT + 1), KATZ_MAX_COUNT)
            mass = counts * ratios[np.minimum(counts, KATZ_MAX_COUNT + 1)]
        except DiscountError as error:
            mass = counts - _fallback_discounts(task, order, error, "Good-Turing discounts")[np.minimum(counts, 3)]
        total, remaining = task.totals(order, counts), task.totals(order, mass)
        undiscounted = (remaining >= total) & (total > 0)
        return OrderMasses(mass, np.where(undiscounted, total + 1, total))  # leave some mass for unseen words

    return back_off(task.counts, task.zerogram, masses, task.keep)


def absolute_discounting(task: SmoothingTask) -> BackoffEstimate:
    """Every count is reduced by the same D = n_1 / (n_1 + 2 n_2) (Ney et al. 1994)."""

    def masses(order: int) -> OrderMasses:
        counts = task.raw(order)
        return _discount(task, order, counts, count_of_counts(counts, 2), absolute_discount)

    return interpolate(task.counts, task.zerogram, masses, task.keep)


def kneser_ney(task: SmoothingTask) -> BackoffEstimate:
    """Absolute discounting where lower orders count the different words that precede an n-gram."""
    return _kneser_ney(task, absolute_discount)


def modified_kneser_ney(task: SmoothingTask) -> BackoffEstimate:
    """Kneser-Ney with three discounts per order, for counts 1, 2 and 3 or more (Chen and Goodman 1998)."""
    return _kneser_ney(task, modified_discounts)


def _kneser_ney(task: SmoothingTask, discounts: Callable[[Floats], Floats]) -> BackoffEstimate:
    def masses(order: int) -> OrderMasses:
        adjusted = adjusted_counts(task.counts, order)
        return _discount(task, order, adjusted, adjusted_count_of_counts(task.counts, order, adjusted), discounts)

    return interpolate(task.counts, task.zerogram, masses, task.keep)


def stupid_backoff(task: SmoothingTask) -> BackoffEstimate:
    """S(w | h) = c(hw) / c(h), else 0.4 S(w | h') (Brants et al. 2007), divided by Z(h) = sum_w S(w | h).

    Z(h) = (sum of S over the words seen after h) + 0.4 (Z(h') - sum of S(. | h') over the same words), so the
    normalised scores are a back-off model with weights 0.4 Z(h') / Z(h).
    """
    trie = task.counts.trie
    score = maximum_likelihood(replace(task, keep=None)).prob
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


SMOOTHINGS: dict[str, Callable[[SmoothingTask], BackoffEstimate]] = {
    "maximum-likelihood": maximum_likelihood,
    "whole-prefix": maximum_likelihood,  # with counts of sentence beginnings
    "interpolated": fixed_interpolation,
    "interpolated-fitted": fitted_interpolation,
    "interpolated-bucketed": bucketed_interpolation,
    "witten-bell": witten_bell,
    "katz": katz,
    "absolute-discounting": absolute_discounting,
    "kneser-ney": kneser_ney,
    "modified-kneser-ney": modified_kneser_ney,
    "stupid-backoff": stupid_backoff,
}
FITTED_SMOOTHINGS = {"interpolated-fitted", "interpolated-bucketed"}  # these need held-out text


def _discount(
    task: SmoothingTask,
    order: int,
    counts: NDArray[np.integer],
    statistics: Floats,
    discounts: Callable[[Floats], Floats],
) -> OrderMasses:
    """Subtract D(c) from every count c."""
    try:
        D = discounts(statistics)
    except DiscountError as error:
        D = _fallback_discounts(task, order, error, "discounts")
    mass = D.astype(np.float32)[np.minimum(counts, 3)]
    np.subtract(counts, mass, out=mass, casting="same_kind")
    return OrderMasses(mass, task.totals(order, counts))


def _fallback_discounts(task: SmoothingTask, order: int, error: DiscountError, what: str) -> Floats:
    discounts = ", ".join(map(str, FALLBACK_DISCOUNTS))
    task.note(f"order {order}: no {what} from this text ({error}); using {discounts} for counts 1, 2, 3+")
    return np.array([0.0, *FALLBACK_DISCOUNTS])


def _interpolate_with(task: SmoothingTask, coefficients: InterpolationCoefficients) -> BackoffEstimate:
    def masses(order: int) -> OrderMasses:
        counts = task.raw(order).astype(np.float32)
        total = task.totals(order, counts)
        with np.errstate(divide="ignore"):
            return OrderMasses(counts, total / (1 - coefficients.alpha(order, total)))

    return interpolate(task.counts, task.zerogram, masses, task.keep)


def _fit(task: SmoothingTask, *, bucketed: bool) -> InterpolationCoefficients:
    if task.heldout is None:
        raise DataError("fitted coefficients need held-out text: give --dev-text")
    coefficients = fit_coefficients(task.heldout.counts, task.zerogram, task.heldout.corpus, bucketed=bucketed)
    task.fitted_coefficients.append(coefficients)
    return coefficients
