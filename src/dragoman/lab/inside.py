"""The inside algorithm: the exact probability of a sentence under one language of a synchronous grammar.

The language's rules are compiled to a weighted context-free grammar. Rules of one parent with the same right-hand side
become one rule with the sum of their probabilities. Right-hand sides with more than two symbols are binarised from the
left, and rules share equal prefixes. Chains of unary rules are summed in advance (the unary closure).

The inside probability of a symbol over a span is the sum, over all trees that derive the span's words from the symbol,
of the product of their rules' probabilities. The chart is filled column by column: for each end position, from the
last start to the first. A complete item combines with adjacent items on its left and adds to the longer span, so only
items that the words support are ever visited. Sums are in log space, so long sentences do not underflow.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.core.kernels import kernel
from dragoman.core.threads import parallel_map, split_range
from dragoman.data.corpus import Corpus
from dragoman.data.vocabulary import SPECIALS, UNK, Vocab
from dragoman.lab.grammar import Grammar, OpenClass, Terminal

MIN_REMAINDER = 1e-6  # below this, 1 - sum has lost its digits, and the remaining probabilities are summed instead
INITIAL_ITEMS = 1024  # capacity of the item arrays, which grow as needed


@dataclass(frozen=True, slots=True)
class Nonterminal:
    """A symbol of the synchronous grammar."""

    name: str


@dataclass(frozen=True, slots=True)
class WordSymbol:
    """A word that stands beside other symbols in a right-hand side."""

    spelling: str


@dataclass(frozen=True, slots=True)
class RulePrefix:
    """The first symbols of a right-hand side: two symbol ids, of which the left may be a prefix again."""

    left: int
    right: int


GrammarSymbol = Nonterminal | WordSymbol | RulePrefix
RightSides = dict[tuple[int, tuple[int, ...]], float]  # probability by parent and right-hand side, as symbol ids
SymbolIds = defaultdict[GrammarSymbol, int]  # assigned on first access
Probs = dict[int, float]  # probability by symbol id


class Entries(NamedTuple):
    """Probabilities of symbols, each in a row: a word that they derive, or a symbol to which unary rules lead."""

    row: NDArray[np.int64]  # (entries,)
    symbol: NDArray[np.int32]  # (entries,)
    prob: NDArray[np.float64]  # (entries,)


class SparseRows(NamedTuple):
    """Rows of (symbol, log-probability): row r is `begin[r]:begin[r + 1]`."""

    begin: NDArray[np.int64]  # (rows + 1,)
    symbol: NDArray[np.int32]  # (entries,)
    log_prob: NDArray[np.float64]  # (entries,)


class BinaryRules(NamedTuple):
    """Rules `parent -> left right`, sorted by right symbol: those of `right` are `begin[right]:begin[right + 1]`."""

    begin: NDArray[np.int64]  # (symbols + 1,)
    left: NDArray[np.int32]  # (rules,)
    parent: NDArray[np.int32]  # (rules,)
    log_prob: NDArray[np.float64]  # (rules,)


@dataclass(frozen=True, eq=False)
class MonolingualGrammar:
    """A compiled grammar of one language, for all vocabularies."""

    symbols: tuple[GrammarSymbol, ...]  # by id
    start: int
    words: tuple[str, ...]  # of the rules, without open classes
    lexical_rules: Entries  # the symbols that can be rewritten to each of `words`
    open_classes: tuple[tuple[OpenClass, Entries], ...]  # with the symbols that can be rewritten to their words
    binary_rules: BinaryRules
    unary_closure: SparseRows  # for each symbol, the symbols that unary rules rewrite to it

    @classmethod
    def project(cls, grammar: Grammar, language: int) -> MonolingualGrammar:
        """Compile one language of a synchronous grammar.

        Raises:
            ValueError: if a right-hand side is empty, or unary rules form a cycle.
        """
        ids: SymbolIds = defaultdict(lambda: len(ids))
        start = ids[Nonterminal(grammar.start)]
        right_sides = _right_sides(grammar, language, ids)
        open_classes: dict[int, tuple[OpenClass, Probs]] = {}  # each class once, with all symbols that stand for it
        for symbol, generated in grammar.open_classes.items():
            open_classes.setdefault(id(generated), (generated, {}))[1][ids[Nonterminal(symbol)]] = 1.0
        unary = {key: prob for key, prob in right_sides.items() if len(key[1]) == 1}
        binary = _binarize({key: prob for key, prob in right_sides.items() if len(key[1]) > 1}, ids)
        symbols = tuple(ids)
        ancestors = _unary_ancestors(unary, symbols)
        words = _word_probs(unary, binary, symbols)
        return cls(
            symbols,
            start,
            tuple(words),
            _entries(_close(probs, ancestors) for probs in words.values()),
            tuple((generated, _entries([_close(probs, ancestors)])) for generated, probs in open_classes.values()),
            _binary_rules(binary, len(symbols)),
            _sparse_rows(
                _entries(ancestors.get(symbol, {}) for symbol in range(len(symbols))), len(symbols), len(symbols)
            ),
        )

    def lexicon(self, known: Sequence[str], first_row: int, *, with_unknown: bool) -> SparseRows:
        """Return the symbols of the known words, in rows from `first_row` on.

        If `with_unknown`, the row before them has the total probability of all other words; otherwise it is empty.
        """
        row_of = {word: row for row, word in enumerate(known, first_row)}
        word_rows = np.array([row_of.get(word, first_row - 1) for word in self.words], np.int64)
        parts = [self.lexical_rules._replace(row=word_rows[self.lexical_rules.row])]
        for words, entries in self.open_classes:
            probs = np.fromiter(map(words.prob, known), np.float64, len(known))
            rows, probs = first_row + np.flatnonzero(probs > 0), probs[probs > 0]
            if with_unknown:
                remainder = 1.0 - math.fsum(probs)
                if remainder <= MIN_REMAINDER:
                    remainder = math.fsum(words.prob(word) for word in words.words() if word not in row_of)
                rows, probs = np.append(rows, first_row - 1), np.append(probs, remainder)
            all_symbols, all_probs = np.tile(entries.symbol, len(rows)), np.outer(probs, entries.prob).ravel()
            parts.append(Entries(np.repeat(rows, len(entries.symbol)), all_symbols, all_probs))
        row, symbol, prob = map(np.concatenate, zip(*parts, strict=True))
        present = row >= (first_row - 1 if with_unknown else first_row)
        entries = Entries(row[present], symbol[present], prob[present])
        return _sparse_rows(entries, first_row + len(known), len(self.symbols))


# -- compilation ------------------------------------------------------------------------------------------------------


def _right_sides(grammar: Grammar, language: int, ids: SymbolIds) -> RightSides:
    """Return the probability of each parent's right-hand sides, with the probabilities of equal ones added up."""
    probs: RightSides = defaultdict(float)
    for symbol, rules in grammar.rules.items():
        parent = ids[Nonterminal(symbol)]
        for rule in rules:
            for side in rule.right_sides[language]:
                if not side.items:
                    raise ValueError(f"a rule of {symbol} has an empty right-hand side")
                symbols = (
                    WordSymbol(item.word) if isinstance(item, Terminal) else Nonterminal(rule.children[item])
                    for item in side.items
                )
                probs[parent, tuple([ids[symbol] for symbol in symbols])] += rule.prob * side.prob
    return {key: prob for key, prob in probs.items() if prob > 0}


