"""Derivations of a synchronous grammar: sampling, realization as sentences, word alignment, and changing a subtree.

The same random numbers give the same derivation on every machine.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from dragoman.lab.grammar import ENGLISH, GERMAN, Grammar, Items, RightHandSide, Rule, category_of, sample_index

INLINE = ""  # categories that trees do not show
TREE_LABELS = {"SUBJ": "NP", "OBJ": "NP", "BASE": "NP", "NAME": "NP", "AN": "NP", "AP": INLINE, "AA": INLINE}

Uniform = Callable[[], float]  # returns the next random number in [0, 1)
Link = tuple[int, str]  # the identity of a derivation node and a mark; equal links are translations of each other
Path = tuple[int, ...]  # indices of children from the root to a subtree


class Derivation(NamedTuple):
    """A derivation tree: a rule, the right-hand side chosen for each language, and the children's derivations."""

    rule: Rule
    choices: tuple[int, int]  # German, English
    children: tuple[Derivation, ...]


@dataclass(frozen=True, slots=True)
class AnnotatedSentence:
    """A derivation's sentence in one language, with parts of speech and tree."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[Link | None, ...] = field(compare=False, repr=False)  # valid only within a sentence pair
    tree: str


class DerivationSampler:
    """Samples derivations from a grammar."""

    def __init__(self, grammar: Grammar):
        self.grammar = grammar
        self._cumulative_rules = {symbol: _cumulative(rules) for symbol, rules in grammar.rules.items()}
        self._cumulative_sides = {
            symbol: [(_cumulative(rule.right_sides[GERMAN]), _cumulative(rule.right_sides[ENGLISH])) for rule in rules]
            for symbol, rules in grammar.rules.items()
        }

    def sample(self, uniform: Uniform, symbol: str | None = None) -> Derivation:
        """Sample a derivation of a symbol, by default the start symbol."""
        symbol = symbol or self.grammar.start
        if symbol in self.grammar.open_classes:
            word = self.grammar.open_classes[symbol].sample(uniform)
            return Derivation(self.grammar.open_class_rule(symbol, word), (0, 0), ())
        index = sample_index(self._cumulative_rules[symbol], uniform)
        rule, (german, english) = self.grammar.rules[symbol][index], self._cumulative_sides[symbol][index]
        choices = (sample_index(german, uniform), sample_index(english, uniform))
        return Derivation(rule, choices, tuple([self.sample(uniform, child) for child in rule.children]))


def _cumulative(alternatives: Sequence[Rule | RightHandSide]) -> Sequence[float]:
    return list(accumulate(alternative.prob for alternative in alternatives)) if len(alternatives) > 1 else (1.0,)


def realize(derivation: Derivation, language: int) -> AnnotatedSentence:
    """Return the derivation's sentence in one language."""
    words: list[str] = []
    tags: list[str] = []
    links: list[Link | None] = []

    def visit(node: Derivation) -> str:
        """Append the node's words and return its tree."""
        rule, choices, children = node
        items = rule.right_sides[language][choices[language]].items
        label = _tree_label(rule.parent)
        if len(items) == 1 and children and label == _tree_label(children[0].rule.parent):
            return visit(children[0])  # no NP that consists of an NP only
        parts = []
        for item in items:
            if isinstance(item, int):
                parts.append(visit(children[item]))
            else:
                word, tag, link = item
                words.append(word)
                tags.append(tag)
                if isinstance(link, int):  # both languages realize the same node objects
                    links.append((id(children[link]), ""))
                else:
                    links.append(None if link is None else (id(node), link))
                parts.append(f"({tag} {word})")
        is_one_word = len(items) == 1 and not children and label != "NP"
        return " ".join(parts) if is_one_word or label == INLINE else f"({label} {' '.join(parts)})"

    tree = visit(derivation)
    return AnnotatedSentence(tuple(words), tuple(tags), tuple(links), tree)


def realize_words(derivation: Derivation, language: int) -> list[str]:
    """Return only the words of the derivation's sentence."""
    rule, choices, children = derivation
    words = []
    for item in rule.right_sides[language][choices[language]].items:
        if isinstance(item, int):
            words += realize_words(children[item], language)
        else:
            words.append(item.word)
    return words


@cache
def _tree_label(symbol: str) -> str:
    category = category_of(symbol)
    return TREE_LABELS.get(category, category)


def word_alignment(source: AnnotatedSentence, target: AnnotatedSentence) -> list[tuple[int, int]]:
    """Return the positions, from 0, of words that are translations of each other."""
    positions = defaultdict(list)
    for position, link in enumerate(target.links):
        if link is not None:
            positions[link].append(position)
    return [(i, j) for i, link in enumerate(source.links) if link is not None for j in positions[link]]


class Subtree(NamedTuple):
    """A subtree of a derivation and its position."""

    path: Path
    derivation: Derivation

    @property
    def category(self) -> str:
        return category_of(self.derivation.rule.parent)


def subtrees(derivation: Derivation, path: Path = ()) -> Iterator[Subtree]:
    """Iterate over a derivation and all its subtrees."""
    yield Subtree(path, derivation)
    for index, child in enumerate(derivation.children):
        yield from subtrees(child, (*path, index))


def replace_subtree(derivation: Derivation, path: Path, new: Derivation) -> Derivation:
    """Return the derivation with another subtree at `path`."""
    if not path:
        return new
    first, *rest = path
    children = list(derivation.children)
    children[first] = replace_subtree(children[first], tuple(rest), new)
    return derivation._replace(children=tuple(children))


def with_feature(symbol: str, old: str, new: str) -> str:
    """Return a symbol with one feature replaced.

    >>> with_feature("NP[farm,sg]", "sg", "pl")
    'NP[farm,pl]'
    """
    category, _, features = symbol.rstrip("]").partition("[")
    changed = [new if feature == old else feature for feature in features.split(",")]
    return f"{category}[{','.join(changed)}]"


def features_of(rule: Rule) -> list[str]:
    """Return the features of a rule's parent."""
    return rule.parent.rstrip("]").partition("[")[2].split(",")


def with_german_order(derivation: Derivation, items: Items) -> Derivation:
    """Return the derivation with a German right-hand side that the grammar does not have."""
    right_sides = ((RightHandSide(1.0, items),), derivation.rule.right_sides[ENGLISH])
    rule = replace(derivation.rule, right_sides=right_sides)
    return Derivation(rule, (0, derivation.choices[ENGLISH]), derivation.children)


def head_of(node: Derivation) -> Derivation:
    """Return the node of a noun phrase's noun, name or pronoun; for coordinated phrases, that of the last."""
    category = category_of(node.rule.parent)
    if category == "BASE":
        return next(child for child in reversed(node.children) if category_of(child.rule.parent) in ("N", "AN"))
    if category in ("SUBJ", "OBJ", "NP") and node.children and node.rule.name != ("who",):
        return head_of(node.children[-1 if node.rule.name == ("joined",) else 0])
    return node
