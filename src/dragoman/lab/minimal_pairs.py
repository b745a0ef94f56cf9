"""Minimal pairs: a correct sentence and one with a single error, for each phenomenon of the lab's grammar.

The wrong sentence is impossible in the grammar or much less probable, so a model that has learned the phenomenon gives
the right sentence a higher probability.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from functools import cache, cached_property
from itertools import count as count_from
from itertools import pairwise, product
from typing import NamedTuple

from dragoman.lab.derivation import (
    AnnotatedSentence,
    Derivation,
    DerivationSampler,
    Subtree,
    features_of,
    head_of,
    realize,
    realize_words,
    replace_subtree,
    subtrees,
    with_feature,
    with_german_order,
)
from dragoman.lab.grammar import GERMAN, Grammar, Rule, Terminal
from dragoman.lab.lab import language_index
from dragoman.lab.lexical_rules import CROSSED_OBJECTS, CROSSED_SUBJECTS, PERSON_SHARES
from dragoman.lab.lexicon import DEFINITE, GENDERS, NUMBERS, REGISTERS, TOPICS
from dragoman.lab.sentence_rules import VERB_FINAL_MODES, german_english_grammar

DISTANCE_CLASSES = (0, 1, 4, 8, 16)  # the smallest distances of the classes 0, 1 to 3, 4 to 7, 8 to 15, 16 and more
RELATIVE_CLAUSE_SHARE = 0.45  # more relative clauses than in the corpus, for long distances
MAX_DERIVATIONS_PER_PAIR = 60
TOPIC_CATEGORIES = ("N", "AN", "V", "PLACE")  # words that show the topic
REGISTER_CATEGORIES = ("N", "AN", "V", "TIME", "CONJ", "SAY")  # words that may show the register

WordPair = tuple[tuple[str, ...], tuple[str, ...]]  # words of the right and of the wrong sentence


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in one respect."""

    phenomenon: str
    distance: int  # number of words between the word that determines the correct form and the form itself
    right: str
    wrong: str
    group: int  # the same for the four pairs of a crossed quadruple


class MinimalPairSet(NamedTuple):
    """Minimal pairs that belong together."""

    distance: int
    pairs: list[WordPair]
    kind: str = ""  # sets of different kinds, such as singulars and plurals, are sampled equally often


@dataclass(frozen=True)
class DerivedSentence:
    """A derivation and its sentence in one language, with the random generator for choosing errors."""

    grammar: Grammar
    derivation: Derivation
    language: int
    generator: random.Random

    @cached_property
    def sentence(self) -> AnnotatedSentence:
        return realize(self.derivation, self.language)

    @property
    def words(self) -> tuple[str, ...]:
        return self.sentence.words

    @cached_property
    def subtrees(self) -> list[Subtree]:
        return list(subtrees(self.derivation))

    def of_category(self, *categories: str) -> list[Subtree]:
        return [subtree for subtree in self.subtrees if subtree.category in categories]

    def positions(self, node: Derivation) -> list[int]:
        """Return the positions of the words that a node's own rule adds."""
        return [position for position, link in enumerate(self.sentence.links) if link and link[0] == id(node)]

    def distance(self, node: Derivation, position: int) -> int:
        """Return the number of words between the last word of a node and a position."""
        return max(0, abs(position - self.positions(node)[-1]) - 1)

    def words_with(self, subtree: Subtree, new: Derivation) -> tuple[str, ...]:
        """Return the words of the sentence with another subtree in the place of one."""
        return tuple(realize_words(replace_subtree(self.derivation, subtree.path, new), self.language))

    def words_with_word(self, position: int, word: str) -> tuple[str, ...]:
        """Return the words of the sentence with one word replaced."""
        return (*self.words[:position], word, *self.words[position + 1 :])

    def differences(self, wrong: tuple[str, ...]) -> list[int]:
        """Return the positions at which another sentence of the same length differs."""
        pairs = zip(self.words, wrong, strict=True)
        return [position for position, (right, other) in enumerate(pairs) if right != other]

    def minimal_pair(self, wrong: tuple[str, ...], distance: int = 0, kind: str = "") -> MinimalPairSet:
        """Return a set of one pair, with this sentence as the right one."""
        return MinimalPairSet(distance, [(self.words, wrong)], kind)


Phenomenon = Callable[[DerivedSentence], Iterator[MinimalPairSet]]


