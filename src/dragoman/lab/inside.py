"""The inside algorithm: the exact probability of a sentence under a monolingual grammar.

The inside probability of a symbol over a span is the sum, over all trees that derive the span's words from the symbol,
of the product of their rules' probabilities. The chart is filled column by column: for each end position, from the
last start to the first. A complete item combines with adjacent items on its left and adds to the longer span, so only
items that the words support are ever visited. Sums are in log space, so long sentences do not underflow.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import SPECIALS, Vocab
from dragoman.lab.monolingual import MonolingualGrammar, SparseRows

INITIAL_ITEMS = 1024  # capacity of the item arrays, which grow as needed


def inside_log_probs(grammar: MonolingualGrammar, corpus: Corpus) -> NDArray[np.float64]:
    """Return log P of each sentence, where `<unk>` stands for any word outside the corpus' vocabulary.

    This is the total probability of all sentences that have the same ids in this vocabulary.
    """
    return _log_probs(grammar, grammar.lexicon_for_vocabulary(corpus.vocab), corpus.ids, corpus.offsets)


def inside_log_probs_with_spelling(grammar: MonolingualGrammar, sentences: Iterable[str]) -> NDArray[np.float64]:
    """Return log P of each sentence with all words spelled out, -inf if the grammar lacks one of them."""
    corpus = Corpus.from_sentences(sentences, Vocab(SPECIALS))  # all words are unknown and have a spelling
    tokens = np.full(corpus.num_words, len(corpus.spellings), np.int32)
    tokens[corpus.unknown_positions] = corpus.unknown_spelling_ids
    return _log_probs(grammar, grammar.lexicon_for_words(corpus.spellings), tokens, corpus.offsets)


def _log_probs(
    grammar: MonolingualGrammar, lexicon: SparseRows, tokens: NDArray[np.int32], offsets: NDArray[np.int64]
) -> NDArray[np.float64]:
    log_probs = np.full(len(offsets) - 1, -np.inf)
    rules, closure, start = grammar.binary_rules, grammar.unary_closure, grammar.start

    def work(span: tuple[int, int]) -> None:
        _inside_all(lexicon, rules, closure, start, tokens, offsets, *span, log_probs)

    parallel_map(work, split_range(0, len(log_probs), min_size=64))
    return log_probs


# -- kernels ----------------------------------------------------------------------------------------------------------


class _ChartColumn(NamedTuple):
    """Items that end at one position, by their start; empty between columns."""

    log_probs: NDArray[np.float64]  # (starts, symbols) log inside probabilities, -inf for absent symbols
    symbols: NDArray[np.int32]  # (starts, symbols) the symbols present, in order of insertion
    size: NDArray[np.int64]  # (starts,) how many symbols are present


class _ChartItems(NamedTuple):
    """All complete items of a sentence; items of the same symbol and end position form a linked list.

    Item numbers increase from sentence to sentence, so links of earlier sentences, which are all smaller than the first
    number of this one, need not be cleared.
    """

    start: NDArray[np.int64]
    log_prob: NDArray[np.float64]
    previous: NDArray[np.int64]  # number of the previous item of the same symbol and end


@kernel
def _inside_all(
    lexicon: Any, rules: Any, closure: Any, goal: int, tokens: Any, offsets: Any, first: int, last: int, out: Any
) -> None:
    """Compute log P of the sentences first..last; sentences with impossible words are left unchanged."""
    possible = np.zeros(last - first, np.bool_)
    longest = 0
    for sentence in range(first, last):
        words = tokens[offsets[sentence] : offsets[sentence + 1]]
        possible[sentence - first] = _all_in_lexicon(lexicon, words)
        if possible[sentence - first]:
            longest = max(longest, words.size)
    symbols = rules.begin.size - 1
    column = _ChartColumn(
        np.full((longest, symbols), -np.inf), np.empty((longest, symbols), np.int32), np.zeros(longest, np.int64)
    )
    latest = np.full((longest + 1, symbols), -1, np.int64)  # (ends, symbols) the last item inserted
    items = _ChartItems(np.empty(INITIAL_ITEMS, np.int64), np.empty(INITIAL_ITEMS), np.empty(INITIAL_ITEMS, np.int64))
    count = 0
    for sentence in range(first, last):
        if possible[sentence - first]:
            words = tokens[offsets[sentence] : offsets[sentence + 1]]
            out[sentence], count, items = _inside(lexicon, rules, closure, goal, words, column, latest, items, count)


@kernel
def _all_in_lexicon(lexicon: Any, words: Any) -> bool:
    for word in words:
        if lexicon.begin[word] == lexicon.begin[word + 1]:
            return False
    return True


@kernel
def _inside(
    lexicon: Any, rules: Any, closure: Any, goal: int, words: Any, column: Any, latest: Any, items: Any, zero: int
) -> tuple[float, int, Any]:
    """Return log P of one sentence, the first item number of the next one, and the items, which may have grown."""
    count = zero
    total = -np.inf
    for end in range(1, words.size + 1):
        for start in range(end - 1, -1, -1):
            if start == end - 1:
                _add_word(lexicon, words[start], start, column)
            else:
                _add_ancestors(closure, start, column)
            if end == words.size and start == 0:
                total = column.log_probs[0, goal]
            while count - zero + column.size[start] > items.start.size:
                items = _ChartItems(_doubled(items.start), _doubled(items.log_prob), _doubled(items.previous))
            for i in range(column.size[start]):
                symbol = column.symbols[start, i]
                log_prob = column.log_probs[start, symbol]
                column.log_probs[start, symbol] = -np.inf
                new = count - zero
                items.start[new], items.log_prob[new], items.previous[new] = start, log_prob, latest[end, symbol]
                latest[end, symbol] = count
                count += 1
                _combine(rules, symbol, start, log_prob, column, latest, items, zero)
            column.size[start] = 0
    return total, count, items


@kernel
def _add_word(lexicon: Any, word: int, start: int, column: Any) -> None:
    """Add the symbols of a word."""
    for entry in range(lexicon.begin[word], lexicon.begin[word + 1]):
        _add(column, start, lexicon.symbol[entry], lexicon.log_prob[entry])


@kernel
def _add_ancestors(closure: Any, start: int, column: Any) -> None:
    """Add the unary ancestors of the symbols that binary rules derived, by the probabilities before this step."""
    count = column.size[start]
    before = np.empty(count)
    for i in range(count):
        before[i] = column.log_probs[start, column.symbols[start, i]]
    for i in range(count):
        symbol = column.symbols[start, i]
        for entry in range(closure.begin[symbol], closure.begin[symbol + 1]):
            _add(column, start, closure.symbol[entry], before[i] + closure.log_prob[entry])


@kernel
def _combine(
    rules: Any, symbol: int, start: int, log_prob: float, column: Any, latest: Any, items: Any, zero: int
) -> None:
    """Combine a complete item with all items on its left that end where it starts."""
    for rule in range(rules.begin[symbol], rules.begin[symbol + 1]):
        number = latest[start, rules.left[rule]]
        while number >= zero:
            item = number - zero
            _add(column, items.start[item], rules.parent[rule], log_prob + rules.log_prob[rule] + items.log_prob[item])
            number = items.previous[item]


@kernel
def _add(column: Any, start: int, symbol: int, log_prob: float) -> None:
    """Add probability to a symbol."""
    current = column.log_probs[start, symbol]
    if current == -np.inf:
        column.symbols[start, column.size[start]] = symbol
        column.size[start] += 1
        column.log_probs[start, symbol] = log_prob
    else:
        more, less = max(current, log_prob), min(current, log_prob)
        column.log_probs[start, symbol] = more + np.log1p(np.exp(less - more))


@kernel
def _doubled(array: Any) -> Any:
    larger = np.empty(2 * array.size, array.dtype)
    larger[: array.size] = array
    return larger
