"""Weighted synchronous context-free grammars.

A rule rewrites a symbol to child symbols with a probability. For each language it has one or more right-hand sides,
which order the children and add words; the right-hand sides of the two languages are chosen independently given the
rule. A derivation is a tree of rules, so P(E), P(F) and P(E, F) are sums over derivations.

Right-hand sides are written as templates: `{v}` is a child and `will/MD=f` is the word "will" with the part of speech
MD. Words with the same mark, here `f`, are translations of each other. `up/RP={v}` is aligned with the words of child
v, and a word without a mark is unaligned.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple, Protocol

GERMAN, ENGLISH = 0, 1
LANGUAGES = {"de": GERMAN, "en": ENGLISH}

Templates = str | Mapping[str, float]  # one template, or several with their weights


class Terminal(NamedTuple):
    """A word in a right-hand side."""

    word: str
    tag: str  # part of speech
    link: str | int | None = None  # a mark within the rule, the index of the child it belongs to, or None


Item = Terminal | int  # a word, or the index of a child
Items = tuple[Item, ...]


class RightHandSide(NamedTuple):
    """A right-hand side of a rule in one language."""

    prob: float  # given the rule
    items: Items


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """A synchronous rule."""

    parent: str
    prob: float  # given the parent
    children: tuple[str, ...]
    right_sides: tuple[tuple[RightHandSide, ...], tuple[RightHandSide, ...]]  # German, English
    name: tuple[str, ...] = ()  # identifies corresponding rules of different parents


class OpenClass(Protocol):
    """A distribution over generated words, which have the same spelling in both languages."""

    @property
    def tags(self) -> tuple[str, str]: ...  # the part of speech in German and in English

    def sample(self, uniform: Callable[[], float]) -> str:
        """Sample a word; `uniform` returns random numbers in [0, 1)."""
        ...

    def prob(self, word: str) -> float:
        """Return the probability of a word, 0 for words outside the class."""
        ...

    def words(self) -> Iterator[str]: ...

    def entropy(self) -> float: ...


@dataclass(frozen=True)
class Grammar:
    """The rules of every symbol; symbols without rules are open word classes."""

    start: str
    rules: Mapping[str, Sequence[Rule]]
    open_classes: Mapping[str, OpenClass] = field(default_factory=dict)

    @cached_property
    def _rules_by_name(self) -> dict[tuple[str, tuple[str, ...]], Rule]:
        return {(rule.parent, rule.name): rule for rules in self.rules.values() for rule in rules if rule.name}

    def rule_named(self, symbol: str, name: tuple[str, ...]) -> Rule | None:
        """Return the rule of a symbol with this name, if there is one."""
        return self._rules_by_name.get((symbol, name))

    def open_class_rule(self, symbol: str, word: str) -> Rule:
        """Return the rule that rewrites an open-class symbol to a word."""
        open_class = self.open_classes[symbol]
        german, english = ((RightHandSide(1.0, (Terminal(word, tag, ""),)),) for tag in open_class.tags)
        return Rule(symbol, open_class.prob(word), (), (german, english))


def symbol(category: str, *features: str) -> str:
    """Return the name of a symbol; empty features are left out.

    >>> symbol("NP", "farm", "sg", ""), symbol("ROOT")
    ('NP[farm,sg]', 'ROOT')
    """
    present = ",".join(filter(None, features))
    return f"{category}[{present}]" if present else category


def sample_index(cumulative: Sequence[float], uniform: Callable[[], float]) -> int:
    """Sample an index by cumulative probabilities. A single choice uses no random number."""
    return min(bisect_right(cumulative, uniform()), len(cumulative) - 1) if len(cumulative) > 1 else 0


@cache
def category_of(symbol: str) -> str:
    """Return a symbol's category without its features: `NP` for `NP[farm,sg]`."""
    return symbol.partition("[")[0]


class GrammarBuilder:
    """Collects weighted rules and builds a grammar from those that are productive and reachable."""

    def __init__(self) -> None:
        self.rules: dict[str, list[Rule]] = defaultdict(list)  # with weights instead of probabilities
        self.open_classes: dict[str, OpenClass] = {}

    def add(
        self,
        parent: str,
        weight: float,
        children: Mapping[str, str],
        german: Templates,
        english: Templates,
        name: tuple[str, ...] = (),
    ) -> None:
        """Add a rule unless its weight is 0; `children` maps the names used in the templates to symbols."""
        if weight > 0:
            names = tuple(children)
            right_sides = (parse_templates(german, names), parse_templates(english, names))
            self.rules[parent].append(Rule(parent, weight, tuple(children.values()), right_sides, name))

    def add_sequence(self, parent: str, weight: float, children: Sequence[str], *name: str) -> None:
        """Add a rule without words, whose children stand in the same order in both languages."""
        named = {f"child{number}": child for number, child in enumerate(children)}
        template = " ".join(f"{{{child}}}" for child in named)
        self.add(parent, weight, named, template, template, name)

    def build(self, start: str) -> Grammar:
        """Build the grammar, with weights normalised to probabilities."""
        rules = self._productive_rules()
        reachable, agenda = {start}, [start]
        while agenda:
            new = {child for rule in rules.get(agenda.pop(), ()) for child in rule.children} - reachable
            reachable |= new
            agenda += new
        return Grammar(
            start,
            {symbol: _normalized(rules[symbol]) for symbol in rules if symbol in reachable},
            {symbol: words for symbol, words in self.open_classes.items() if symbol in reachable},
        )

    def _productive_rules(self) -> dict[str, list[Rule]]:
        """Return the rules whose children all derive words; a word class may be empty for some topic."""
        productive, count = set(self.open_classes), -1
        while len(productive) > count:
            count = len(productive)
            productive |= {
                symbol
                for symbol, rules in self.rules.items()
                if symbol not in productive and any(productive.issuperset(rule.children) for rule in rules)
            }
        return {
            symbol: [rule for rule in rules if productive.issuperset(rule.children)]
            for symbol, rules in self.rules.items()
            if symbol in productive
        }


def _normalized(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    total = math.fsum(rule.prob for rule in rules)
    return tuple(Rule(rule.parent, rule.prob / total, rule.children, rule.right_sides, rule.name) for rule in rules)


def parse_templates(templates: Templates, names: tuple[str, ...]) -> tuple[RightHandSide, ...]:
    """Parse templates and normalise their weights; `names` are the names of the children.

    >>> parse_templates("{s} gives/VB={v} {v} up/RP={v}", ("s", "v"))[0].items
    (0, Terminal(word='gives', tag='VB', link=1), 1, Terminal(word='up', tag='RP', link=1))
    """
    if isinstance(templates, str):
        return (RightHandSide(1.0, _items(templates, names)),)
    total = math.fsum(templates.values())
    return tuple(
        [RightHandSide(weight / total, _items(template, names)) for template, weight in templates.items() if weight]
    )


@cache
def _items(template: str, names: tuple[str, ...]) -> Items:
    items = tuple([_item(part, names) for part in template.split()])
    children = sorted(item for item in items if isinstance(item, int))
    assert children == list(range(len(names))), f"{template}: needs each of {names} once"
    return items


def _item(part: str, names: tuple[str, ...]) -> Item:
    if part.startswith("{"):
        return names.index(part[1:-1])
    word, _, rest = part.partition("/")
    tag, equals, mark = rest.partition("=")
    if not equals:
        return Terminal(word, tag)
    return Terminal(word, tag, names.index(mark[1:-1]) if mark.startswith("{") else mark)
