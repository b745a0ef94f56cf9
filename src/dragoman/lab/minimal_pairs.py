"""Minimal pairs: a correct sentence and one with a single error, for each phenomenon of the lab's grammar.

The wrong sentence is impossible in the grammar or much less probable, so a model that has learned the phenomenon gives
the right sentence a higher probability.
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
    with_renamed_feature,
    with_word_order,
    word_positions,
)
from dragoman.lab.grammar import GERMAN, Grammar, Terminal
from dragoman.lab.lab import language_index
from dragoman.lab.lexicon import DEFINITE, TOPICS
from dragoman.lab.sentence_rules import VERB_FINAL_MODES, german_english_grammar
from dragoman.lab.word_distributions import (
    CROSSED_OBJECTS,
    CROSSED_SUBJECTS,
    NUMBERS,
    PERSON_SHARES,
    REGISTER_SHARES,
    LabLexicon,
)

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

    def clauses(self) -> Iterator[Subtree]:
        return (subtree for subtree in self.subtrees if subtree.category == "CL")

    def positions(self, node: Derivation) -> list[int]:
        return word_positions(self.sentence, node)

    def words_with(self, subtree: Subtree, new: Derivation) -> tuple[str, ...]:
        """Return the words of the sentence with another subtree in the place of one."""
        return realize_words(replace_subtree(self.derivation, subtree.path, new), self.language)

    def words_with_word(self, position: int, word: str) -> tuple[str, ...]:
        """Return the words of the sentence with one word replaced."""
        return (*self.words[:position], word, *self.words[position + 1 :])

    def distance(self, node: Derivation, position: int) -> int:
        """Return the number of words between the last word of a node and a position."""
        return max(0, abs(position - self.positions(node)[-1]) - 1)

    def minimal_pair(self, wrong: tuple[str, ...], distance: int = 0, kind: str = "") -> MinimalPairSet:
        """Return a set of one pair, with this sentence as the right one."""
        return MinimalPairSet(distance, [(self.words, wrong)], kind)

    def differences(self, wrong: tuple[str, ...]) -> list[int]:
        """Return the positions at which another sentence of the same length differs."""
        pairs = zip(self.words, wrong, strict=True)
        return [position for position, (right, other) in enumerate(pairs) if right != other]


Phenomenon = Callable[[DerivedSentence], Iterator[MinimalPairSet]]


def distance_class(distance: int) -> int:
    """Return the smallest distance of a distance's class."""
    return max(smallest for smallest in DISTANCE_CLASSES if smallest <= distance)


def sample_minimal_pairs(language: str, count: int = 100, seed: int = 1) -> list[MinimalPair]:
    """Sample about `count` pairs for each phenomenon and distance class, fewer where they are hard to find."""
    index, grammar = language_index(language), _grammar()
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


def _grammar() -> Grammar:
    return german_english_grammar(LabLexicon(relative_clause_share=RELATIVE_CLAUSE_SHARE))


def to_tsv(pairs: Iterable[MinimalPair]) -> str:
    """Return minimal pairs as a table with a header."""
    columns = [field.name for field in fields(MinimalPair)]
    rows = [columns, *([str(getattr(pair, column)) for column in columns] for pair in pairs)]
    return "".join("\t".join(row) + "\n" for row in rows)


# -- phenomena of both languages --------------------------------------------------------------------------------------


