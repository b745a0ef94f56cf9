"""Pairs of sentences, a right one and a minimally wrong one, for each thing that the laboratory's grammar does.

The wrong one is impossible in the grammar, or far less probable: a model that has learnt what the pair is about finds
the right one more probable.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cache, cached_property
from itertools import count as count_from
from itertools import pairwise, product
from typing import NamedTuple

from dragoman.lab.german_english import grammar
from dragoman.lab.inflection import DEFINITE
from dragoman.lab.laboratory import side_of
from dragoman.lab.meaning import Meanings, Node, Said, say, words_of
from dragoman.lab.synchronous import GERMAN, Grammar
from dragoman.lab.tree_edits import (
    Place,
    features,
    graft,
    head,
    places,
    positions,
    renamed,
    said_otherwise,
    with_feature,
)
from dragoman.lab.word_tables import TOPICS
from dragoman.lab.words import CROSSED_OBJECTS, CROSSED_SUBJECTS, NUMBERS, PEOPLE, REGISTERS, Words

DISTANCES = (0, 1, 4, 8, 16)  # classes of distance begin here: 0, 1 to 3, 4 to 7, 8 to 15, 16 and more
NESTING = 0.45  # more relative clauses than usual, so that there are long distances
MANY = 60  # meanings drawn for each contrast wanted, at most
TOPICAL = ("N", "AN", "V", "PLACE")  # words that tell the topic


@dataclass(frozen=True)
class Contrast:
    """Two sentences that differ in one thing."""

    phenomenon: str
    distance: int  # words between what decides and what is decided
    right: str
    wrong: str
    group: int  # the four contrasts of a crossed quadruple have one number


def distance_class(distance: int) -> int:
    """The smallest distance of the class."""
    return max(least for least in DISTANCES if least <= distance)


@dataclass(frozen=True)
class Sentence:
    """What the phenomena look at: a meaning, how one side says it, and chance."""

    grammar: Grammar
    meaning: Node
    side: int
    chance: random.Random

    @cached_property
    def said(self) -> Said:
        return say(self.meaning, self.side)

    @cached_property
    def places(self) -> list[Place]:
        return list(places(self.meaning))

    def clauses(self) -> Iterator[Place]:
        return (place for place in self.places if place.category == "CL")

    def with_node(self, place: Place, new: Node) -> tuple[str, ...]:
        """The words with another node there."""
        return words_of(graft(self.meaning, place.path, new), self.side)

    def distance(self, decides: Node, place: int) -> int:
        """Words between the word that decides and another place."""
        return max(0, abs(place - positions(self.said, decides)[-1]) - 1)

    def against(self, wrong: tuple[str, ...], distance: int = 0) -> Set:
        """This sentence as the right one."""
        return Set(distance, [(self.said.words, wrong)])

    def differences(self, wrong: tuple[str, ...]) -> list[int]:
        """Where the other sentence has another word."""
        return [place for place, (one, other) in enumerate(zip(self.said.words, wrong, strict=True)) if one != other]


class Set(NamedTuple):
    """Contrasts that belong together: right and wrong words."""

    distance: int
    pairs: list[tuple[tuple[str, ...], tuple[str, ...]]]
    kind: str = ""  # of which there shall be as many as of the other: singulars and plurals


Phenomenon = Callable[[Sentence], Iterator[Set]]


def contrasts(language: str, count: int = 100, seed: int = 1) -> list[Contrast]:
    """About `count` contrasts for each phenomenon and class of distance, or as many as the meanings drawn have."""
    side, rules = side_of(language), grammar(Words(nesting=NESTING))
    meanings, chance = Meanings(rules), random.Random(f"{seed} contrasts {language}")
    phenomena, have, groups = PHENOMENA[language], Counter[tuple[str, int, str]](), count_from(1)
    found: dict[str, list[Contrast]] = {name: [] for name in phenomena}
    seen: set[tuple[tuple[str, ...], tuple[str, ...]]] = set()
    for _ in range(MANY * count):
        sentence = Sentence(rules, meanings.draw(chance.random), side, chance)
        for name, phenomenon in phenomena.items():
            for distance, pairs, balanced in phenomenon(sentence):
                kind = (name, distance_class(distance), balanced)
                if have[kind] < (count / 2 if balanced else count) and seen.isdisjoint(pairs):
                    have[kind] += len(pairs)
                    seen.update(pairs)
                    found[name] += _contrasts(name, distance, pairs, next(groups))
    return [contrast for some in found.values() for contrast in some]


def _contrasts(
    name: str, distance: int, pairs: list[tuple[tuple[str, ...], tuple[str, ...]]], group: int
) -> Iterator[Contrast]:
    for right, wrong in pairs:
        yield Contrast(name, distance, " ".join(right), " ".join(wrong), group)


def to_tsv(found: Iterable[Contrast]) -> str:
    """Contrasts as a table with a header."""
    columns = [field.name for field in fields(Contrast)]
    rows = [columns, *([str(getattr(contrast, column)) for column in columns] for contrast in found)]
    return "".join("\t".join(row) + "\n" for row in rows)


# -- what both languages have -----------------------------------------------------------------------------------------


def agreement(sentence: Sentence) -> Iterator[Set]:
    """The verb has the number of its subject: the dog that sees the cats barks, not bark."""
    for place in sentence.clauses():
        kind, key, subject, number, obj, *rest = place.node.rule.name
        other = NUMBERS[1 - NUMBERS.index(number)]
        rule = sentence.grammar.named(place.node.rule.parent, (kind, key, subject, other, obj, *rest))
        noun, verb, *others = place.node.children
        if rule is None or _of_any_number(sentence, noun):
            continue
        other_verb = sentence.grammar.named(rule.children[1], verb.rule.name)
        assert other_verb is not None, "every verb has both numbers"
        disagreeing = Node(rule, place.node.ways, (noun, verb._replace(rule=other_verb), *others))
        wrong = sentence.with_node(place, disagreeing)
        if differences := sentence.differences(wrong):  # "will" has no number
            found = sentence.against(wrong, sentence.distance(head(noun), differences[0]))
            yield found._replace(kind=number)


def _of_any_number(sentence: Sentence, noun: Node) -> bool:
    """German "sie" is both she and they: only the verb tells."""
    return "sie" in (sentence.said.words[place] for place in positions(sentence.said, head(noun)))


def selection(sentence: Sentence) -> Iterator[Set]:
    """Subject and verb together prefer an object; all four of a crossed quadruple."""
    for place in sentence.clauses():
        if place.node.rule.name[1].startswith("quad"):
            pairs = [_one_of_four(sentence, place, *which) for which in product((0, 1), repeat=2)]
            subject, obj = (head(place.node.children[child]) for child in (0, 2))
            yield Set(sentence.distance(subject, positions(sentence.said, obj)[-1]), pairs)


def _one_of_four(sentence: Sentence, place: Place, subject: int, verb: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The sentence with one of the subjects and one of the verbs: with the object they prefer, and with the other."""
    g, (noun, does, what, *rest) = sentence.grammar, place.node.children
    said = []
    for preferred in (subject ^ verb, 1 - (subject ^ verb)):
        children = (
            _exchanged(g, noun, CROSSED_SUBJECTS, subject),
            _of_verb(g, does, verb),
            _exchanged(g, what, CROSSED_OBJECTS, preferred),
        )
        said.append(sentence.with_node(place, place.node._replace(children=(*children, *rest))))
    return said[0], said[1]