def distance_class(distance: int) -> int:
    """Return the smallest distance of a distance's class."""
    return max(smallest for smallest in DISTANCE_CLASSES if smallest <= distance)


def sample_minimal_pairs(language: str, count: int = 100, seed: int = 1) -> list[MinimalPair]:
    """Sample about `count` pairs for each phenomenon and distance class, fewer where they are hard to find."""
    index, grammar = language_index(language), german_english_grammar(RELATIVE_CLAUSE_SHARE)
    sampler, generator = DerivationSampler(grammar), random.Random(f"{seed} contrasts {language}")
    phenomena, counts, groups = PHENOMENA[language], Counter[tuple[str, int, str]](), count_from(1)
    sampled: dict[str, list[MinimalPair]] = {name: [] for name in phenomena}
    used: set[WordPair] = set()
    for _ in range(MAX_DERIVATIONS_PER_PAIR * count):
        sentence = DerivedSentence(grammar, sampler.sample(generator.random), index, generator)
        for name, phenomenon in phenomena.items():
            for distance, pairs, kind in phenomenon(sentence):
                key = (name, distance_class(distance), kind)
                if counts[key] < (count / 2 if kind else count) and used.isdisjoint(pairs):
                    counts[key] += len(pairs)
                    used.update(pairs)
                    group = next(groups)
                    for right, wrong in pairs:
                        sampled[name].append(MinimalPair(name, distance, " ".join(right), " ".join(wrong), group))
    return [pair for pairs_of_phenomenon in sampled.values() for pair in pairs_of_phenomenon]


def to_tsv(pairs: Iterable[MinimalPair]) -> str:
    """Return minimal pairs as a table with a header."""
    rows = [[field.name for field in fields(MinimalPair)], *(astuple(pair) for pair in pairs)]
    return "".join("\t".join(map(str, row)) + "\n" for row in rows)


# -- phenomena of both languages --------------------------------------------------------------------------------------