def agreement(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The verb agrees with its subject in number: the dog that sees the cats barks, not bark."""
    for clause in sentence.clauses():
        kind, key, subject, number, obj, *rest = clause.derivation.rule.name
        other_number = NUMBERS[1 - NUMBERS.index(number)]
        parent = clause.derivation.rule.parent
        rule = sentence.grammar.rule_named(parent, (kind, key, subject, other_number, obj, *rest))
        noun, verb, *others = clause.derivation.children
        if rule is None or _is_ambiguous_in_number(sentence, noun):
            continue
        other_verb = sentence.grammar.rule_named(rule.children[1], verb.rule.name)
        assert other_verb is not None, "every verb has both numbers"
        disagreeing = Derivation(rule, clause.derivation.choices, (noun, verb._replace(rule=other_verb), *others))
        wrong = sentence.words_with(clause, disagreeing)
        if differences := sentence.differences(wrong):  # none for "will"
            yield sentence.minimal_pair(wrong, sentence.distance(head_of(noun), differences[0]), kind=number)


def _is_ambiguous_in_number(sentence: DerivedSentence, noun: Derivation) -> bool:
    """German "sie" is both "she" and "they"."""
    return "sie" in (sentence.words[position] for position in sentence.positions(head_of(noun)))


def selection(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """Subject and verb of a crossed quadruple together prefer an object; a set has all four combinations."""
    for clause in sentence.clauses():
        if clause.derivation.rule.name[1].startswith("quad"):
            pairs = [_crossed_pair(sentence, clause, subject, verb) for subject, verb in product((0, 1), repeat=2)]
            subject, obj = (head_of(clause.derivation.children[child]) for child in (0, 2))
            yield MinimalPairSet(sentence.distance(subject, sentence.positions(obj)[-1]), pairs)


def _crossed_pair(sentence: DerivedSentence, clause: Subtree, subject: int, verb: int) -> WordPair:
    """Return the sentence with one subject and verb of the quadruple, with the preferred and with the other object."""
    grammar, (subject_node, verb_node, object_node, *rest) = sentence.grammar, clause.derivation.children
    words = []
    for obj in (subject ^ verb, 1 - (subject ^ verb)):
        children = (
            _with_crossed_noun(grammar, subject_node, CROSSED_SUBJECTS, subject),
            _with_crossed_verb(grammar, verb_node, verb),
            _with_crossed_noun(grammar, object_node, CROSSED_OBJECTS, obj),
        )
        words.append(sentence.words_with(clause, clause.derivation._replace(children=(*children, *rest))))
    return words[0], words[1]


def _with_crossed_noun(grammar: Grammar, node: Derivation, kinds: tuple[str, str], index: int) -> Derivation:
    """Return a noun phrase of a quadruple with one of the two nouns."""
    for subtree in subtrees(node):
        for kind in kinds:
            if subtree.category in ("N", "AN") and kind in features_of(subtree.derivation.rule):
                (rule,) = grammar.rules[with_feature(subtree.derivation.rule.parent, kind, kinds[index])]
                german, english = (
                    min(choice, len(rule.right_sides[language]) - 1)
                    for language, choice in enumerate(subtree.derivation.choices)
                )
                return replace_subtree(node, subtree.path, Derivation(rule, (german, english), ()))
    raise AssertionError("a noun phrase of a crossed quadruple has its noun")


def _with_crossed_verb(grammar: Grammar, node: Derivation, index: int) -> Derivation:
    old = "quad0" if "quad0" in features_of(node.rule) else "quad1"
    (rule,) = grammar.rules[with_feature(node.rule.parent, old, f"quad{index}")]
    return Derivation(rule, (0, 0), ())


def topic(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """All nouns of a sentence belong to its topic."""
    positions = {id(subtree.derivation): sentence.positions(subtree.derivation) for subtree in sentence.subtrees}
    topical = [
        subtree
        for subtree in sentence.subtrees
        if subtree.category in TOPIC_CATEGORIES and positions[id(subtree.derivation)]
    ]
    topical.sort(key=lambda subtree: positions[id(subtree.derivation)][0])
    for previous, subtree in pairwise(topical):
        if subtree.category == "N":
            noun = _noun_of_another_topic(sentence, subtree.derivation)
            wrong = sentence.words_with(subtree, noun) if noun else ()
            if len(wrong) == len(sentence.words):
                distance = positions[id(subtree.derivation)][0] - positions[id(previous.derivation)][-1] - 1
                yield sentence.minimal_pair(wrong, max(0, distance))


def _noun_of_another_topic(sentence: DerivedSentence, noun: Derivation) -> Derivation | None:
    """Sample a noun from the corresponding distribution of another topic; None if that topic has none."""
    noun_topic = features_of(noun.rule)[0]
    other = sentence.generator.choice([name for name in TOPICS if name != noun_topic])
    rules = sentence.grammar.rules.get(with_feature(noun.rule.parent, noun_topic, other))
    if rules is None:
        return None
    return Derivation(sentence.generator.choices(rules, [rule.prob for rule in rules])[0], (0, 0), ())


def register(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """A sentence with formal words ends with a full stop, one with casual words with an exclamation mark."""
    end = next(subtree for subtree in sentence.subtrees if subtree.category == "END")
    specific = [s.derivation for s in sentence.subtrees if _is_register_specific(sentence.grammar, s)]
    if end.derivation.rule.name == ("tag",) or not specific:
        return
    last = len(sentence.words) - 1
    wrong = sentence.words_with_word(last, {".": "!", "!": "."}[sentence.words[last]])
    yield sentence.minimal_pair(wrong, last - 1 - max(sentence.positions(node)[-1] for node in specific))


def _is_register_specific(grammar: Grammar, subtree: Subtree) -> bool:
    """Whether a word belongs to only one register."""
    if subtree.category not in REGISTER_CATEGORIES:
        return False
    rule = subtree.derivation.rule
    rule_register = next(register for register in REGISTER_SHARES if register in features_of(rule))
    other = next(register for register in REGISTER_SHARES if register != rule_register)
    return grammar.rule_named(with_feature(rule.parent, rule_register, other), rule.name) is None


# -- English phenomena ------------------------------------------------------------------------------------------------


def reflexive(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The reflexive pronoun agrees with the subject in gender: he ... himself, she ... herself."""
    for clause in sentence.clauses():
        kind, key, subject, number, obj, *rest = clause.derivation.rule.name
        if obj == "self" and subject in PERSON_SHARES:
            other = next(person for person in PERSON_SHARES if person != subject)
            parent = clause.derivation.rule.parent
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
    for subtree in sentence.subtrees:
        node = subtree.derivation
        if subtree.category == "BASE" and features_of(node.rule)[3:] == ["m", "sg", "acc"]:
            nominative = with_renamed_feature(sentence.grammar, node, "acc", "nom")
            if node.rule.name == ("the", "noun") and nominative:
                yield sentence.minimal_pair(sentence.words_with(subtree, nominative))


def gender(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The article agrees with the noun in gender: der Hund, die Katze, das Pferd."""
    for subtree in sentence.subtrees:
        if subtree.category == "BASE" and subtree.derivation.rule.name == ("the", "noun"):
            *_, noun_gender, number, noun_case = features_of(subtree.derivation.rule)
            position = sentence.positions(subtree.derivation)[0]
            wrong_articles = {DEFINITE[g][noun_case] for g in "mfn"} - {DEFINITE[noun_gender][noun_case]}
            if number == "sg" and noun_case == "nom":
                wrong_article = sentence.generator.choice(sorted(wrong_articles))
                yield sentence.minimal_pair(sentence.words_with_word(position, wrong_article))


def verb_final(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The finite verb of a subordinate clause is last, not second."""
    for clause in sentence.clauses():
        node = clause.derivation
        items = node.rule.right_sides[GERMAN][node.choices[GERMAN]].items
        is_verb_final = not set(VERB_FINAL_MODES).isdisjoint(features_of(node.rule))
        if is_verb_final and "+" not in node.rule.name[1] and len(items) > 2:
            verb_second = with_word_order(node, GERMAN, (items[0], items[-1], *items[1:-1]))
            wrong = sentence.words_with(clause, verb_second)
            last = sentence.differences(wrong)[-1]
            yield sentence.minimal_pair(wrong, sentence.distance(head_of(node.children[0]), last))


def inversion(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """After a fronted adverbial the verb precedes the subject."""
    for clause in sentence.clauses():
        node = clause.derivation
        if "main" in features_of(node.rule) and node.choices[GERMAN] == 1:
            adverbial, verb, subject, *rest = node.rule.right_sides[GERMAN][1].items
            uninverted = with_word_order(node, GERMAN, (adverbial, subject, verb, *rest))
            yield sentence.minimal_pair(sentence.words_with(clause, uninverted))


def particle(sentence: DerivedSentence) -> Iterator[MinimalPairSet]:
    """The particle of a separable verb stands at the end of the clause and belongs to the verb."""
    for clause in sentence.clauses():
        verb = clause.derivation.children[1]
        positions = sentence.positions(verb)
        if len(positions) == 2 and sentence.sentence.tags[positions[1]] == "PTKVZ":
            possible = _particles_of(sentence.grammar, verb, sentence.words[positions[0]])
            others = {other: share for other, share in _particle_shares().items() if other not in possible}
            (other,) = sentence.generator.choices(list(others), list(others.values()))
            wrong = sentence.words_with_word(positions[1], other)
            yield sentence.minimal_pair(wrong, positions[1] - positions[0] - 1)


@cache
def _particle_shares() -> dict[str, float]:
    """Return the frequency of each particle, so that wrong particles are as frequent as right ones."""
    shares: dict[str, float] = defaultdict(float)
    for symbol, rules in _grammar().rules.items():
        for rule in rules if symbol.startswith("CL[") else ():
            for item in rule.right_sides[GERMAN][0].items:
                if isinstance(item, Terminal) and item.tag == "PTKVZ":
                    shares[item.word] += rule.prob
    return shares


def _particles_of(grammar: Grammar, verb: Derivation, form: str) -> set[str]:
    """Return the particles that this form of a verb occurs with, in any frame."""
    form_feature = tuple(features_of(verb.rule)[-1:])
    particles = set()
    for symbol, rules in grammar.rules.items():
        if symbol.startswith("V[") and symbol.rstrip("]").endswith(form_feature) and "+" in symbol:
            first_items = {side.items[0] for rule in rules for side in rule.right_sides[GERMAN]}
            if form in {item.word for item in first_items if isinstance(item, Terminal)}:
                particles.add(symbol.split("+")[1].partition(",")[0])
    return particles


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
