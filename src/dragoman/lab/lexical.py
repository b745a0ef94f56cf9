"""The rules of single words: each entry of the lexicon in the forms that the grammar asks for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import product

from dragoman.lab.inflection import CASES, GENDERS, INDEFINITE, mixed_ending
from dragoman.lab.lexicon import ADJECTIVE_ENDINGS, EnglishVerb, GermanNoun, GermanVerb, Noun, Phrase, Verb
from dragoman.lab.names import FEMALE, MALE, Digits, Names
from dragoman.lab.synchronous import Builder, symbol
from dragoman.lab.words import GENERAL, NUMBERS, ROLES, Words, synonym_shares

Expression = Sequence[str]  # one or more words

PREPOSITIONS: dict[str, list[Expression]] = {"mit": [("with",)], "neben": [("next", "to"), ("beside",)]}
FORMS = ("finite-sg", "finite-pl", "joined-sg", "joined-pl", "infinitive", "participle")
DIGITS = 0.12  # how many numbers are written in digits


def lexical(b: Builder, words: Words) -> None:
    """All of them, and the classes of words that are made up."""
    for topic, register in words.scenes():
        for kind in ROLES:
            _nouns(b, words, topic, register, kind)
        _verbs(b, words, topic, register)
        _phrases(b, words, topic, register, "place", "PLACE")
    for register in words.registers:
        _adjectives(b, words, register)
        _phrases(b, words, GENERAL, register, "time", "TIME")
        _phrases(b, words, GENERAL, register, "conjunction", "CONJ")
        _saying(b, words, register)
        for german, english in PREPOSITIONS.items():
            b.add(symbol("P", register), 1.0, {}, said([(german,)], "APPR"), said(english, "IN"), (german,))
    _numbers(b, words)
    b.open_classes.update({"NAME[man]": Names.ending(MALE), "NAME[woman]": Names.ending(FEMALE), "DIGITS": Digits()})


def said(synonyms: Iterable[Expression], tag: str, article: Callable[[str], str] = lambda word: "") -> dict[str, float]:
    """Synonyms as templates with their shares; all their words translate all words of the other side.

    An article before them, if any, translates the other side's article.
    """
    every = list(synonyms)
    ways = {}
    for expression, share in zip(every, synonym_shares(len(every)), strict=True):
        words = [f"{word.lower()}/{tag if word.islower() else 'NN'}=" for word in expression]
        ways[" ".join([*article(expression[0]).split(), *words])] = share
    return ways


def a_or_an(word: str) -> str:
    """The lexicon has no words that sound otherwise than they are spelled at their beginning."""
    return "an/DT=d" if word[0] in "aeiou" else "a/DT=d"


def _ein(gender: str, case: str) -> Callable[[str], str]:
    article = f"{INDEFINITE[gender][case]}/ART=d"
    return lambda word: article


def _nouns(b: Builder, words: Words, t: str, r: str, kind: str) -> None:
    """Every noun in all its cases, and in the singular also with "a"."""
    for noun, weight in words.nouns(t, r, kind):
        for number, case in product(NUMBERS, CASES):
            features = (t, r, kind, noun.gender, number, case)
            german = [(german_noun(form, number, case),) for form in noun.german]
            english = [form.singular if number == "sg" else form.plural for form in noun.english]
            b.add(symbol("N", *features), weight, {}, said(german, "NN"), said(english, "N"), _name(noun))
            if number == "sg":
                with_a = said(german, "NN", _ein(noun.gender, case)), said(english, "N", a_or_an)
                b.add(symbol("AN", *features), weight, {}, *with_a, _name(noun))


def german_noun(noun: GermanNoun, number: str, case: str) -> str:
    if number == "pl":
        return noun.dative_plural if case == "dat" else noun.plural
    return noun.singular if case == "nom" else noun.oblique


def _name(entry: Noun | Verb) -> tuple[str, ...]:
    """Two entries may share a German word or an English one, not both."""
    return " ".join(map(str, entry.german)), " ".join(map(str, entry.english))


def _verbs(b: Builder, words: Words, t: str, r: str) -> None:
    groups = {(g.frame, g.particle, g.sein, g.number): g for g in words.verb_groups(t, r)}
    for verb, weight in words.verbs(t, r):
        group = groups[words.group_key(t, verb)]
        for form in FORMS:
            german = said([(german_verb(v, form),) for v in verb.german], "V")
            english = said([english_verb(v, form) for v in verb.english], "V")
            b.add(group.symbol(t, r, form), weight, {}, german, english, _name(verb))


def german_verb(verb: GermanVerb, form: str) -> str:
    """A separable verb leaves its particle elsewhere when it is finite, except at the end of a clause."""
    match form:
        case "finite-sg":
            return verb.singular
        case "finite-pl":
            return verb.plural
        case "joined-sg":
            return verb.joined(verb.singular)
        case "participle":
            return verb.joined(verb.participle)
    return verb.joined(verb.plural)


def english_verb(verb: EnglishVerb, form: str) -> Expression:
    if form == "participle":
        return verb.participle
    return verb.singular if form.endswith("sg") else verb.base


def _saying(b: Builder, words: Words, r: str) -> None:
    for verb, weight in words.sayings(r):
        for number in NUMBERS:
            german = said([(german_verb(v, f"finite-{number}"),) for v in verb.german], "V")
            english = said([english_verb(v, f"finite-{number}") for v in verb.english], "V")
            b.add(symbol("SAY", r, number), weight, {}, german, english, _name(verb))


def _phrases(b: Builder, words: Words, topic: str, r: str, kind: str, category: str) -> None:
    parent = symbol(category, r) if topic == GENERAL else symbol(category, topic, r)
    for number, (phrase, weight) in enumerate(words.phrases(topic, r, kind)):
        b.add(parent, weight, {}, said(phrase.german, "W"), said(phrase.english, "W"), (kind, str(number)))


def _adjectives(b: Builder, words: Words, r: str) -> None:
    """Every adjective with every ending, and in the singular also with "a" before it."""
    for phrase, weight in words.phrases(GENERAL, r, "adjective"):
        name = ("adjective", phrase.german[0][0])
        for ending in ADJECTIVE_ENDINGS:
            ways = said(_inflected(phrase, ending), "ADJ"), said(phrase.english, "ADJ")
            b.add(symbol("A", r, ending), weight, {}, *ways, name)
        for gender, case in product(GENDERS, CASES):
            german = _inflected(phrase, mixed_ending(gender, "sg", case))
            with_a = said(german, "ADJ", _ein(gender, case)), said(phrase.english, "ADJ", a_or_an)
            b.add(symbol("AA", r, gender, case), weight, {}, *with_a, name)


def _inflected(phrase: Phrase, ending: str) -> list[Expression]:
    return [(stem + ending,) for (stem,) in phrase.german]


def _numbers(b: Builder, words: Words) -> None:
    """Numbers as words; some are copied from one side to the other in digits."""
    found = words.phrases(GENERAL, words.registers[0], "number")
    total = math.fsum(weight for _, weight in found)
    for phrase, weight in found:
        german, english = said(phrase.german, "CARD"), said(phrase.english, "CD")
        b.add("NUM", (1 - DIGITS) * weight / total, {}, german, english, ("number", phrase.german[0][0]))
    b.add("NUM", DIGITS, {"d": "DIGITS"}, "{d}", "{d}", ("digits",))