def _binarize(right_sides: RightSides, ids: SymbolIds) -> dict[tuple[int, int, int], float]:
    """Return binary rules (parent, left, right); the last rule of a right-hand side has its probability."""
    rules: dict[tuple[int, int, int], float] = {}
    for (parent, (left, *middle, last)), prob in right_sides.items():
        for symbol in middle:
            prefix = ids[RulePrefix(left, symbol)]
            rules[prefix, left, symbol] = 1.0
            left = prefix
        rules[parent, left, last] = prob
    return rules


def _unary_ancestors(unary: RightSides, symbols: Sequence[GrammarSymbol]) -> dict[int, Probs]:
    """Return, for each symbol, the total probability of all chains of unary rules from each ancestor to it."""
    parents: dict[int, Probs] = defaultdict(dict)
    for (parent, (child,)), prob in unary.items():
        if isinstance(symbols[child], Nonterminal):
            parents[child][parent] = prob
    try:
        order = list(TopologicalSorter(parents).static_order())  # parents before their children
    except CycleError as error:
        cycle = (symbols[index] for index in reversed(error.args[1]))
        names = " -> ".join(symbol.name for symbol in cycle if isinstance(symbol, Nonterminal))
        raise ValueError(f"a cycle of unary rules: {names}") from None
    ancestors: dict[int, Probs] = {}
    for child in order:
        if child in parents:
            ancestors[child] = _close(parents[child], ancestors)
    return ancestors


def _close(probs: Probs, ancestors: Mapping[int, Probs]) -> Probs:
    """Add the ancestors of each symbol."""
    total: dict[int, float] = defaultdict(float)
    for symbol, prob in probs.items():
        total[symbol] += prob
        for ancestor, chain_prob in ancestors.get(symbol, {}).items():
            total[ancestor] += prob * chain_prob
    return total


