"""Exact probabilities of sampled sentence pairs, and entropies.

Two rules of a symbol may have the same words in one language: German "bank" is a bench or a bank. The sentence then
does not determine the rule, and the probabilities of both rules are added. In all other respects a sentence of either
language determines its derivation. Therefore P(E), P(F) and P(E, F), which are sums over derivations, are products
over the nodes of one tree; each factor is the total probability of the rules with the same right-hand side. A test
checks this with the inside algorithm, which sums over all trees.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dragoman.lab.derivation import Derivation
from dragoman.lab.grammar import ENGLISH, GERMAN, Grammar, Items, Rule, Terminal

MAX_DEPTH = 1000  # of derivations, when expected counts are summed

RightSideKey = tuple[tuple[str, ...], tuple[str | int, ...]]  # children, and the words and child indices in order


class PairLogProbs(NamedTuple):
    """Log-probabilities of a sentence pair: F is German, E is English."""

    english: float  # log P(E)
    german: float  # log P(F)
    both: float  # log P(E, F)

    @property
    def english_given_german(self) -> float:
        """log P(E | F)"""
        return self.both - self.german


class _LogMasses(NamedTuple):
    """For each right-hand side of a rule, the log of the total probability of all rules that share it."""

    german: tuple[float, ...]
    english: tuple[float, ...]
    both: tuple[tuple[float, ...], ...]  # by German and English right-hand side


class DerivationScorer:
    """Computes the probabilities of a derivation's sentences."""

    def __init__(self, grammar: Grammar):
        self._rules = grammar.rules
        self._masses_by_rule: dict[int, _LogMasses] = {}  # by the identity of the rule

    def log_probs(self, derivation: Derivation) -> PairLogProbs:
        """Return the log-probabilities of the two sentences that a derivation realizes."""
        english = german = both = 0.0
        agenda = [derivation]
        while agenda:
            rule, (f, e), children = agenda.pop()
            masses = self._masses_by_rule.get(id(rule)) or self._masses(rule)
            german += masses.german[f]
            english += masses.english[e]
            both += masses.both[f][e]
            agenda += children
        return PairLogProbs(english, german, both)

    def _masses(self, rule: Rule) -> _LogMasses:
        """Compute the masses of a rule and of all other rules of its parent."""
        if rule.parent not in self._rules:  # a word of an open class
            log_prob = math.log(rule.prob)
            return _LogMasses((log_prob,), (log_prob,), ((log_prob,),))
        german, english, both = _right_side_masses(self._rules[rule.parent])
        for other in self._rules[rule.parent]:
            f_keys, e_keys = ([_right_side_key(other, side.items) for side in sides] for sides in other.right_sides)
            self._masses_by_rule[id(other)] = _LogMasses(
                tuple(math.log(german[f]) for f in f_keys),
                tuple(math.log(english[e]) for e in e_keys),
                tuple(tuple(math.log(both[f, e]) for e in e_keys) for f in f_keys),
            )
        return self._masses_by_rule[id(rule)]


def _right_side_masses(
    rules: Iterable[Rule],
) -> tuple[dict[RightSideKey, float], dict[RightSideKey, float], dict[tuple[RightSideKey, RightSideKey], float]]:
    """Return the distributions of one symbol's right-hand sides: German, English, both."""
    german: dict[RightSideKey, float] = defaultdict(float)
    english: dict[RightSideKey, float] = defaultdict(float)
    both: dict[tuple[RightSideKey, RightSideKey], float] = defaultdict(float)
    for rule in rules:
        for f in rule.right_sides[GERMAN]:
            german[_right_side_key(rule, f.items)] += rule.prob * f.prob
            for e in rule.right_sides[ENGLISH]:
                both[_right_side_key(rule, f.items), _right_side_key(rule, e.items)] += rule.prob * f.prob * e.prob
        for e in rule.right_sides[ENGLISH]:
            english[_right_side_key(rule, e.items)] += rule.prob * e.prob
    return german, english, both


def _right_side_key(rule: Rule, items: Items) -> RightSideKey:
    return rule.children, tuple(item.word if isinstance(item, Terminal) else item for item in items)


@dataclass(frozen=True)
class PairEntropy:
    """Entropies of a sentence pair in nats, and expected lengths in words."""

    english: float  # H(E)
    german: float  # H(F)
    both: float  # H(E, F)
    english_words: float
    german_words: float

    @property
    def english_given_german(self) -> float:
        """H(E | F)"""
        return self.both - self.german

    @property
    def english_given_german_per_word(self) -> float:
        return self.english_given_german / self.english_words


def pair_entropy(grammar: Grammar) -> PairEntropy:
    """Sum the entropies of the symbols' distributions, each weighted by the symbol's expected count."""
    totals = np.zeros(5)
    for symbol, count in expected_counts(grammar).items():
        totals += count * np.array(_symbol_entropies(grammar, symbol))
    return PairEntropy(*totals.tolist())


def _symbol_entropies(grammar: Grammar, symbol: str) -> tuple[float, float, float, float, float]:
    """Return one symbol's contribution to each field of `PairEntropy`."""
    if symbol in grammar.open_classes:
        entropy = grammar.open_classes[symbol].entropy()
        return entropy, entropy, entropy, 1.0, 1.0
    rules = grammar.rules[symbol]
    german, english, both = (
        -math.fsum(mass * math.log(mass) for mass in masses.values()) for masses in _right_side_masses(rules)
    )
    german_words, english_words = (
        math.fsum(
            rule.prob * side.prob * sum(isinstance(item, Terminal) for item in side.items)
            for rule in rules
            for side in rule.right_sides[language]
        )
        for language in (GERMAN, ENGLISH)
    )
    return english, german, both, english_words, german_words


def expected_counts(grammar: Grammar) -> dict[str, float]:
    """Return the expected number of occurrences of each symbol in a derivation, summed level by level.

    Raises:
        ValueError: if the grammar is not consistent, so that the expected size of a derivation is infinite.
    """
    symbols = [*grammar.rules, *grammar.open_classes]
    index = {symbol: i for i, symbol in enumerate(symbols)}
    edges = [
        (index[symbol], index[child], rule.prob)
        for symbol, rules in grammar.rules.items()
        for rule in rules
        for child in rule.children
    ]
    parents, children = (np.array([edge[part] for edge in edges], np.int64) for part in (0, 1))
    probs = np.array([edge[2] for edge in edges])
    level = np.zeros(len(symbols))  # expected counts at one depth
    level[index[grammar.start]] = 1.0
    total = level.copy()
    for _ in range(MAX_DEPTH):
        level = np.bincount(children, level[parents] * probs, minlength=len(symbols)).astype(np.float64)
        total += level
        if level.sum() < 1e-14:
            return dict(zip(symbols, total.tolist(), strict=True))
    raise ValueError("the expected size of a derivation is infinite: recursive rules are too probable")
