"""The tables of a trained n-gram model: log-probabilities and back-off weights on a trie.

log P(w | h) is `log_prob[hw]` if the trie has hw, else `log_backoff[h] + log P(w | h')` with h' = suffix(h). All
smoothing methods can be written in this form, which is that of ARPA files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import END, START
from dragoman.ngram.estimate import BackoffEstimate
from dragoman.ngram.trie import ROOT, Trie, advance, build_trie

NO_CODEBOOK = np.zeros((0, 256), np.float32)  # the codebook of a table that is not quantised
MAX_DEVIATION = 1e-2  # of the sum of a distribution from one: probabilities are stored in 32 or 8 bits
ROUNDING = 1e-4  # how far a stored log-probability may be above 0


class TableArrays(NamedTuple):
    """The arrays of a table, for kernels."""

    levels: NDArray[np.int64]
    word: NDArray[np.int32]
    begin: NDArray[np.int32]
    suffix: NDArray[np.int32]
    log_prob: NDArray[np.float32] | NDArray[np.uint8]
    log_backoff: NDArray[np.float32]
    codebook: NDArray[np.float32]


@dataclass(frozen=True)
class NgramTable:
    """A trie with probabilities. In a quantised table `log_prob` has codes that index the codebook of their order."""

    trie: Trie
    log_prob: NDArray[np.float32] | NDArray[np.uint8]  # (nodes,) or codes
    log_backoff: NDArray[np.float32]  # (contexts,)
    codebook: NDArray[np.float32] = field(default_factory=lambda: NO_CODEBOOK)  # (order + 1, 256)
    log_normalizer: NDArray[np.float32] | None = None  # (contexts,) the normaliser of stupid back-off

    @classmethod
    def from_estimate(cls, trie: Trie, estimate: BackoffEstimate) -> NgramTable:
        """Take logarithms, in place to save memory."""
        normalizer = None if estimate.normalizer is None else np.log(estimate.normalizer)
        with np.errstate(divide="ignore"):
            np.log(estimate.prob, out=estimate.prob)
            np.log(estimate.backoff, out=estimate.backoff)
        return cls(trie, estimate.prob, estimate.backoff, log_normalizer=normalizer)

    @property
    def quantized(self) -> bool:
        return self.codebook.shape[0] > 0

    def values(self, order: int) -> NDArray[np.float32]:
        """Return the log-probabilities of the n-grams of one order, decoded if quantised."""
        stored = self.log_prob[self.trie.span(order)]
        return self.codebook[order][stored] if self.quantized else stored.astype(np.float32, copy=False)

    def arrays(self) -> TableArrays:
        trie, levels = self.trie, np.array(self.trie.levels, np.int64)
        return TableArrays(levels, trie.word, trie.begin, trie.suffix, self.log_prob, self.log_backoff, self.codebook)

    def trace(self, corpus: Corpus, gap: int = 0) -> NgramTrace:
        """Score all tokens of a corpus, in parallel."""
        size = corpus.num_tokens
        trace = NgramTrace(np.empty(size), np.empty(size, np.int32), np.empty(size, np.int32))
        walk = partial(_walk, self.arrays(), corpus.ids, corpus.offsets, gap, trace)
        parallel_map(walk, split_range(0, len(corpus), min_size=256))
        return trace

    def distributions(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return log P(. | h) of each context node.  # (rows, |V|)"""
        out = np.empty((len(contexts), self.trie.levels[2] - 1))
        _distributions(self.arrays(), contexts, out)
        return out

    def advance(self, contexts: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the context nodes after these words."""
        if len(words) and not (words.min() >= 0 and words.max() < self.trie.levels[2] - 1):
            raise ValueError(f"words {words.tolist()}: ids go from 0 to {self.trie.levels[2] - 2}")
        following = np.empty_like(contexts)
        _advance_all(self.trie.word, self.trie.begin, self.trie.suffix, contexts, words, following)
        return following


class NgramTrace(NamedTuple):
    """The result of scoring each token."""

    log_prob: NDArray[np.float64]  # (tokens,)
    context: NDArray[np.int32]  # (tokens,) the context node
    matched: NDArray[np.int32]  # (tokens,) the longest matching n-gram


def renormalize(table: NgramTable) -> NgramTable:
    """Recompute all back-off weights so that every distribution sums to one.

    beta(h) = (1 - sum of P(w | h)) / (1 - sum of P(w | h')), both over the words listed after h.
    """
    trie = table.trie
    new = NgramTable(trie, table.log_prob, np.zeros(trie.contexts, np.float32), table.codebook)
    trie.for_each_level(partial(_renormalize, new.arrays()))  # a weight needs those of shorter contexts
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
    normalizer = None if table.log_normalizer is None else table.log_normalizer[contexts]
    return NgramTable(smaller, table.log_prob[keep], table.log_backoff[contexts], table.codebook, normalizer)


def validate_table(table: NgramTable, vocab_size: int) -> None:
    """Raise ValueError if a table read from a file is not valid: kernels do not check array bounds."""
    trie, levels = table.trie, table.trie.levels
    _require(
        all(type(level) is int for level in levels)
        and levels[:3] == (0, 1, vocab_size + 1)
        and all(a <= b for a, b in zip(levels[:-1], levels[1:], strict=True)),
        "levels and vocabulary do not match",
    )
    contexts, nodes = trie.contexts, trie.nodes
    for name, array, dtype, shape in (
        ("word", trie.word, "i4", (nodes,)),
        ("begin", trie.begin, "i4", (contexts + 1,)),
        ("suffix", trie.suffix, "i4", (nodes,)),
        ("log_prob", table.log_prob, "u1" if table.quantized else "f4", (nodes,)),
        ("log_backoff", table.log_backoff, "f4", (contexts,)),
        ("codebook", table.codebook, "f4", (trie.order + 1 if table.quantized else 0, 256)),
        ("log_normaliser", table.log_normalizer, "f4", (contexts,)),
    ):
        if array is not None:
            _require(array.dtype.str[1:] == dtype and array.shape == shape, f"{name} has a wrong shape or type")
    _require(
        all(trie.begin[levels[k]] == levels[k + 1] for k in range(trie.order))
        and trie.begin[-1] == nodes
        and bool(np.all(trie.begin[:-1] <= trie.begin[1:])),
        "begin does not divide the orders",
    )
    _require(_is_trie(table.arrays(), vocab_size), "the n-grams are not sorted")
    values = table.codebook if table.quantized else table.log_prob
    _require(bool(np.all(values <= ROUNDING)), "log_prob has values above 0")
    starts = np.flatnonzero(trie.word[levels[1] :] == START) + levels[1]
    _require(all(stored_log_prob(table.arrays(), node) == -np.inf for node in starts), "<s> has a probability")
    _require(bool(np.all(table.log_backoff < np.inf)), "log_backoff has infinite values")
    if table.log_normalizer is not None:
        _require(bool(np.all(np.isfinite(table.log_normalizer))), "log_normaliser has infinite values")


def check_sums(table: NgramTable) -> None:
    """Raise ValueError if the distribution of a context does not sum to one."""
    ranges = split_range(0, table.trie.contexts, min_size=1024)
    for node, total in parallel_map(partial(_find_unnormalized, table.arrays()), ranges):
        _require(node < 0, f"the probabilities after context {node} sum to {total:.4g}, not to one")


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


@kernel
def stored_log_prob(table: Any, node: int) -> float:
    """Return the stored log-probability of an n-gram."""
    if table.codebook.shape[0] == 0:
        return float(table.log_prob[node])
    order = 0
    while table.levels[order + 1] <= node:
        order += 1
    return float(table.codebook[order, int(table.log_prob[node])])


@kernel
def descend(table: Any, node: int, w: int) -> tuple[float, int]:
    """Return the sum of back-off weights and the longest string in the trie that ends `node` continued by `w`.

    Scoring spends its time here, so the search of `find_child` is written out, which saves a third.
    """
    word, begin, backoff = table.word, table.begin, 0.0
    while node != ROOT:
        low = begin[node]
        size = begin[node + 1] - low
        if size > 0:
            while size > 1:
                half = size >> 1
                low = low + half if word[low + half - 1] < w else low
                size -= half
            if word[low] == w:
                return backoff, low
        backoff += table.log_backoff[node]
        node = table.suffix[node]
    return backoff, w + 1


@kernel
def lookup(table: Any, node: int, w: int) -> float:
    """Return log P(w | the string of `node`)."""
    backoff, child = descend(table, node, w)
    return backoff + stored_log_prob(table, child)


@kernel
def _walk(table: Any, ids: Any, offsets: Any, gap: int, trace: Any, sentences: Any) -> None:
    deepest = table.begin.size - 1  # nodes from here on have no children
    start = 1 + START if deepest > 1 else ROOT
    for sentence in range(sentences[0], sentences[1]):
        node = start
        length = offsets[sentence + 1] - offsets[sentence]
        for t in range(length + 1):
            token = offsets[sentence] + sentence + t
            w = ids[offsets[sentence] + t] if t < length else END
            backoff, child = descend(table, node, w)
            trace.log_prob[token] = backoff + stored_log_prob(table, child)
            trace.context[token], trace.matched[token] = node, child
            if gap == 0:
                node = child if child < deepest else table.suffix[child]
            elif deepest > 1:
                late = START if t < gap else ids[offsets[sentence] + t - gap]
                node = advance(table.word, table.begin, table.suffix, node, late)


@kernel
def _distributions(table: Any, contexts: Any, out: Any) -> None:
    chain = np.empty(table.levels.size, np.int64)
    for row in range(contexts.size):
        depth, node = 0, contexts[row]
        while node != ROOT:
            chain[depth] = node
            node = table.suffix[node]
            depth += 1
        for w in range(out.shape[1]):
            out[row, w] = stored_log_prob(table, w + 1)
        for k in range(depth - 1, -1, -1):  # from short contexts to long ones
            node = chain[k]
            for w in range(out.shape[1]):
                out[row, w] += table.log_backoff[node]
            for child in range(table.begin[node], table.begin[node + 1]):
                out[row, table.word[child]] = stored_log_prob(table, child)


@kernel
def _advance_all(word: Any, begin: Any, suffix: Any, contexts: Any, words: Any, following: Any) -> None:
    for row in range(contexts.size):
        following[row] = advance(word, begin, suffix, contexts[row], words[row])


@kernel
def _renormalize(table: Any, contexts: Any) -> None:
    for node in range(contexts[0], contexts[1]):
        if table.begin[node] == table.begin[node + 1]:
            continue
        listed = covered = 0.0
        for child in range(table.begin[node], table.begin[node + 1]):
            listed += np.exp(stored_log_prob(table, child))
            covered += np.exp(lookup(table, table.suffix[node], table.word[child]))
        left, free = 1.0 - listed, 1.0 - covered
        table.log_backoff[node] = np.log(left / free) if left > 0.0 and free > 1e-9 else -np.inf


@kernel
def _find_unnormalized(table: Any, contexts: Any) -> tuple[int, float]:
    """Return the first context of a range whose distribution does not sum to one, and the sum; -1 without one.

    The distribution of a shorter context sums to one, so only the listed words need to be summed.
    """
    for node in range(contexts[0], contexts[1]):
        if node == ROOT:
            total = 0.0
            for child in range(1, table.levels[2]):
                total += np.exp(stored_log_prob(table, child))
        elif table.begin[node] == table.begin[node + 1]:
            total = np.exp(float(table.log_backoff[node]))
        else:
            listed = covered = 0.0
            for child in range(table.begin[node], table.begin[node + 1]):
                listed += np.exp(stored_log_prob(table, child))
                covered += np.exp(lookup(table, table.suffix[node], table.word[child]))
            total = listed
            if covered < 1.0 and table.log_backoff[node] > -np.inf:
                total += np.exp(table.log_backoff[node]) * (1.0 - covered)
        if not abs(total - 1.0) < MAX_DEVIATION:
            return node, total
    return -1, 1.0


@kernel
def _is_trie(table: Any, vocab_size: int) -> bool:
    """Return whether children are sorted by their words and every suffix is a shorter string."""
    word, begin = table.word, table.begin
    for context in range(begin.size - 1):
        for child in range(begin[context], begin[context + 1]):
            is_sorted = child == begin[context] or word[child] > word[child - 1]
            if not 0 <= word[child] < vocab_size or not is_sorted:
                return False
    for order in range(1, table.levels.size - 1):
        for node in range(table.levels[order], table.levels[order + 1]):
            if not 0 <= table.suffix[node] < table.levels[order]:
                return False
    return True
