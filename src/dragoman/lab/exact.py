"""Exact probabilities and entropies of a synchronous grammar, where each side tells the meaning's shape.

Two rules may be said alike, as "bank" stands for a bench and for a bank: the words then do not tell which of them was
meant, and their probabilities add up. Everything else of the meaning must be plain from the words of either side
alone. Then the sums over meanings in P(E), P(F) and P(E, F) are products over the nodes of one tree, each factor
the mass of the rules that are said like the node's rule. The inside algorithm, which sums over all trees, proves it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dragoman.lab.meaning import Node
from dragoman.lab.synchronous import ENGLISH, GERMAN, Grammar, Items, Leaf, Rule

DEEPEST = 1000  # levels of a meaning

Spoken = tuple[tuple[str, ...], tuple[str | int, ...]]  # children, and the words and places of children in their order


class LogProbs(NamedTuple):
    """Of one pair: F is German, E is English."""

    english: float  # log P(E)
    german: float  # log P(F)
    both: float  # log P(E, F)

    @property
    def english_given_german(self) -> float:
        """log P(E | F)"""
        return self.both - self.german

    @property
    def german_given_english(self) -> float:
        """log P(F | E)"""
        return self.both - self.english


class _Masses(NamedTuple):
    """Logs of the mass of all rules that are said like this one, for each way."""

    german: tuple[float, ...]
    english: tuple[float, ...]
    both: tuple[tuple[float, ...], ...]  # German ways by English ways


class Exact:
    """The exact probabilities of what is drawn from a grammar."""

    def __init__(self, grammar: Grammar):
        self._rules = grammar.rules
        self._known: dict[int, _Masses] = {}  # of each rule, by its identity

    def log_probs(self, node: Node) -> LogProbs:
        """Of the pair of sentences that a meaning was said as."""
        english = german = both = 0.0
        waiting = [node]
        while waiting:
            rule, (f, e), children = waiting.pop()
            masses = self._known.get(id(rule)) or self._masses(rule)
            german += masses.german[f]
            english += masses.english[e]
            both += masses.both[f][e]
            waiting += children
        return LogProbs(english, german, both)

    def _masses(self, rule: Rule) -> _Masses:
        """Worked out when first asked for, with those of all rules of the same parent."""
        if rule.parent not in self._rules:  # a word of an open class
            return _of_one_way(rule.prob)
        self._known.update(_masses(self._rules[rule.parent]))
        return self._known[id(rule)]


def _of_one_way(prob: float) -> _Masses:
    log = math.log(prob)
    return _Masses((log,), (log,), ((log,),))


def _masses(rules: Sequence[Rule]) -> dict[int, _Masses]:
    """Of the rules of one symbol."""
    german, english, both = _tables(rules)
    result = {}
    for rule in rules:
        f = [_spoken(rule, way.items) for way in rule.ways[GERMAN]]
        e = [_spoken(rule, way.items) for way in rule.ways[ENGLISH]]
        result[id(rule)] = _Masses(
            tuple(math.log(german[one]) for one in f),
            tuple(math.log(english[other]) for other in e),
            tuple(tuple(math.log(both[one, other]) for other in e) for one in f),
        )
    return result


def _tables(
    rules: Iterable[Rule],
) -> tuple[dict[Spoken, float], dict[Spoken, float], dict[tuple[Spoken, Spoken], float]]:
    """What the rules of one symbol give to each way of saying it: German, English, both."""
    german: dict[Spoken, float] = defaultdict(float)
    english: dict[Spoken, float] = defaultdict(float)
    both: dict[tuple[Spoken, Spoken], float] = defaultdict(float)
    for rule in rules:
        for f in rule.ways[GERMAN]:
            german[_spoken(rule, f.items)] += rule.prob * f.prob
            for e in rule.ways[ENGLISH]:
                both[_spoken(rule, f.items), _spoken(rule, e.items)] += rule.prob * f.prob * e.prob
        for e in rule.ways[ENGLISH]:
            english[_spoken(rule, e.items)] += rule.prob * e.prob
    return german, english, both


def _spoken(rule: Rule, items: Items) -> Spoken:
    return rule.children, tuple(item.word if isinstance(item, Leaf) else item for item in items)


@dataclass(frozen=True)
class Entropy:
    """Of a pair of sentences, in nats; lengths in words."""

    english: float  # H(E)
    german: float  # H(F)
    both: float  # H(E, F)
    english_words: float  # expected length of E
    german_words: float

    @property
    def english_given_german(self) -> float:
        """H(E | F)"""
        return self.both - self.german

    @property
    def english_given_german_per_word(self) -> float:
        return self.english_given_german / self.english_words


def entropy(grammar: Grammar) -> Entropy:
    """Every node adds the entropy of its choice: each symbol's, times how often the symbol is expected."""
    totals = np.zeros(5)
    for symbol, count in expected_counts(grammar).items():
        totals += count * np.array(_of_symbol(grammar, symbol))
    return Entropy(*totals.tolist())


def _of_symbol(grammar: Grammar, symbol: str) -> tuple[float, float, float, float, float]:
    if symbol in grammar.open_classes:
        own = grammar.open_classes[symbol].entropy()
        return own, own, own, 1.0, 1.0
    rules = grammar.rules[symbol]
    german, english, both = (_entropy(table.values()) for table in _tables(rules))
    return english, german, both, _words(rules, ENGLISH), _words(rules, GERMAN)


def _words(rules: Iterable[Rule], side: int) -> float:
    return math.fsum(
        rule.prob * way.prob * sum(isinstance(item, Leaf) for item in way.items)
        for rule in rules
        for way in rule.ways[side]
    )


def _entropy(masses: Iterable[float]) -> float:
    return -math.fsum(mass * math.log(mass) for mass in masses)


def expected_counts(grammar: Grammar) -> dict[str, float]:
    """How often each symbol is expected in a meaning: the fixed point of adding up what parents ask for.

    A grammar in which meanings grow faster than they end has no such point, and is refused.
    """
    symbols = [*grammar.rules, *grammar.open_classes]
    number = {symbol: place for place, symbol in enumerate(symbols)}
    edges = [
        (number[symbol], number[child], rule.prob)
        for symbol, rules in grammar.rules.items()
        for rule in rules
        for child in rule.children
    ]
    parents, children = (np.array([edge[part] for edge in edges], np.int64) for part in (0, 1))
    shares = np.array([edge[2] for edge in edges])
    first = np.zeros(len(symbols))
    first[number[grammar.start]] = 1.0
    total, wave = first.copy(), first
    for _ in range(DEEPEST):
        wave = np.bincount(children, wave[parents] * shares, minlength=len(symbols)).astype(np.float64)
        total += wave
        if wave.sum() < 1e-14:
            break
    else:
        raise ValueError("meanings have no end: on average a symbol asks for as many more as it settles")
    return dict(zip(symbols, total.tolist(), strict=True))