def _exchanged(g: Grammar, node: Node, kinds: tuple[str, str], which: int) -> Node:
    """A noun phrase about the other noun of a crossed pair: only its noun is exchanged."""
    for place in places(node):
        for kind in kinds:
            if place.category in ("N", "AN") and kind in features(place.node.rule):
                (rule,) = g.rules[with_feature(place.node.rule.parent, kind, kinds[which])]
                ways = tuple(min(way, len(rule.ways[side]) - 1) for side, way in enumerate(place.node.ways))
                return graft(node, place.path, Node(rule, (ways[0], ways[1]), ()))
    raise AssertionError("a crossed noun phrase has its noun")


def _of_verb(g: Grammar, node: Node, which: int) -> Node:
    old = "quad0" if "quad0" in features(node.rule) else "quad1"
    (rule,) = g.rules[with_feature(node.rule.parent, old, f"quad{which}")]
    return Node(rule, (0, 0), ())


def topic(sentence: Sentence) -> Iterator[Set]:
    """All nouns of a sentence belong to its topic."""
    order = {id(place.node): positions(sentence.said, place.node) for place in sentence.places}
    topical = [place for place in sentence.places if place.category in TOPICAL and order[id(place.node)]]
    topical.sort(key=lambda place: order[id(place.node)][0])
    for before, place in pairwise(topical):
        if place.category == "N":
            other = _of_another_topic(sentence, place.node)
            wrong = sentence.with_node(place, other) if other else ()
            if len(wrong) == len(sentence.said.words):
                there, here = order[id(before.node)][-1], order[id(place.node)][0]
                yield sentence.against(wrong, max(0, here - there - 1))


