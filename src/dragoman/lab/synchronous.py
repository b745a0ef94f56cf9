"""Weighted synchronous grammars: one meaning, said twice.

A meaning is a tree of rules. Each rule is drawn with its share among the rules of its parent, and each side then says
it in one of the rule's ways for that side, drawn independently of the other side. So P(E) and P(F) are sums over
meanings, and given the meaning E and F are independent of each other.

Rules are written as templates: `{v}` is a child, `will/MD=f` the word "will" of part of speech MD, which translates
what is marked `=f` on the other side; `up/RP={v}` belongs to the child v; a word without a mark translates nothing.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple, Protocol

GERMAN, ENGLISH = 0, 1
SIDES = {"de": GERMAN, "en": ENGLISH}

Ways = str | Mapping[str, float]  # templates and their weights; of a single one the weight does not matter


class Leaf(NamedTuple):
    """A word as a rule says it."""

    word: str
    tag: str  # its part of speech
    link: str | int | None = None  # a mark within the rule, the number of the child it belongs to, or nothing


Item = Leaf | int  # a word, or the place of a child, by its number
Items = tuple[Item, ...]


class Way(NamedTuple):
    """How one side may say a rule."""

    prob: float  # given the rule
    items: Items


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A piece of meaning: a parent and its children, and the ways to say it on each side."""

    parent: str
    prob: float  # given the parent
    children: tuple[str, ...]
    ways: tuple[tuple[Way, ...], tuple[Way, ...]]  # German, English
    name: tuple[str, ...] = ()  # by which the same thing is found under another parent


class OpenClass(Protocol):
    """Words that are made up as they are needed, the same on both sides."""

    @property
    def tags(self) -> tuple[str, str]:
        """Their part of speech on each side."""
        ...

    def draw(self, uniform: Callable[[], float]) -> str:
        """A word, from numbers drawn evenly between 0 and 1."""
        ...

    def prob(self, word: str) -> float:
        """0 for words that are not of the class."""
        ...

    def words(self) -> Iterator[str]:
        """All of them."""
        ...

    def entropy(self) -> float: ...


@dataclass(frozen=True)
class Grammar:
    """The rules of every symbol, and the classes of words that stand for symbols without rules."""

    start: str
    rules: Mapping[str, Sequence[Rule]]
    open_classes: Mapping[str, OpenClass] = field(default_factory=dict)

    @cached_property
    def _named(self) -> dict[tuple[str, tuple[str, ...]], Rule]:
        return {(rule.parent, rule.name): rule for rules in self.rules.values() for rule in rules if rule.name}

    def named(self, symbol: str, name: tuple[str, ...]) -> Rule | None:
        """The rule of a symbol that has this name."""
        return self._named.get((symbol, name))

    def rule_of_word(self, symbol: str, word: str) -> Rule:
        """A word of an open class, as a rule."""
        opened = self.open_classes[symbol]
        german, english = ((Way(1.0, (Leaf(word, tag, ""),)),) for tag in opened.tags)
        return Rule(symbol, opened.prob(word), (), (german, english))


def symbol(category: str, *features: str) -> str:
    """The name of a symbol; features that are empty are left out.

    >>> symbol("NP", "farm", "sg", ""), symbol("ROOT")
    ('NP[farm,sg]', 'ROOT')
    """
    given = ",".join(filter(None, features))
    return f"{category}[{given}]" if given else category


@cache
def label(symbol: str) -> str:
    """The category alone: `NP[farm,sg]` is an `NP`."""
    return symbol.partition("[")[0]


class Draft(NamedTuple):
    """A rule before the shares of its parent's rules are known."""

    weight: float
    children: tuple[str, ...]
    ways: tuple[tuple[Way, ...], tuple[Way, ...]]
    name: tuple[str, ...]


class Builder:
    """Collects rules; `grammar` drops those that can never be used up, and makes shares of the weights."""

    def __init__(self) -> None:
        self.drafts: dict[str, list[Draft]] = defaultdict(list)
        self.open_classes: dict[str, OpenClass] = {}

    def add(
        self,
        parent: str,
        weight: float,
        children: Mapping[str, str],
        german: Ways,
        english: Ways,
        name: tuple[str, ...] = (),
    ) -> None:
        """One rule; `children` gives the symbol of each name that the templates use. Nothing, if it has no weight."""
        if weight <= 0:
            return
        names = tuple(children)
        ways = (ways_from(german, names), ways_from(english, names))
        self.drafts[parent].append(Draft(weight, tuple(children.values()), ways, name))

    def grammar(self, start: str) -> Grammar:
        drafts = _productive(self.drafts, set(self.open_classes))
        reached = _reached(drafts, start)
        rules = {symbol: _shares(symbol, drafts[symbol]) for symbol in drafts if symbol in reached}
        return Grammar(start, rules, {symbol: c for symbol, c in self.open_classes.items() if symbol in reached})


def ways_from(ways: Ways, names: tuple[str, ...]) -> tuple[Way, ...]:
    """Templates as ways, their weights made to sum to one.

    >>> ways_from("{s} gives/VB={v} {v} up/RP={v}", ("s", "v"))[0].items
    (0, Leaf(word='gives', tag='VB', link=1), 1, Leaf(word='up', tag='RP', link=1))
    """
    if isinstance(ways, str):
        return (Way(1.0, _items(ways, names)),)
    total = math.fsum(ways.values())
    return tuple([Way(weight / total, _items(template, names)) for template, weight in ways.items() if weight])


@cache
def _items(template: str, names: tuple[str, ...]) -> Items:
    items = tuple(_item(part, names) for part in template.split())
    places = sorted(item for item in items if isinstance(item, int))
    assert places == list(range(len(names))), f"{template}: each of {names} once"
    return items


def _item(part: str, names: tuple[str, ...]) -> Item:
    if part.startswith("{"):
        return names.index(part[1:-1])
    word, _, rest = part.partition("/")
    tag, marked, mark = rest.partition("=")
    if not marked:
        return Leaf(word, tag)
    return Leaf(word, tag, names.index(mark[1:-1]) if mark.startswith("{") else mark)


def _productive(drafts: Mapping[str, Sequence[Draft]], ready: set[str]) -> dict[str, list[Draft]]:
    """Only rules whose children all come to words in the end: a class of words may be empty in some topic."""
    ready = set(ready)
    while True:
        more = {
            symbol
            for symbol, some in drafts.items()
            if symbol not in ready and any(ready.issuperset(draft.children) for draft in some)
        }
        if not more:
            break
        ready |= more
    return {s: [d for d in some if ready.issuperset(d.children)] for s, some in drafts.items() if s in ready}


def _reached(drafts: Mapping[str, Sequence[Draft]], start: str) -> set[str]:
    reached, waiting = {start}, [start]
    while waiting:
        for draft in drafts.get(waiting.pop(), ()):
            new = set(draft.children) - reached
            reached |= new
            waiting += new
    return reached


def _shares(parent: str, drafts: Sequence[Draft]) -> tuple[Rule, ...]:
    total = math.fsum(draft.weight for draft in drafts)
    return tuple(Rule(parent, draft.weight / total, draft.children, draft.ways, draft.name) for draft in drafts)
