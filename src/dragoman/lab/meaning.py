"""Drawing meanings, and saying them: words, trees, alignment.

The same numbers give the same meanings, whatever the machine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate
from typing import NamedTuple

from dragoman.lab.synchronous import ENGLISH, GERMAN, Grammar, Rule, Way, label

INLINE = ""
SHOWN = {
    "SUBJ": "NP",
    "OBJ": "NP",
    "BASE": "NP",
    "NAME": "NP",
    "AN": "NP",
    "AP": INLINE,
    "AA": INLINE,
}  # as trees call them

Uniform = Callable[[], float]  # the next number, drawn evenly between 0 and 1
Link = tuple[int, str]  # what a word translates: a mark of one node


class Node(NamedTuple):
    """A meaning: a rule, how each side says it, and the meanings inside it."""

    rule: Rule
    ways: tuple[int, int]  # German, English
    children: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Said:
    """A meaning on one side."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    links: tuple[Link | None, ...] = field(compare=False, repr=False)  # good only beside the other side of the pair
    tree: str


class Meanings:
    """Draws meanings from a grammar."""

    def __init__(self, grammar: Grammar):
        self.grammar = grammar
        self._choices = {symbol: _Choice.of(rules) for symbol, rules in grammar.rules.items()}

    def draw(self, uniform: Uniform, symbol: str | None = None) -> Node:
        """A meaning for a symbol, by default for a whole sentence."""
        symbol = symbol or self.grammar.start
        choice = self._choices.get(symbol)
        if choice is None:
            word = self.grammar.open_classes[symbol].draw(uniform)
            return Node(self.grammar.rule_of_word(symbol, word), (0, 0), ())
        place = _place(choice.rule_sums, uniform) if len(choice.rules) > 1 else 0
        rule, (german, english) = choice.rules[place], choice.way_sums[place]
        ways = (_place(german, uniform) if german else 0, _place(english, uniform) if english else 0)
        return Node(rule, ways, tuple([self.draw(uniform, child) for child in rule.children]))


class _Choice(NamedTuple):
    """The rules of a symbol, ready to be drawn from: shares added up."""

    rules: Sequence[Rule]
    rule_sums: Sequence[float]
    way_sums: Sequence[tuple[Sequence[float], Sequence[float]]]  # of each rule and side; nothing of a single way

    @classmethod
    def of(cls, rules: Sequence[Rule]) -> _Choice:
        german = [_way_sums(rule.ways[GERMAN]) for rule in rules]
        english = [_way_sums(rule.ways[ENGLISH]) for rule in rules]
        return cls(rules, list(accumulate(rule.prob for rule in rules)), list(zip(german, english, strict=True)))


def _way_sums(ways: Sequence[Way]) -> Sequence[float]:
    return list(accumulate(way.prob for way in ways)) if len(ways) > 1 else ()


def _place(sums: Sequence[float], uniform: Uniform) -> int:
    return min(bisect_right(sums, uniform()), len(sums) - 1)


def say(node: Node, side: int) -> Said:
    """The words, parts of speech and tree of one side, and what each word translates."""
    words: list[str] = []
    tags: list[str] = []
    links: list[Link | None] = []

    def visit(node: Node) -> str:
        rule, ways, children = node
        items = rule.ways[side][ways[side]].items
        shown = _shown(rule.parent)
        if len(items) == 1 and children and shown == _shown(children[0].rule.parent):
            return visit(children[0])  # one noun phrase is enough
        parts = []
        for item in items:
            if isinstance(item, int):
                parts.append(visit(children[item]))
            else:
                word, tag, link = item
                words.append(word)
                tags.append(tag)
                links.append(_link(node, link))
                parts.append(f"({tag} {word})")
        is_one_word = len(items) == 1 and not children and shown != "NP"
        return " ".join(parts) if is_one_word or shown == INLINE else f"({shown} {' '.join(parts)})"

    tree = visit(node)
    return Said(tuple(words), tuple(tags), tuple(links), tree)


def words_of(node: Node, side: int) -> tuple[str, ...]:
    """The words alone."""
    words: list[str] = []

    def visit(node: Node) -> None:
        rule, ways, children = node
        for item in rule.ways[side][ways[side]].items:
            if isinstance(item, int):
                visit(children[item])
            else:
                words.append(item.word)

    visit(node)
    return tuple(words)


@cache
def _shown(symbol: str) -> str:
    """How trees call a symbol."""
    category = label(symbol)
    return SHOWN.get(category, category)


def _link(node: Node, link: str | int | None) -> Link | None:
    """A node is known by its identity: the same one is said on both sides."""
    if link is None:
        return None
    return (id(node), link) if isinstance(link, str) else (id(node.children[link]), "")


def alignment(source: Said, target: Said) -> list[tuple[int, int]]:
    """Pairs of places of words that translate each other, counted from 0."""
    places = defaultdict(list)
    for place, link in enumerate(target.links):
        if link is not None:
            places[link].append(place)
    return [(here, there) for here, link in enumerate(source.links) if link is not None for there in places[link]]