def _of_another_topic(sentence: Sentence, noun: Node) -> Node | None:
    """A noun that is used elsewhere as often as this one may be here; nothing, if that topic has none."""
    own = features(noun.rule)[0]
    other = sentence.chance.choice([name for name in TOPICS if name != own])
    rules = sentence.grammar.rules.get(with_feature(noun.rule.parent, own, other))
    if rules is None:
        return None
    return Node(sentence.chance.choices(rules, [rule.prob for rule in rules])[0], (0, 0), ())


def register(sentence: Sentence) -> Iterator[Set]:
    """A sentence that has formal words ends with a full stop, one that has casual words with an exclamation mark."""
    end = next(place for place in sentence.places if place.category == "END")
    marked = [place.node for place in sentence.places if _is_marked(sentence.grammar, place)]
    if end.node.rule.name == ("tag",) or not marked:
        return
    words = sentence.said.words
    last = max(positions(sentence.said, node)[-1] for node in marked)
    yield sentence.against((*words[:-1], {".": "!", "!": "."}[words[-1]]), len(words) - last - 2)


def _is_marked(g: Grammar, place: Place) -> bool:
    """Whether a word belongs to one register only."""
    rule = place.node.rule
    if place.category not in ("N", "AN", "V", "TIME", "CONJ", "SAY"):
        return False
    own = next(register for register in REGISTERS if register in features(rule))
    other = next(register for register in REGISTERS if register != own)
    return g.named(with_feature(rule.parent, own, other), rule.name) is None


# -- English ----------------------------------------------------------------------------------------------------------


def reflexive(sentence: Sentence) -> Iterator[Set]:
    """He ... himself, she ... herself, whatever stands between."""
    for place in sentence.clauses():
        kind, key, subject, number, obj, *rest = place.node.rule.name
        if obj == "self" and subject in PEOPLE:
            other = next(who for who in PEOPLE if who != subject)
            rule = sentence.grammar.named(place.node.rule.parent, (kind, key, other, number, obj, *rest))
            assert rule is not None, "men and women alike"
            wrong = sentence.with_node(place, place.node._replace(rule=rule))
            (there,) = sentence.differences(wrong)
            yield sentence.against(wrong, sentence.distance(head(place.node.children[0]), there))


def article(sentence: Sentence) -> Iterator[Set]:
    """An old dog, a young dog."""
    words = sentence.said.words
    for place, word in enumerate(words):
        if word in ("a", "an") and sentence.said.tags[place] == "DT":
            yield sentence.against((*words[:place], "an" if word == "a" else "a", *words[place + 1 :]))


# -- German -----------------------------------------------------------------------------------------------------------


def case(sentence: Sentence) -> Iterator[Set]:
    """What is done to is in the accusative: den Hund."""
    for place in sentence.places:
        if place.category == "BASE" and features(place.node.rule)[3:] == ["m", "sg", "acc"]:
            new = renamed(sentence.grammar, place.node, "acc", "nom")
            if place.node.rule.name == ("the", "noun") and new:
                yield sentence.against(sentence.with_node(place, new))


