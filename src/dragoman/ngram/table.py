"""The tables of a trained n-gram model: log-probabilities and back-off weights on a trie.

log P(w | h) is `log_prob[hw]` if the trie has hw, else `log_backoff[h] + log P(w | h')` with h' = suffix(h). All
smoothing methods can be written in this form, which is that of ARPA files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START
from dragoman.ngram.estimate import BackoffEstimate
from dragoman.ngram.trie import ROOT, Trie, advance, build_trie, descend

NO_CODEBOOK = np.zeros((0, 256), np.float32)  # the codebook of a table that is not quantised


@dataclass(frozen=True)
class NgramTable:
    """A trie with probabilities. In a quantised table `log_prob` has codes that index the codebook of their order."""

    trie: Trie
    log_prob: NDArray[Any]  # (nodes,) float32, or uint8 codes
    log_backoff: NDArray[np.float32]  # (contexts,)
    codebook: NDArray[np.float32] = field(default_factory=lambda: NO_CODEBOOK)  # (order + 1, 256) or PLAIN
    log_normaliser: NDArray[np.float32] | None = None  # (contexts,) the normaliser of stupid back-off

    @classmethod
    def from_estimate(cls, trie: Trie, estimate: BackoffEstimate) -> NgramTable:
        """Take logarithms, in place to save memory."""
        normaliser = None if estimate.normaliser is None else np.log(estimate.normaliser)
        with np.errstate(divide="ignore"):
            np.log(estimate.prob, out=estimate.prob)
            np.log(estimate.backoff, out=estimate.backoff)
        return cls(trie, estimate.prob, estimate.backoff, log_normaliser=normaliser)

    @property
    def quantised(self) -> bool:
        return self.codebook.shape[0] > 0

    def values(self, order: int) -> NDArray[np.float32]:
        """Return the log-probabilities of the n-grams of one order, decoded if quantised."""
        stored = self.log_prob[self.trie.span(order)]
        return self.codebook[order][stored] if self.quantised else stored

    def arrays(self) -> tuple[NDArray[Any], ...]:
        trie = self.trie
        levels = np.array(trie.levels, np.int64)
        return levels, trie.word, trie.begin, trie.suffix, self.log_prob, self.log_backoff, self.codebook

    def trace(self, corpus: Corpus, gap: int = 0) -> NgramTrace:
        """Score all tokens of a corpus, in parallel."""
        size = corpus.num_tokens
        arrays = self.arrays()
        trace = NgramTrace(np.empty(size), np.empty(size, np.int32), np.empty(size, np.int32))

        def walk(span: tuple[int, int]) -> None:
            places = corpus.ids, corpus.offsets, gap, *span
            _walk(*arrays, *places, trace.log_prob, trace.context, trace.matched)

        parallel_map(walk, split_range(0, len(corpus), min_size=256))
        return trace

    def distributions(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return log P(. | h) of each context node.  # (rows, |V|)"""
        out = np.empty((len(contexts), self.trie.levels[2] - 1))
        _distributions(*self.arrays(), contexts, out)
        return out

    def advance(self, contexts: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the context nodes after these words."""
        if len(words) and not (words.min() >= 0 and words.max() < self.trie.levels[2] - 1):
            raise ValueError(f"words {words.tolist()}: ids go from 0 to {self.trie.levels[2] - 2}")
        following = np.empty_like(contexts)
        _advance_all(self.trie.word, self.trie.begin, self.trie.suffix, contexts, words, following)
        return following


@dataclass(frozen=True)
class NgramTrace:
    """The result of scoring each token."""

    log_prob: NDArray[np.float64]  # (tokens,)
    context: NDArray[np.int32]  # (tokens,) the context node
    matched: NDArray[np.int32]  # (tokens,) the longest matching n-gram

    def matched_orders(self, trie: Trie) -> NDArray[np.int64]:
        """Return the order of the matching n-gram of each token."""
        return np.searchsorted(np.array(trie.levels), self.matched, side="right") - 1


def renormalise(table: NgramTable) -> NgramTable:
    """Recompute all back-off weights so that every distribution sums to one.

    beta(h) = (1 - sum of P(w | h)) / (1 - sum of P(w | h')), both over the words listed after h.
    """
    trie = table.trie
    new = NgramTable(trie, table.log_prob, np.zeros(trie.contexts, np.float32), table.codebook)
    for order in range(1, trie.order):  # needs the weights of shorter contexts

        def fill(span: tuple[int, int]) -> None:
            _renormalise(*new.arrays(), *span)

        parallel_map(fill, split_range(trie.levels[order], trie.levels[order + 1]))
    return new


def keep_nodes(table: NgramTable, keep: NDArray[np.bool_]) -> NgramTable:
    """Return a table of the nodes in `keep`, which must include the context of every node in it."""
    trie = table.trie
    before = np.concatenate([[0], np.cumsum(keep)]).astype(np.int32)  # number of kept nodes before each node
    levels = [int(before[level]) for level in trie.levels]
    while levels[-1] == levels[-2]:  # an order without n-grams
        levels.pop()
    contexts = np.flatnonzero(keep[: trie.contexts])[: levels[-2]]
    begin = np.append(before[trie.begin[contexts]], levels[-1]).astype(np.int32)
    smaller = build_trie(levels, trie.word[keep], begin)
    normaliser = None if table.log_normaliser is None else table.log_normaliser[contexts]
    return NgramTable(smaller, table.log_prob[keep], table.log_backoff[contexts], table.codebook, normaliser)


# -- kernels -----------------------------------------------------------------------------------------------------


@kernel
def stored_log_prob(levels: Any, log_prob: Any, codebook: Any, node: int) -> float:
    """Return the stored log-probability of an n-gram."""
    if codebook.shape[0] == 0:
        return float(log_prob[node])
    order = 0
    while levels[order + 1] <= node:
        order += 1
    return float(codebook[order, int(log_prob[node])])


@kernel
def lookup(
    levels: Any, word: Any, begin: Any, suffix: Any, log_prob: Any, log_backoff: Any, codebook: Any, node: int, w: int
) -> tuple[float, int]:
    """Return log P(w | the string of `node`) and the longest matching n-gram."""
    backoff, child = descend(word, begin, suffix, log_backoff, node, w)
    return backoff + stored_log_prob(levels, log_prob, codebook, child), child


@kernel
def _walk(
    levels: Any,
    word: Any,
    begin: Any,
    suffix: Any,
    log_prob: Any,
    log_backoff: Any,
    codebook: Any,
    ids: Any,
    offsets: Any,
    gap: int,
    first: int,
    last: int,
    out: Any,
    contexts: Any,
    matched: Any,
) -> None:
    deepest = begin.size - 1  # nodes from here on have no children
    start = 1 + START if deepest > 1 else ROOT
    for sentence in range(first, last):
        node = start
        length = offsets[sentence + 1] - offsets[sentence]
        for t in range(length + 1):
            token = offsets[sentence] + sentence + t
            w = ids[offsets[sentence] + t] if t < length else END
            contexts[token] = node
            backoff, child = descend(word, begin, suffix, log_backoff, node, w)
            out[token] = backoff + stored_log_prob(levels, log_prob, codebook, child)
            matched[token] = child
            if gap == 0:
                node = child if child < deepest else suffix[child]
            elif deepest > 1:
                late = START if t < gap else ids[offsets[sentence] + t - gap]
                node = advance(word, begin, suffix, node, late)


@kernel
def _distributions(
    levels: Any,
    word: Any,
    begin: Any,
    suffix: Any,
    log_prob: Any,
    log_backoff: Any,
    codebook: Any,
    contexts: Any,
    out: Any,
) -> None:
    chain = np.empty(levels.size, np.int64)
    for row in range(contexts.size):
        depth = 0
        node = contexts[row]
        while node != ROOT:
            chain[depth] = node
            node = suffix[node]
            depth += 1
        for w in range(out.shape[1]):
            out[row, w] = stored_log_prob(levels, log_prob, codebook, w + 1)
        for k in range(depth - 1, -1, -1):  # from short contexts to long ones
            node = chain[k]
            for w in range(out.shape[1]):
                out[row, w] += log_backoff[node]
            for child in range(begin[node], begin[node + 1]):
                out[row, word[child]] = stored_log_prob(levels, log_prob, codebook, child)


@kernel
def _advance_all(word: Any, begin: Any, suffix: Any, contexts: Any, words: Any, following: Any) -> None:
    for row in range(contexts.size):
        following[row] = advance(word, begin, suffix, contexts[row], words[row])


@kernel
def _renormalise(
    levels: Any,
    word: Any,
    begin: Any,
    suffix: Any,
    log_prob: Any,
    log_backoff: Any,
    codebook: Any,
    first: int,
    last: int,
) -> None:
    for node in range(first, last):
        if begin[node] == begin[node + 1]:
            continue
        listed = covered = 0.0
        for child in range(begin[node], begin[node + 1]):
            listed += np.exp(stored_log_prob(levels, log_prob, codebook, child))
            lower, _ = lookup(levels, word, begin, suffix, log_prob, log_backoff, codebook, suffix[node], word[child])
            covered += np.exp(lower)
        left, free = 1.0 - listed, 1.0 - covered
        log_backoff[node] = np.log(left / free) if left > 0.0 and free > 1e-9 else -np.inf
