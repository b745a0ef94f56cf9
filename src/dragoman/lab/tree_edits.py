"""Changing one thing in a meaning and leaving all else as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dragoman.lab.meaning import Node, Said
from dragoman.lab.synchronous import Grammar, Items, Rule, Way, label

Path = tuple[int, ...]  # which child, and which child of that, and so on


class Place(NamedTuple):
    """A node and the way to it."""

    path: Path
    node: Node

    @property
    def category(self) -> str:
        return label(self.node.rule.parent)


def places(node: Node, path: Path = ()) -> Iterator[Place]:
    """A node and all nodes inside it."""
    yield Place(path, node)
    for number, child in enumerate(node.children):
        yield from places(child, (*path, number))


def graft(meaning: Node, path: Path, new: Node) -> Node:
    """The meaning with another node at that place."""
    if not path:
        return new
    first, *rest = path
    children = list(meaning.children)
    children[first] = graft(children[first], tuple(rest), new)
    return meaning._replace(children=tuple(children))


def renamed(grammar: Grammar, node: Node, old: str, new: str) -> Node | None:
    """The node under a symbol with another feature, its rule the one of the same name; children are left as they are.

    Nothing, if there is no such rule.
    """
    rule = grammar.named(with_feature(node.rule.parent, old, new), node.rule.name)
    return node._replace(rule=rule) if rule else None


def with_feature(symbol: str, old: str, new: str) -> str:
    """A symbol with one feature changed.

    >>> with_feature("NP[farm,sg]", "sg", "pl")
    'NP[farm,pl]'
    """
    category, _, features = symbol.rstrip("]").partition("[")
    changed = [new if feature == old else feature for feature in features.split(",")]
    return f"{category}[{','.join(changed)}]"


def features(rule: Rule) -> list[str]:
    return rule.parent.rstrip("]").partition("[")[2].split(",")


def said_otherwise(node: Node, side: int, items: Items) -> Node:
    """The node, said on one side in a way that no rule has."""
    ways = list(node.rule.ways)
    ways[side] = (Way(1.0, items),)
    rule = Rule(node.rule.parent, node.rule.prob, node.rule.children, (ways[0], ways[1]), node.rule.name)
    chosen = list(node.ways)
    chosen[side] = 0
    return Node(rule, (chosen[0], chosen[1]), node.children)


def positions(said: Said, node: Node) -> list[int]:
    """Where the words stand that a node says itself."""
    return [place for place, link in enumerate(said.links) if link is not None and link[0] == id(node)]


def head(node: Node) -> Node:
    """The node that says the head of a noun phrase: its noun, name or pronoun; of several joined ones, the last."""
    category = label(node.rule.parent)
    if category == "BASE":
        return next(child for child in reversed(node.children) if label(child.rule.parent) in ("N", "AN"))
    if category in ("SUBJ", "OBJ", "NP") and node.children and node.rule.name != ("who",):
        joined = node.rule.name == ("joined",)
        return head(node.children[-1 if joined else 0])
    return node