def gender(sentence: Sentence) -> Iterator[Set]:
    """Der Hund, die Katze, das Pferd."""
    for place in sentence.places:
        if place.category == "BASE" and place.node.rule.name == ("the", "noun"):
            *_, own, number, in_case = features(place.node.rule)
            there = positions(sentence.said, place.node)[0]
            forms = {DEFINITE[g][in_case] for g in "mfn"} - {DEFINITE[own][in_case]}
            if number == "sg" and in_case == "nom":
                words = sentence.said.words
                yield sentence.against((*words[:there], sentence.chance.choice(sorted(forms)), *words[there + 1 :]))


def verb_final(sentence: Sentence) -> Iterator[Set]:
    """The finite verb of a subordinate clause comes last, not second."""
    for place in sentence.clauses():
        items = place.node.rule.ways[GERMAN][place.node.ways[GERMAN]].items
        verb_final_mode = {"subordinate", "conditional"} & set(features(place.node.rule))
        if verb_final_mode and "+" not in place.node.rule.name[1] and len(items) > 2:
            wrong = sentence.with_node(place, said_otherwise(place.node, GERMAN, (items[0], items[-1], *items[1:-1])))
            last = sentence.differences(wrong)[-1]
            yield sentence.against(wrong, sentence.distance(head(place.node.children[0]), last))


def inversion(sentence: Sentence) -> Iterator[Set]:
    """After an adverbial the verb comes before the subject."""
    for place in sentence.clauses():
        ways = place.node.rule.ways[GERMAN]
        if "main" in features(place.node.rule) and place.node.ways[GERMAN] == 1:
            first, verb, subject, *rest = ways[1].items
            otherwise = said_otherwise(place.node, GERMAN, (first, subject, verb, *rest))
            yield sentence.against(sentence.with_node(place, otherwise))


def particle(sentence: Sentence) -> Iterator[Set]:
    """The particle of a separable verb waits at the end of the clause."""
    for place in sentence.clauses():
        verb = place.node.children[1]
        there = positions(sentence.said, verb)
        if len(there) == 2 and sentence.said.tags[there[1]] == "PTKVZ":
            words = sentence.said.words
            fitting = _particles_of(sentence.grammar, verb, words[there[0]])
            others = {other: share for other, share in _particle_shares().items() if other not in fitting}
            (other,) = sentence.chance.choices(list(others), list(others.values()))
            wrong = (*words[: there[1]], other, *words[there[1] + 1 :])
            yield sentence.against(wrong, there[1] - there[0] - 1)


@cache
def _particle_shares() -> dict[str, float]:
    """How often each particle is met, so that wrong ones are as frequent as right ones."""
    shares: dict[str, float] = defaultdict(float)
    for symbol, rules in grammar(Words(nesting=NESTING)).rules.items():
        for rule in rules if symbol.startswith("CL[") else ():
            for item in rule.ways[GERMAN][0].items:
                if not isinstance(item, int) and item.tag == "PTKVZ":
                    shares[item.word] += rule.prob
    return shares


def _particles_of(g: Grammar, verb: Node, form: str) -> set[str]:
    """The particles that this form of a verb goes with, whatever the frame."""
    ends = tuple(features(verb.rule)[-1:])
    found = set()
    for symbol, rules in g.rules.items():
        if symbol.startswith("V[") and symbol.rstrip("]").endswith(ends) and "+" in symbol:
            said = {way.items[0][0] for rule in rules for way in rule.ways[GERMAN] if not isinstance(way.items[0], int)}
            if form in said:
                found.add(symbol.split("+")[1].partition(",")[0])
    return found


PHENOMENA: dict[str, dict[str, Phenomenon]] = {
    "en": {
        "agreement": agreement,
        "reflexive": reflexive,
        "selection": selection,
        "topic": topic,
        "register": register,
        "article": article,
    },
    "de": {
        "agreement": agreement,
        "selection": selection,
        "topic": topic,
        "register": register,
        "case": case,
        "gender": gender,
        "verb-final": verb_final,
        "inversion": inversion,
        "particle": particle,
    },
}
