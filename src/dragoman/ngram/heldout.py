"""Interpolation coefficients fitted on held-out text by expectation-maximisation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.ranges import sum_ranges
from dragoman.data.vocabulary import END, START
from dragoman.ngram.counting import NgramCounts
from dragoman.ngram.trie import ROOT, advance, find_child

Floats = NDArray[np.float64]
BUCKETS = 20
ITERATIONS = 100
TOLERANCE = 1e-9  # EM stops at this relative gain of the likelihood


def bucket_of(context_count: NDArray[np.number]) -> NDArray[np.int64]:
    """Return the bucket of each count: contexts that occur once, 2-3, 4-7, 8-15, ... times share a coefficient."""
    return np.minimum(np.log2(np.maximum(context_count, 1)).astype(np.int64), BUCKETS - 1)


@dataclass(frozen=True)
class InterpolationCoefficients:
    """alpha_m, by the count of the context: the weight of the shorter context."""

    table: Floats  # (order, BUCKETS)

    @classmethod
    def fixed(cls, alphas: tuple[float, ...]) -> InterpolationCoefficients:
        """Use one coefficient per order for all buckets."""
        return cls(np.repeat(np.array(alphas)[:, None], BUCKETS, axis=1))

    def alpha(self, order: int, context_count: Floats) -> Floats:
        """Return alpha of each context. Orders above the fitted ones use the coefficient of the highest."""
        return self.table[min(order, len(self.table)) - 1, bucket_of(context_count)]


class _Evidence(NamedTuple):
    """P_ML of the held-out tokens at every order, and the bucket of their contexts (-1: context not seen)."""

    likelihood: NDArray[np.float32]  # (tokens, order)
    bucket: NDArray[np.int8]  # (tokens, order)
    zerogram: Floats  # (tokens,)


def fit_coefficients(
    counts: NgramCounts, zerogram: Floats, heldout: Corpus, *, bucketed: bool
) -> InterpolationCoefficients:
    """Fit one coefficient per order and, if `bucketed`, then one per bucket of context counts."""
    evidence = _collect_evidence(counts, zerogram, heldout)
    pooled = evidence._replace(bucket=np.minimum(evidence.bucket, np.int8(0)))
    table = _expectation_maximisation(np.full((counts.trie.order, BUCKETS), 0.5), pooled)
    table = np.repeat(table[:, :1], BUCKETS, axis=1)
    return InterpolationCoefficients(_expectation_maximisation(table, evidence) if bucketed else table)


def _collect_evidence(counts: NgramCounts, zerogram: Floats, heldout: Corpus) -> _Evidence:
    trie, tokens = counts.trie, heldout.ids_with_boundaries(starts=0)
    matches = np.zeros((len(tokens), trie.order), np.int32)  # count of the n-gram
    contexts = np.zeros_like(matches)  # count of its context
    count = np.concatenate([np.zeros(1, np.int32), *counts.by_order], dtype=np.int32)  # (nodes,)
    totals = sum_ranges(trie.begin, count[1:])
    _trace(trie.word, trie.begin, trie.suffix, count, totals, tokens, counts.gap, matches, contexts)
    is_seen = contexts > 0
    likelihood = np.zeros(matches.shape, np.float32)
    np.divide(matches, contexts, out=likelihood, where=is_seen, casting="same_kind")
    return _Evidence(likelihood, np.where(is_seen, bucket_of(contexts), -1).astype(np.int8), zerogram[tokens])


def _expectation_maximisation(table: Floats, evidence: _Evidence) -> Floats:
    previous = -np.inf
    for _ in range(ITERATIONS):
        table, log_likelihood = _iterate(table, evidence)
        if log_likelihood - previous < TOLERANCE * abs(log_likelihood):
            break
        previous = log_likelihood
    return table


def _iterate(table: Floats, evidence: _Evidence) -> tuple[Floats, float]:
    """Do one step: compute how often, in expectation, each context was visited and passed on to a shorter one."""
    parts = parallel_map(partial(_expect, table, evidence), split_range(0, len(evidence.zerogram), per_core=1))
    visits, passes, log_likelihood = (sum(part[k] for part in parts) for k in (0, 1, 2))
    new = np.clip(passes / np.maximum(visits, 1e-300), 1e-6, 1 - 1e-6)
    return np.where(visits > 0, new, table), log_likelihood


@kernel
def _expect(table: Any, evidence: Any, tokens: Any) -> tuple[Any, Any, float]:
    """Return the expected visits and passes of a range of tokens, and their log-likelihood."""
    visits, passes = np.zeros_like(table), np.zeros_like(table)
    bucket, order = evidence.bucket, evidence.likelihood.shape[1]
    prob = np.empty(order + 1)  # prob[m]: up to order m
    log_likelihood = 0.0
    for t in range(tokens[0], tokens[1]):
        prob[0] = evidence.zerogram[t]
        for m in range(order):
            alpha = table[m, bucket[t, m]] if bucket[t, m] >= 0 else 1.0
            prob[m + 1] = (1.0 - alpha) * evidence.likelihood[t, m] + alpha * prob[m]
        posterior = 1.0
        for m in range(order - 1, -1, -1):
            if bucket[t, m] >= 0:
                visits[m, bucket[t, m]] += posterior
                if prob[m + 1] > 0.0:
                    posterior *= table[m, bucket[t, m]] * prob[m] / prob[m + 1]
                passes[m, bucket[t, m]] += posterior
        log_likelihood += np.log(prob[order])
    return visits, passes, log_likelihood


@kernel
def _trace(
    word: Any, begin: Any, suffix: Any, count: Any, totals: Any, tokens: Any, gap: int, matches: Any, contexts: Any
) -> None:
    """For every token, look up the counts of its n-gram and of its context at every order."""
    order = matches.shape[1]
    start = 1 + START if order > 1 else ROOT
    node = start
    position = 0  # tokens of this sentence so far
    for t in range(tokens.size):
        depth, context = 0, node
        while context != ROOT:
            depth, context = depth + 1, suffix[context]
        context = node
        for k in range(depth, -1, -1):
            contexts[t, k] = totals[context]
            child = find_child(word, begin, context, tokens[t])
            if child >= 0:
                matches[t, k] = count[child]
            context = suffix[context]
        position += 1
        if tokens[t] == END:
            node, position = start, 0
        elif order > 1:
            node = advance(word, begin, suffix, node, START if position <= gap else tokens[t - gap])