def agreement(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The verb agrees with its subject in number: the dog that sees the cats barks, not bark."""
    for clause in sentence.of_category("CL"):
        rule, choices, (noun, verb, *others) = clause.derivation
        kind, key, subject, number, *rest = rule.name
        other_number = NUMBERS[1 - NUMBERS.index(number)]
        other_rule = sentence.grammar.rule_named(rule.parent, (kind, key, subject, other_number, *rest))
        is_ambiguous = "sie" in (sentence.words[position] for position in sentence.positions(head_of(noun)))
        if other_rule is None or is_ambiguous:  # German "sie" is both "she" and "they"
            continue
        other_verb = sentence.grammar.rule_named(other_rule.children[1], verb.rule.name)
        assert other_verb is not None, "every verb has both numbers"
        disagreeing = Derivation(other_rule, choices, (noun, verb._replace(rule=other_verb), *others))
        wrong = sentence.words_with(clause, disagreeing)
        if differences := sentence.differences(wrong):  # none for "will"
            yield sentence.minimal_pair(wrong, sentence.distance(head_of(noun), differences[0]), kind=number)


def selection(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """Subject and verb of a crossed quadruple together prefer an object; a set has all four combinations."""
    for clause in sentence.of_category("CL"):
        if clause.derivation.rule.name[1].startswith("quad"):
            pairs = [_crossed_pair(sentence, clause, subject, verb) for subject, verb in product((0, 1), repeat=2)]
            subject, obj = (head_of(clause.derivation.children[child]) for child in (0, 2))
            yield MinimalPairSet(sentence.distance(subject, sentence.positions(obj)[-1]), pairs)


def _crossed_pair(sentence: DerivedSentence, clause: Subtree, subject: int, verb: int) -> WordPair:
    """Return the sentence with one subject and verb of the quadruple, with the preferred and with the other object."""
    subject_node, verb_node, object_node, *rest = clause.derivation.children
    new_subject = _with_crossed_word(sentence.grammar, subject_node, CROSSED_SUBJECTS, subject)
    new_verb = _with_crossed_word(sentence.grammar, verb_node, ("quad0", "quad1"), verb)
    words = []
    for obj in (subject ^ verb, 1 - (subject ^ verb)):
        new_object = _with_crossed_word(sentence.grammar, object_node, CROSSED_OBJECTS, obj)
        new_clause = clause.derivation._replace(children=(new_subject, new_verb, new_object, *rest))
        words.append(sentence.words_with(clause, new_clause))
    return words[0], words[1]


def _with_crossed_word(grammar: Grammar, node: Derivation, kinds: tuple[str, str], index: int) -> Derivation:
    """Return a noun phrase or a verb of a quadruple with one of the two words."""
    for subtree, kind in product(subtrees(node), kinds):
        if subtree.category in ("N", "AN", "V") and kind in features_of(subtree.derivation.rule):
            (rule,) = grammar.rules[with_feature(subtree.derivation.rule.parent, kind, kinds[index])]
            german, english = (
                min(choice, len(sides) - 1)
                for choice, sides in zip(subtree.derivation.choices, rule.right_sides, strict=True)
            )
            return replace_subtree(node, subtree.path, Derivation(rule, (german, english), ()))
    raise AssertionError("a phrase of a crossed quadruple has its word")


def topic(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """All nouns of a sentence belong to its topic."""
    topical = [(sentence.positions(subtree.derivation), subtree) for subtree in sentence.of_category(*TOPIC_CATEGORIES)]
    topical = sorted((pair for pair in topical if pair[0]), key=lambda pair: pair[0][0])
    for (previous_positions, _), (positions, subtree) in pairwise(topical):
        if subtree.category == "N":
            noun = subtree.derivation.rule
            noun_topic = features_of(noun)[0]
            other_topic = sentence.generator.choice([name for name in TOPICS if name != noun_topic])
            nouns = sentence.grammar.rules.get(with_feature(noun.parent, noun_topic, other_topic))
            if nouns is not None:  # some topics have no noun of this kind and gender
                (other_noun,) = sentence.generator.choices(nouns, [rule.prob for rule in nouns])
                wrong = sentence.words_with(subtree, Derivation(other_noun, (0, 0), ()))
                if len(wrong) == len(sentence.words):
                    yield sentence.minimal_pair(wrong, max(0, positions[0] - previous_positions[-1] - 1))


def register(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """A sentence with formal words ends with a full stop, one with casual words with an exclamation mark."""
    (end,) = sentence.of_category("END")
    candidates = [subtree.derivation for subtree in sentence.of_category(*REGISTER_CATEGORIES)]
    specific = [node for node in candidates if _is_register_specific(sentence.grammar, node.rule)]
    if end.derivation.rule.name != ("tag",) and specific:
        last = len(sentence.words) - 1
        wrong = sentence.words_with_word(last, {".": "!", "!": "."}[sentence.words[last]])
        yield sentence.minimal_pair(wrong, last - 1 - max(sentence.positions(node)[-1] for node in specific))


def _is_register_specific(grammar: Grammar, rule: Rule) -> bool:
    """Whether a word belongs to only one register."""
    formal, casual = (with_feature(rule.parent, old, new) for old, new in (REGISTERS[::-1], REGISTERS))
    return grammar.rule_named(formal, rule.name) is None or grammar.rule_named(casual, rule.name) is None


# -- English phenomena ------------------------------------------------------------------------------------------------


def reflexive(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The reflexive pronoun agrees with the subject in gender: he ... himself, she ... herself."""
    for clause in sentence.of_category("CL"):
        parent, (kind, key, subject, number, obj, *rest) = clause.derivation.rule.parent, clause.derivation.rule.name
        if obj == "self" and subject in PERSON_SHARES:
            other = next(person for person in PERSON_SHARES if person != subject)
            rule = sentence.grammar.rule_named(parent, (kind, key, other, number, obj, *rest))
            assert rule is not None, "every reflexive verb has subjects of both genders"
            wrong = sentence.words_with(clause, clause.derivation._replace(rule=rule))
            (position,) = sentence.differences(wrong)
            yield sentence.minimal_pair(wrong, sentence.distance(head_of(clause.derivation.children[0]), position))


def article(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The indefinite article depends on the next word: an old dog, a young dog."""
    for position, word in enumerate(sentence.words):
        if word in ("a", "an") and sentence.sentence.tags[position] == "DT":
            yield sentence.minimal_pair(sentence.words_with_word(position, "an" if word == "a" else "a"))


# -- German phenomena -------------------------------------------------------------------------------------------------


def case(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """A direct object is in the accusative: den Hund, not der Hund."""
    for subtree in sentence.of_category("BASE"):
        rule = subtree.derivation.rule
        if rule.name == ("the", "noun") and features_of(rule)[3:] == ["m", "sg", "acc"]:
            nominative = sentence.grammar.rule_named(with_feature(rule.parent, "acc", "nom"), rule.name)
            if nominative:
                new = subtree.derivation._replace(rule=nominative)
                yield sentence.minimal_pair(sentence.words_with(subtree, new))


def gender(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The article agrees with the noun in gender: der Hund, die Katze, das Pferd."""
    for subtree in sentence.of_category("BASE"):
        *_, noun_gender, number, noun_case = features_of(subtree.derivation.rule)
        if subtree.derivation.rule.name == ("the", "noun") and (number, noun_case) == ("sg", "nom"):
            wrong_articles = {DEFINITE[other]["nom"] for other in GENDERS} - {DEFINITE[noun_gender]["nom"]}
            wrong_article = sentence.generator.choice(sorted(wrong_articles))
            position = sentence.positions(subtree.derivation)[0]
            yield sentence.minimal_pair(sentence.words_with_word(position, wrong_article))


def verb_final(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The finite verb of a subordinate clause is last, not second."""
    for clause in sentence.of_category("CL"):
        node = clause.derivation
        items = node.rule.right_sides[GERMAN][node.choices[GERMAN]].items
        is_verb_final = not set(VERB_FINAL_MODES).isdisjoint(features_of(node.rule))
        if is_verb_final and "+" not in node.rule.name[1] and len(items) > 2:
            verb_second = with_german_order(node, (items[0], items[-1], *items[1:-1]))
            wrong = sentence.words_with(clause, verb_second)
            last = sentence.differences(wrong)[-1]
            yield sentence.minimal_pair(wrong, sentence.distance(head_of(node.children[0]), last))


def inversion(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """After a fronted adverbial the verb precedes the subject."""
    for clause in sentence.of_category("CL"):
        node = clause.derivation
        if "main" in features_of(node.rule) and node.choices[GERMAN] == 1:
            adverbial, verb, subject, *rest = node.rule.right_sides[GERMAN][1].items
            uninverted = with_german_order(node, (adverbial, subject, verb, *rest))
            yield sentence.minimal_pair(sentence.words_with(clause, uninverted))


def particle(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The particle of a separable verb stands at the end of the clause and belongs to the verb."""
    for clause in sentence.of_category("CL"):
        verb = clause.derivation.children[1]
        positions = sentence.positions(verb)
        if len(positions) == 2 and sentence.sentence.tags[positions[1]] == "PTKVZ":
            possible = _particles_by_form()[features_of(verb.rule)[-1], sentence.words[positions[0]]]
            others = {other: share for other, share in _particle_shares().items() if other not in possible}
            (other,) = sentence.generator.choices(list(others), list(others.values()))
            wrong = sentence.words_with_word(positions[1], other)
            yield sentence.minimal_pair(wrong, positions[1] - positions[0] - 1)


@cache
def _particle_shares() -> dict[str, float]:
    """Return the frequency of each particle, so that wrong particles are as frequent as right ones."""
    shares: dict[str, float] = defaultdict(float)
    for symbol, rules in german_english_grammar(RELATIVE_CLAUSE_SHARE).rules.items():
        for rule in rules if symbol.startswith("CL[") else ():
            for item in rule.right_sides[GERMAN][0].items:
                if isinstance(item, Terminal) and item.tag == "PTKVZ":
                    shares[item.word] += rule.prob
    return shares


@cache
def _particles_by_form() -> dict[tuple[str, str], set[str]]:
    """Return the particles that each word occurs with as a form of a verb, in any frame."""
    particles: dict[tuple[str, str], set[str]] = defaultdict(set)
    for symbol, rules in german_english_grammar(RELATIVE_CLAUSE_SHARE).rules.items():
        if symbol.startswith("V[") and "+" in symbol:
            *_, group, form = symbol.rstrip("]").split(",")
            for item in (side.items[0] for rule in rules for side in rule.right_sides[GERMAN]):
                if isinstance(item, Terminal):
                    particles[form, item.word].add(group.split("+")[1])
    return particles


PHENOMENA: dict[str, dict[str, Phenomenon]] = {
    language: {phenomenon.__name__.replace("_", "-"): phenomenon for phenomenon in phenomena}
    for language, phenomena in {
        "en": (agreement, reflexive, selection, topic, register, article),
        "de": (agreement, selection, topic, register, case, gender, verb_final, inversion, particle),
    }.items()
}
