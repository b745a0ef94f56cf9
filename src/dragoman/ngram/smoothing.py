"""Smoothing methods: each turns counts into P(e_t | e_{t-n+1} ... e_{t-1}).

`SMOOTHINGS` lists them. Each is a function of a `SmoothingTask` that returns a `BackoffEstimate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dragoman.core.errors import DataError
from dragoman.data.ranges import sum_ranges
from dragoman.data.vocabulary import START
from dragoman.ngram.counting import Counts, NgramCounts
from dragoman.ngram.estimate import BLOCK_NGRAMS, BackoffEstimate, Begin, Floats, Masses, SmoothingTask, back_off
from dragoman.ngram.heldout import InterpolationCoefficients, fit_coefficients
from dragoman.ngram.trie import ROOT

KATZ_MAX_COUNT = 5  # larger counts are not discounted
STUPID_BACKOFF_FACTOR = 0.4  # a score is multiplied by this for each word of context that is dropped
FALLBACK_DISCOUNTS = (0.5, 1.0, 1.5)  # used if the counts of counts give no discounts
DEFAULT_FIRST_COEFFICIENT, DEFAULT_COEFFICIENT = 0.05, 0.5  # alpha_1, and alpha_m of longer contexts


def _interpolate(task: SmoothingTask, totals: Callable[[int, Counts, Begin], Floats]) -> BackoffEstimate:
    """P(w | h) = c(hw) / total(h) + alpha(h) P(w | h'), where total(h) is c(h) or more."""

    def masses(order: int) -> tuple[Counts, Masses]:
        return task.raw(order), lambda counts, begin: (counts.astype(np.float32), totals(order, counts, begin))

    return task.estimate(masses)


def maximum_likelihood(task: SmoothingTask) -> BackoffEstimate:
    """P(e_t | context) = c(context e_t) / c(context): eq. ngramlm:mle. Unseen words have probability 0."""
    return _interpolate(task, lambda order, counts, begin: sum_ranges(begin, counts))


def fixed_interpolation(task: SmoothingTask) -> BackoffEstimate:
    """(1 - alpha_m) P_ML + alpha_m P_{m-1} with given alpha_m: eq. ngramlm:recursiveinterpolation."""
    order = task.counts.trie.order
    coefficients = task.coefficients or (DEFAULT_FIRST_COEFFICIENT, *[DEFAULT_COEFFICIENT] * (order - 1))
    # A short text may not have n-grams of the last orders.
    return _interpolate_with(task, InterpolationCoefficients.fixed(coefficients[:order]))


def fitted_interpolation(task: SmoothingTask, *, bucketed: bool) -> BackoffEstimate:
    """Interpolation with one alpha_m per order, or per bucket of context counts, fitted on held-out text by EM."""
    if task.heldout is None:
        raise DataError("fitted coefficients need held-out text: give --dev-text")
    corpus, counts = task.heldout
    coefficients = fit_coefficients(counts, task.zerogram, corpus, bucketed=bucketed)
    return replace(_interpolate_with(task, coefficients), coefficients=coefficients)


def _interpolate_with(task: SmoothingTask, coefficients: InterpolationCoefficients) -> BackoffEstimate:
    def totals(order: int, counts: Counts, begin: Begin) -> Floats:
        total = sum_ranges(begin, counts)
        with np.errstate(divide="ignore"):
            return np.divide(total, 1 - coefficients.alpha(order, total))

    return _interpolate(task, totals)


def witten_bell(task: SmoothingTask) -> BackoffEstimate:
    """alpha(h) = N(h) / (N(h) + c(h)), where N(h) different words follow h (Witten and Bell 1991)."""
    return _interpolate(task, lambda order, counts, begin: sum_ranges(begin, counts) + sum_ranges(begin, counts > 0))


def katz(task: SmoothingTask) -> BackoffEstimate:
    """Good-Turing discounted counts, backing off to shorter contexts for unseen words (Katz 1987)."""

    def masses(order: int) -> tuple[Counts, Masses]:
        try:
            ratios = good_turing(count_of_counts(task.raw(order), KATZ_MAX_COUNT + 1), KATZ_MAX_COUNT)
            discounts = None
        except DiscountError as error:
            discounts = fallback_discounts(task, order, error, "Good-Turing discounts")

        def masses_of(counts: Counts, begin: Begin) -> tuple[Floats, Floats]:
            if discounts is None:
                mass = counts * ratios[np.minimum(counts, KATZ_MAX_COUNT + 1)]
            else:
                mass = counts - discounts[np.minimum(counts, 3)]
            total, remaining = sum_ranges(begin, counts), sum_ranges(begin, mass)
            undiscounted = (remaining >= total) & (total > 0)
            return mass, np.where(undiscounted, total + 1, total)  # leave some mass for unseen words

        return task.raw(order), masses_of

    return task.estimate(masses, back_off)


def discounting(task: SmoothingTask, discounts: Callable[[Floats], Floats], *, adjusted: bool) -> BackoffEstimate:
    """Subtract D(c) from every count c.

    With adjusted counts (Kneser-Ney), lower orders count the different words that precede an n-gram.
    """

    def masses(order: int) -> tuple[Counts, Masses]:
        counts = adjusted_counts(task.counts, order) if adjusted else task.raw(order)
        statistics = adjusted_count_of_counts(task.counts, order, counts) if adjusted else count_of_counts(counts, 2)
        try:
            D = discounts(statistics)
        except DiscountError as error:
            D = fallback_discounts(task, order, error, "discounts")
        D32 = D.astype(np.float32)

        def masses_of(counts: Counts, begin: Begin) -> tuple[NDArray[np.float32], Floats]:
            mass = D32[np.minimum(counts, 3)]
            np.subtract(counts, mass, out=mass, dtype=np.float64, casting="same_kind")
            return mass, sum_ranges(begin, counts)

        return counts, masses_of

    return task.estimate(masses)


def fallback_discounts(task: SmoothingTask, order: int, error: DiscountError, what: str) -> Floats:
    """Return the discounts that are used if a text gives none, and note why."""
    discounts = ", ".join(map(str, FALLBACK_DISCOUNTS))
    task.note(f"order {order}: no {what} from this text ({error}); using {discounts} for counts 1, 2, 3+")
    return np.array([0.0, *FALLBACK_DISCOUNTS])


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


class DiscountError(ValueError):
    """The counts of counts give no usable discounts; the message says why."""


def count_of_counts(counts: NDArray[np.integer], max_count: int) -> Floats:
    """Return n_1, n_2, ..., n_max: how many n-grams occur once, twice, ... Index 0 is not used."""
    return np.array([0.0, *(np.count_nonzero(counts == count) for count in range(1, max_count + 1))])


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


def adjusted_counts(counts: NgramCounts, order: int) -> Counts:
    """Return the number of different words that precede each n-gram.

    The highest order, and n-grams that begin with `<s>` and so have no left neighbour, keep their raw counts.
    """
    trie, raw = counts.trie, counts.of_order(order)
    if order == trie.order:
        return raw
    first, longer = trie.levels[order], trie.span(order + 1)
    suffix = trie.suffix[longer]
    adjusted = np.zeros(len(raw), np.int32)
    for start in range(0, len(suffix), BLOCK_NGRAMS):
        block = slice(start, start + BLOCK_NGRAMS)
        is_counted = (counts.of_order(order + 1)[block] > 0) & (suffix[block] >= first)
        np.add.at(adjusted, suffix[block][is_counted] - np.int32(first), np.int32(1))
    node = 1 + START + 1  # the first n-gram that does not begin with <s>: those that do are sorted first
    for _ in range(1, order):
        node = int(trie.begin[node])
    starts = node - first
    adjusted[:starts] = raw[:starts]
    return adjusted


def adjusted_count_of_counts(counts: NgramCounts, order: int, adjusted: Counts) -> Floats:
    """Return the counts of adjusted counts, as KenLM's `lmplz` computes them.

    `lmplz` takes the suffixes of the very last n-gram (comparing words from right to left) at their raw counts. The
    effect on the estimate is tiny, but needed to agree with `lmplz` to the last digit.
    """
    statistics = count_of_counts(adjusted, 4)
    if order < counts.trie.order:
        for node in _last_suffixes(counts):
            position = node - counts.trie.levels[order]
            if 0 <= position < len(adjusted):
                statistics += count_of_counts(counts.of_order(order)[position : position + 1], 4)
                statistics -= count_of_counts(adjusted[position : position + 1], 4)
    return statistics


def _last_suffixes(counts: NgramCounts) -> list[int]:
    """Return the suffixes, from one word up, of the last n-gram when words are compared from right to left."""
    trie = counts.trie
    node = trie.levels[1] + int(np.flatnonzero(counts.of_order(1)).max(initial=0))
    suffixes = [node]
    for order in range(2, trie.order + 1):
        span = trie.span(order)
        longer = np.flatnonzero((trie.suffix[span] == node) & (counts.of_order(order) > 0))
        if not len(longer):  # it begins with <s>
            break
        node = span.start + int(longer[-1])  # sorted by first word: the last is the largest
        suffixes.append(node)
    return suffixes


SMOOTHINGS: dict[str, Callable[[SmoothingTask], BackoffEstimate]] = {
    "maximum-likelihood": maximum_likelihood,
    "whole-prefix": maximum_likelihood,  # with counts of sentence beginnings
    "interpolated": fixed_interpolation,
    "interpolated-fitted": partial(fitted_interpolation, bucketed=False),
    "interpolated-bucketed": partial(fitted_interpolation, bucketed=True),
    "witten-bell": witten_bell,
    "katz": katz,
    "absolute-discounting": partial(discounting, discounts=absolute_discount, adjusted=False),  # Ney et al. 1994
    "kneser-ney": partial(discounting, discounts=absolute_discount, adjusted=True),
    "modified-kneser-ney": partial(discounting, discounts=modified_discounts, adjusted=True),
    "stupid-backoff": stupid_backoff,
}
FITTED_SMOOTHINGS = {"interpolated-fitted", "interpolated-bucketed"}  # these need held-out text
