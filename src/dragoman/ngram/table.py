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

from dragoman.core.kernels import inline_kernel, kernel
from dragoman.data.vocabulary import START
from dragoman.ngram.estimate import BackoffEstimate
from dragoman.ngram.trie import ROOT, Trie, Words, advance, node_type, word_type

NO_CODEBOOK = np.zeros((0, 256), np.float32)  # the codebook of a table that is not quantised
MAX_DEVIATION = 1e-2  # of the sum of a distribution from one: probabilities are stored in 32 or 8 bits
ROUNDING = 1e-4  # how far a stored log-probability may be above 0


class TableArrays(NamedTuple):
    """The arrays of a table, for kernels that read them."""

    levels: NDArray[np.int64]
    word: Words
    begin: NDArray[np.signedinteger]
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
        """Return views that cannot be written to, so that numba compiles kernels for one type of array."""
        trie, levels = self.trie, np.array(self.trie.levels, np.int64)
        arrays = TableArrays(levels, trie.word, trie.begin, self.log_prob, self.log_backoff, self.codebook)
        return TableArrays(*map(_read_only, arrays))

    def distributions(self, contexts: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return log P(. | h) of each context node.  # (rows, |V|)"""
        out = np.empty((len(contexts), self.trie.levels[2] - 1))
        _distributions(self.arrays(), self.trie.suffix, contexts, out)
        return out

    def advance(self, contexts: NDArray[np.int64], words: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the context nodes after these words."""
        if len(words) and not (words.min() >= 0 and words.max() < self.trie.levels[2] - 1):
            raise ValueError(f"words {words.tolist()}: ids go from 0 to {self.trie.levels[2] - 2}")
        following = np.empty_like(contexts)
        _advance_all(self.trie.word, self.trie.begin, self.trie.suffix, contexts, words, following)
        return following


def _read_only(array: NDArray[Any]) -> NDArray[Any]:
    view = array.view()
    view.flags.writeable = False
    return view


def renormalize(table: NgramTable) -> NgramTable:
    """Recompute all back-off weights so that every distribution sums to one.

    beta(h) = (1 - sum of P(w | h)) / (1 - sum of P(w | h')), both over the words listed after h.
    """
    trie = table.trie
    new = NgramTable(trie, table.log_prob, np.zeros(trie.contexts, np.float32), table.codebook)
    # A weight needs those of shorter contexts.
    trie.for_each_level(partial(_renormalize, new.arrays(), trie.suffix, new.log_backoff))
    return new


def keep_nodes(table: NgramTable, keep: NDArray[np.bool_]) -> NgramTable:
    """Return a table of the nodes in `keep`, which must include the context of every node in it."""
    trie = table.trie
    dtype = node_type(int(np.count_nonzero(keep)))
    before = np.concatenate([[0], np.cumsum(keep)]).astype(dtype)  # number of kept nodes before each node
    levels = [int(before[level]) for level in trie.levels]
    while levels[-1] == levels[-2]:  # an order without n-grams
        levels.pop()
    contexts = np.flatnonzero(keep[: trie.contexts])[: levels[-2]]
    begin = np.append(before[trie.begin[contexts]], levels[-1]).astype(dtype)
    smaller = Trie(tuple(levels), trie.word[keep], begin)
    normalizer = None if table.log_normalizer is None else table.log_normalizer[contexts]
    return NgramTable(smaller, table.log_prob[keep], table.log_backoff[contexts], table.codebook, normalizer)


def validate_layout(table: NgramTable, vocab_size: int) -> None:
    """Raise ValueError if the arrays of a table read from a file do not fit together. Reads only the unigrams."""
    trie, levels = table.trie, table.trie.levels
    _require(
        all(type(level) is int for level in levels)
        and levels[:3] == (0, 1, vocab_size + 1)
        and all(a <= b for a, b in zip(levels[:-1], levels[1:], strict=True)),
        "levels and vocabulary do not match",
    )
    contexts, nodes = trie.contexts, trie.nodes
    for name, array, dtype, shape in (
        ("word", trie.word, word_type(vocab_size).str[1:], (nodes,)),
        ("begin", trie.begin, node_type(nodes).str[1:], (contexts + 1,)),
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
        and _is_ascending(trie.begin[: levels[2] + 1]),
        "begin does not divide the orders",
    )


def validate_table(table: NgramTable, vocab_size: int) -> None:
    """Raise ValueError if a table read from a file is not valid: most kernels do not check array bounds."""
    validate_layout(table, vocab_size)
    trie, levels = table.trie, table.trie.levels
    _require(_is_ascending(trie.begin), "begin does not divide the orders")
    _require(_is_sorted(_read_only(trie.word), _read_only(trie.begin), vocab_size), "the n-grams are not sorted")
    values = table.codebook if table.quantized else table.log_prob
    _require(bool(np.all(values <= ROUNDING)), "log_prob has values above 0")
    starts = np.flatnonzero(trie.word[levels[1] :] == START) + levels[1]
    _require(all(stored_log_prob(table.arrays(), node) == -np.inf for node in starts), "<s> has a probability")
    _require(bool(np.all(table.log_backoff < np.inf)), "log_backoff has infinite values")
    if table.log_normalizer is not None:
        _require(bool(np.all(np.isfinite(table.log_normalizer))), "log_normaliser has infinite values")


def check_sums(table: NgramTable) -> None:
    """Raise ValueError if the distribution of a context does not sum to one."""
    table.trie.require_valid()
    trie, total = table.trie, float(np.exp(table.values(1), dtype=float).sum())
    _require(abs(total - 1.0) < MAX_DEVIATION, f"the probabilities of the unigrams sum to {total:.4g}, not to one")
    check = partial(_find_unnormalized, table.arrays(), np.zeros(trie.contexts, trie.begin.dtype))
    for node, total in trie.for_each_level(check):
        _require(node < 0, f"the probabilities after context {node} sum to {total:.4g}, not to one")


def _is_ascending(begin: NDArray[np.signedinteger]) -> bool:
    return bool(np.all(begin[:-1] <= begin[1:]))


def _require(condition: bool, problem: str) -> None:
    if not condition:
        raise ValueError(problem)


@inline_kernel
def value_at(log_prob: Any, codebook: Any, order: int, node: int) -> float:
    """Return the stored log-probability of an n-gram of this order."""
    if codebook.shape[0] == 0:
        return float(log_prob[node])
    return float(codebook[order, int(log_prob[node])])


@inline_kernel
def stored_log_prob(table: Any, node: int) -> float:
    """Return the stored log-probability of an n-gram."""
    order = 0
    if table.codebook.shape[0] > 0:
        while table.levels[order + 1] <= node:
            order += 1
    return value_at(table.log_prob, table.codebook, order, node)


@inline_kernel
def descend(table: Any, suffix: Any, node: int, w: int) -> tuple[float, int]:
    """Return the sum of back-off weights and the longest string in the trie that ends `node` continued by `w`.

    The checks of sums spend their time here, so the search of `find_child` is written out, which saves two thirds.
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
        node = suffix[node]
    return backoff, w + 1


@inline_kernel
def lookup(table: Any, suffix: Any, node: int, w: int) -> float:
    """Return log P(w | the string of `node`)."""
    backoff, child = descend(table, suffix, node, w)
    return backoff + stored_log_prob(table, child)


@kernel
def _distributions(table: Any, suffix: Any, contexts: Any, out: Any) -> None:
    chain = np.empty(table.levels.size, np.int64)
    for row in range(contexts.size):
        depth, node = 0, contexts[row]
        while node != ROOT:
            chain[depth] = node
            node = suffix[node]
            depth += 1
        for w in range(out.shape[1]):
            out[row, w] = value_at(table.log_prob, table.codebook, 1, w + 1)
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
def _renormalize(table: Any, suffix: Any, log_backoff: Any, contexts: Any) -> None:
    for node in range(contexts[0], contexts[1]):
        if table.begin[node] == table.begin[node + 1]:
            continue
        listed = covered = 0.0
        for child in range(table.begin[node], table.begin[node + 1]):
            listed += np.exp(stored_log_prob(table, child))
            covered += np.exp(lookup(table, suffix, suffix[node], table.word[child]))
        left, free = 1.0 - listed, 1.0 - covered
        log_backoff[node] = np.log(left / free) if left > 0.0 and free > 1e-9 else -np.inf


@kernel
def _find_unnormalized(table: Any, suffix: Any, contexts: Any) -> tuple[int, float]:
    """Return the first context of a range whose distribution does not sum to one, and the sum; -1 without one.

    The distribution of a shorter context sums to one, so only the listed words need to be summed. The suffixes of the
    children that are contexts themselves are found on the way.
    """
    for node in range(contexts[0], contexts[1]):
        listed = covered = 0.0
        for child in range(table.begin[node], table.begin[node + 1]):
            listed += np.exp(stored_log_prob(table, child))
            backoff, shorter = descend(table, suffix, suffix[node], table.word[child])
            covered += np.exp(backoff + stored_log_prob(table, shorter))
            if child < suffix.size:
                suffix[child] = shorter
        total = listed
        if table.begin[node] == table.begin[node + 1]:
            total = np.exp(float(table.log_backoff[node]))
        elif covered < 1.0 and table.log_backoff[node] > -np.inf:
            total += np.exp(table.log_backoff[node]) * (1.0 - covered)
        if not abs(total - 1.0) < MAX_DEVIATION:
            return node, total
    return -1, 1.0


@kernel
def _is_sorted(word: Any, begin: Any, vocab_size: int) -> bool:
    """Return whether the words are those of the vocabulary and children are sorted by them."""
    for context in range(begin.size - 1):
        for child in range(begin[context], begin[context + 1]):
            is_sorted = child == begin[context] or word[child] > word[child - 1]
            if not 0 <= word[child] < vocab_size or not is_sorted:
                return False
    return True