def _word_probs(
    unary: RightSides, binary: Iterable[tuple[int, int, int]], symbols: Sequence[GrammarSymbol]
) -> dict[str, Probs]:
    """Return the symbols of each word: parents by unary rules, and the word itself in binary rules."""
    probs: dict[str, Probs] = defaultdict(dict)
    for (parent, (child,)), prob in unary.items():
        symbol = symbols[child]
        if isinstance(symbol, WordSymbol):
            probs[symbol.spelling][parent] = prob
    for symbol, index in ((symbols[index], index) for rule in binary for index in rule[1:]):
        if isinstance(symbol, WordSymbol):
            probs[symbol.spelling][index] = 1.0
    return probs


def _entries(rows: Iterable[Probs]) -> Entries:
    flat = [(row, symbol, prob) for row, probs in enumerate(rows) for symbol, prob in probs.items()]
    row, symbol, prob = np.array(flat, np.float64).reshape(-1, 3).T
    return Entries(row.astype(np.int64), symbol.astype(np.int32), prob)


def _binary_rules(rules: Mapping[tuple[int, int, int], float], symbols: int) -> BinaryRules:
    parent, left, right = np.array(list(rules), np.int32).reshape(-1, 3).T
    order = np.lexsort((left, right))
    begin = np.searchsorted(right[order], np.arange(symbols + 1))
    log_prob = np.log(np.fromiter(rules.values(), np.float64, len(rules)))
    return BinaryRules(begin, left[order], parent[order], log_prob[order])


def _sparse_rows(entries: Entries, rows: int, symbols: int) -> SparseRows:
    """Sort entries by row and add up the probabilities of equal symbols."""
    keys, index = np.unique(entries.row * symbols + entries.symbol, return_inverse=True)
    total = np.bincount(index, entries.prob, minlength=len(keys))
    keys, total = keys[total > 0], total[total > 0]
    begin = np.searchsorted(keys, np.arange(rows + 1) * symbols)
    return SparseRows(begin, (keys % symbols).astype(np.int32), np.log(total))


# -- probabilities of sentences ---------------------------------------------------------------------------------------


def inside_log_probs(grammar: MonolingualGrammar, corpus: Corpus) -> NDArray[np.float64]:
    """Return log P of each sentence, where `<unk>` stands for any word outside the corpus' vocabulary.

    This is the total probability of all sentences that have the same ids in this vocabulary.
    """
    lexicon = grammar.lexicon(corpus.vocab.tokens[UNK + 1 :], UNK + 1, with_unknown=True)
    return _log_probs(grammar, lexicon, corpus.ids, corpus.offsets)


def inside_log_probs_with_spelling(grammar: MonolingualGrammar, sentences: Iterable[str]) -> NDArray[np.float64]:
    """Return log P of each sentence with all words spelled out, -inf if the grammar lacks one of them."""
    corpus = Corpus.from_sentences(sentences, Vocab(SPECIALS))  # all words are unknown and have a spelling
    tokens = np.zeros(corpus.num_words, np.int32)
    tokens[corpus.unknown_positions] = 1 + corpus.unknown_spelling_ids
    return _log_probs(grammar, grammar.lexicon(corpus.spellings, 1, with_unknown=False), tokens, corpus.offsets)


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
        possible[sentence - first] = np.all(lexicon.begin[words] < lexicon.begin[words + 1])
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
def _inside(
    lexicon: Any, rules: Any, closure: Any, goal: int, words: Any, column: Any, latest: Any, items: Any, zero: int
) -> tuple[float, int, Any]:
    """Return log P of one sentence, the first item number of the next one, and the items, which may have grown."""
    count = zero
    total = -np.inf
    for end in range(1, words.size + 1):
        for start in range(end - 1, -1, -1):
            if start == end - 1:
                for entry in range(lexicon.begin[words[start]], lexicon.begin[words[start] + 1]):
                    _add(column, start, lexicon.symbol[entry], lexicon.log_prob[entry])
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
def _add_ancestors(closure: Any, start: int, column: Any) -> None:
    """Add the unary ancestors of the symbols that binary rules derived, by the probabilities before this step."""
    count = column.size[start]
    previous = np.empty(count)
    for i in range(count):
        previous[i] = column.log_probs[start, column.symbols[start, i]]
    for i in range(count):
        symbol = column.symbols[start, i]
        for entry in range(closure.begin[symbol], closure.begin[symbol + 1]):
            _add(column, start, closure.symbol[entry], previous[i] + closure.log_prob[entry])


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
    return np.append(array, array)
