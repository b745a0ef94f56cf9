"""One language of a synchronous grammar, as a weighted context-free grammar compiled for the inside algorithm.

Rules of one parent with the same right-hand side become one rule with the sum of their probabilities. Right-hand sides
with more than two symbols are binarised from the left, and rules share equal prefixes. Chains of unary rules are
summed in advance (the unary closure).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dragoman.data.vocabulary import UNK, Vocab
from dragoman.lab.grammar import Grammar, Item, OpenClass, Rule, Terminal

NO_ROW = -1  # the row of words outside the sentences at hand
MIN_REMAINDER = 1e-6  # below this, 1 - sum has lost its digits, and the remaining probabilities are summed instead


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
RightSides = Mapping[tuple[int, tuple[int, ...]], float]  # probability by parent and right-hand side, as symbol ids
Probs = dict[int, float]  # probability by symbol id


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
class LexicalRules:
    """The i-th rule rewrites `symbol[i]` to the word `word[i]`, directly or by a chain of unary rules."""

    word: NDArray[np.int64]
    symbol: NDArray[np.int32]
    prob: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class OpenClassRules:
    """An open class and the symbols that can be rewritten to its words."""

    words: OpenClass
    symbol: NDArray[np.int32]
    prob: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MonolingualGrammar:
    """A compiled grammar of one language, for all vocabularies."""

    symbols: tuple[GrammarSymbol, ...]  # by id
    start: int
    words: tuple[str, ...]  # of the rules, without open classes
    lexical_rules: LexicalRules  # of `words`
    open_class_rules: tuple[OpenClassRules, ...]
    binary_rules: BinaryRules
    unary_closure: SparseRows  # for each symbol, the symbols that unary rules rewrite to it

    @classmethod
    def project(cls, grammar: Grammar, language: int) -> MonolingualGrammar:
        """Compile one language of a synchronous grammar.

        Raises:
            ValueError: if a right-hand side is empty, or unary rules form a cycle.
        """
        ids = _SymbolIds()
        start = ids[Nonterminal(grammar.start)]
        right_sides = _right_sides(grammar, language, ids)
        open_classes = _open_classes(grammar, ids)
        unary = {key: prob for key, prob in right_sides.items() if len(key[1]) == 1}
        binary = _binarize({key: prob for key, prob in right_sides.items() if len(key[1]) > 1}, ids)
        symbols = tuple(ids)
        ancestors = _unary_ancestors(unary, symbols)
        words, lexical_rules = _lexical_rules(unary, binary, ancestors, symbols)
        return cls(
            symbols,
            start,
            words,
            lexical_rules,
            tuple(OpenClassRules(words, *_columns(_close(probs, ancestors))) for words, probs in open_classes),
            _binary_rules(binary, len(symbols)),
            _unary_closure(ancestors, len(symbols)),
        )

    def lexicon_for_vocabulary(self, vocab: Vocab) -> SparseRows:
        """Return the symbols of each vocabulary entry; `<unk>` has the total probability of all other words."""
        known = vocab.tokens[UNK + 1 :]
        return self._lexicon(vocab.ids(self.words), known, np.arange(UNK + 1, len(vocab)), len(vocab), UNK)

    def lexicon_for_words(self, words: Sequence[str]) -> SparseRows:
        """Return the symbols of each word, and a last, empty row for words that the grammar does not have."""
        row_of = {word: row for row, word in enumerate(words)}
        rows = np.array([row_of.get(word, NO_ROW) for word in self.words], np.int64)
        return self._lexicon(rows, words, np.arange(len(words)), len(words) + 1, NO_ROW)

    def _lexicon(
        self, word_rows: NDArray[np.integer], known: Sequence[str], known_rows: NDArray[np.int64], size: int, rest: int
    ) -> SparseRows:
        """Build the lexicon.

        Args:
            word_rows: the row of each word of the rules.
            known: words that may belong to open classes, with their rows `known_rows`.
            size: number of rows.
            rest: the row of all other words of open classes, or NO_ROW.
        """
        rows, symbols, probs = (
            [word_rows[self.lexical_rules.word]],
            [self.lexical_rules.symbol],
            [self.lexical_rules.prob],
        )
        for rules in self.open_class_rules:
            known_probs = np.fromiter(map(rules.words.prob, known), np.float64, len(known))
            class_rows, class_probs = known_rows[known_probs > 0], known_probs[known_probs > 0]
            if rest != NO_ROW:
                remainder = _remainder(rules.words, class_probs, known)
                class_rows, class_probs = np.append(class_rows, rest), np.append(class_probs, remainder)
            rows.append(np.repeat(class_rows, len(rules.symbol)))
            symbols.append(np.tile(rules.symbol, len(class_rows)))
            probs.append(np.outer(class_probs, rules.prob).ravel())
        row, symbol, prob = np.concatenate(rows), np.concatenate(symbols), np.concatenate(probs)
        present = row != NO_ROW
        return _sparse_rows(row[present], symbol[present], prob[present], size, len(self.symbols))


class _SymbolIds(dict[GrammarSymbol, int]):
    """Ids of symbols, assigned on first access."""

    def __missing__(self, symbol: GrammarSymbol) -> int:
        self[symbol] = len(self)
        return self[symbol]


# -- compilation ------------------------------------------------------------------------------------------------------


def _right_sides(grammar: Grammar, language: int, ids: _SymbolIds) -> RightSides:
    """Return all right-hand sides of all parents, with the probabilities of equal ones added up."""
    probs: dict[tuple[int, tuple[int, ...]], float] = defaultdict(float)
    for symbol, rules in grammar.rules.items():
        parent = ids[Nonterminal(symbol)]
        for rule in rules:
            for side in rule.right_sides[language]:
                if not side.items:
                    raise ValueError(f"a rule of {symbol} has an empty right-hand side")
                key = tuple(ids[_grammar_symbol(rule, item)] for item in side.items)
                probs[parent, key] += rule.prob * side.prob
    return {key: prob for key, prob in probs.items() if prob > 0}


def _grammar_symbol(rule: Rule, item: Item) -> Nonterminal | WordSymbol:
    return WordSymbol(item.word) if isinstance(item, Terminal) else Nonterminal(rule.children[item])


def _open_classes(grammar: Grammar, ids: _SymbolIds) -> list[tuple[OpenClass, Probs]]:
    """Return each open class once, with all symbols that stand for it."""
    classes: dict[int, tuple[OpenClass, Probs]] = {}
    for symbol, words in grammar.open_classes.items():
        classes.setdefault(id(words), (words, {}))[1][ids[Nonterminal(symbol)]] = 1.0
    return list(classes.values())


def _binarize(right_sides: RightSides, ids: _SymbolIds) -> dict[tuple[int, int, int], float]:
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


def _lexical_rules(
    unary: RightSides,
    binary: Iterable[tuple[int, int, int]],
    ancestors: Mapping[int, Probs],
    symbols: Sequence[GrammarSymbol],
) -> tuple[tuple[str, ...], LexicalRules]:
    """Return the words and the symbols of each: parents by unary rules, and the word itself in binary rules."""
    probs: dict[str, Probs] = defaultdict(dict)
    for (parent, (child,)), prob in unary.items():
        symbol = symbols[child]
        if isinstance(symbol, WordSymbol):
            probs[symbol.spelling][parent] = prob
    for symbol, index in ((symbols[index], index) for rule in binary for index in rule[1:]):
        if isinstance(symbol, WordSymbol):
            probs[symbol.spelling][index] = 1.0
    closed = [_columns(_close(word_probs, ancestors)) for word_probs in probs.values()]
    word = np.repeat(np.arange(len(closed)), [len(ids) for ids, _ in closed])
    ids = np.concatenate([np.zeros(0, np.int32), *(ids for ids, _ in closed)])
    return tuple(probs), LexicalRules(word, ids, np.concatenate([np.zeros(0), *(values for _, values in closed)]))


def _columns(probs: Probs) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    return np.fromiter(probs, np.int32, len(probs)), np.fromiter(probs.values(), np.float64, len(probs))


def _binary_rules(rules: Mapping[tuple[int, int, int], float], symbols: int) -> BinaryRules:
    parent, left, right = np.array(list(rules), np.int32).reshape(-1, 3).T
    order = np.lexsort((left, right))
    begin = np.searchsorted(right[order], np.arange(symbols + 1))
    log_prob = np.log(np.fromiter(rules.values(), np.float64, len(rules)))
    return BinaryRules(begin, left[order], parent[order], log_prob[order])


def _unary_closure(ancestors: Mapping[int, Probs], symbols: int) -> SparseRows:
    row = np.repeat(np.fromiter(ancestors, np.int64), [len(probs) for probs in ancestors.values()])
    columns = [_columns(probs) for probs in ancestors.values()]
    symbol = np.concatenate([np.zeros(0, np.int32), *(ids for ids, _ in columns)])
    return _sparse_rows(row, symbol, np.concatenate([np.zeros(0), *(probs for _, probs in columns)]), symbols, symbols)


def _sparse_rows(
    row: NDArray[np.integer], symbol: NDArray[np.int32], prob: NDArray[np.float64], rows: int, symbols: int
) -> SparseRows:
    """Sort entries by row and add up the probabilities of equal symbols."""
    keys, index = np.unique(row.astype(np.int64) * symbols + symbol, return_inverse=True)
    total = np.bincount(index, prob, minlength=len(keys))
    keys, total = keys[total > 0], total[total > 0]
    begin = np.searchsorted(keys, np.arange(rows + 1) * symbols)
    return SparseRows(begin, (keys % symbols).astype(np.int32), np.log(total))


def _remainder(words: OpenClass, known_probs: NDArray[np.float64], known: Sequence[str]) -> float:
    """Return the probability of a class' words outside the vocabulary."""
    rest = 1.0 - math.fsum(known_probs)
    if rest > MIN_REMAINDER:
        return rest
    known_words = set(known)
    return math.fsum(words.prob(word) for word in words.words() if word not in known_words)
