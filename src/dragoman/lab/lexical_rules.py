"""Rules of single words: every lexicon entry in the forms that the other rules use."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from itertools import product

from dragoman.lab.grammar import GrammarBuilder, symbol
from dragoman.lab.lexicon import (
    ADJECTIVE_ENDINGS,
    CASES,
    GENDERS,
    GENERAL,
    INDEFINITE,
    EnglishVerb,
    GermanNoun,
    GermanVerb,
    Noun,
    Phrase,
    Tokens,
    Verb,
    mixed_ending,
)
from dragoman.lab.word_distributions import (
    FEMALE,
    MALE,
    NUMBERS,
    ROLES,
    DigitNumbers,
    LabLexicon,
    MadeUpNames,
    synonym_shares,
)

PREPOSITIONS: dict[str, list[Tokens]] = {"mit": [("with",)], "neben": [("next", "to"), ("beside",)]}
VERB_FORMS = ("finite-sg", "finite-pl", "joined-sg", "joined-pl", "infinitive", "participle")
DIGIT_SHARE = 0.12  # of numbers: written in digits


def add_lexical_rules(rules: GrammarBuilder, lexicon: LabLexicon) -> None:
    """Add the rules of all words and the open classes."""
    for topic, register in lexicon.topics_and_registers():
        for kind in ROLES:
            _nouns(rules, lexicon, topic, register, kind)
        _verbs(rules, lexicon, topic, register)
        _phrases(rules, lexicon, topic, register, "place", symbol("PLACE", topic, register))
    for register in lexicon.registers:
        _adjectives(rules, lexicon, register)
        _phrases(rules, lexicon, GENERAL, register, "time", symbol("TIME", register))
        _phrases(rules, lexicon, GENERAL, register, "conjunction", symbol("CONJ", register))
        _speech_verbs(rules, lexicon, register)
        for preposition, translations in PREPOSITIONS.items():
            german, english = synonym_templates([(preposition,)], "APPR"), synonym_templates(translations, "IN")
            rules.add(symbol("P", register), 1.0, {}, german, english, (preposition,))
    _numbers(rules, lexicon)
    rules.open_classes["NAME[man]"] = MadeUpNames.ending_in(MALE)
    rules.open_classes["NAME[woman]"] = MadeUpNames.ending_in(FEMALE)
    rules.open_classes["DIGITS"] = DigitNumbers()


def synonym_templates(
    synonyms: Iterable[Tokens], tag: str, article: Callable[[str], str] = lambda word: ""
) -> dict[str, float]:
    """Return templates of synonyms with their probabilities.

    All words are aligned with all words of the other language; an article only with the other article.
    """
    expressions = list(synonyms)
    templates = {}
    for expression, share in zip(expressions, synonym_shares(len(expressions)), strict=True):
        words = [f"{word.lower()}/{tag if word.islower() else 'NN'}=" for word in expression]
        templates[" ".join([*article(expression[0]).split(), *words])] = share
    return templates


def english_indefinite(word: str) -> str:
    """Return "a" or "an" by the first letter, which decides for all words of the lexicon."""
    return "an/DT=d" if word[0] in "aeiou" else "a/DT=d"


def _german_indefinite(gender: str, case: str) -> Callable[[str], str]:
    article = f"{INDEFINITE[gender][case]}/ART=d"
    return lambda word: article


def _nouns(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str, kind: str) -> None:
    """Add every noun in all cases (N) and, in the singular, with the indefinite article (AN)."""
    for noun, weight in lexicon.nouns(t, r, kind):
        name = _rule_name(noun)
        for number, case in product(NUMBERS, CASES):
            features = (t, r, kind, noun.gender, number, case)
            german = [(german_noun(form, number, case),) for form in noun.german]
            english = [form.singular if number == "sg" else form.plural for form in noun.english]
            templates = synonym_templates(german, "NN"), synonym_templates(english, "N")
            rules.add(symbol("N", *features), weight, {}, *templates, name)
            if number == "sg":
                german_with_article = synonym_templates(german, "NN", _german_indefinite(noun.gender, case))
                english_with_article = synonym_templates(english, "N", english_indefinite)
                rules.add(symbol("AN", *features), weight, {}, german_with_article, english_with_article, name)


def german_noun(noun: GermanNoun, number: str, case: str) -> str:
    if number == "pl":
        return noun.dative_plural if case == "dat" else noun.plural
    return noun.singular if case == "nom" else noun.oblique


def _rule_name(entry: Noun | Verb) -> tuple[str, ...]:
    """Name a rule by both languages: two entries may share the words of one language, but not of both."""
    return " ".join(map(str, entry.german)), " ".join(map(str, entry.english))


def _verbs(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str) -> None:
    groups = {(g.frame, g.particle, g.perfect_with_sein, g.number): g for g in lexicon.verb_groups(t, r)}
    for verb, weight in lexicon.verbs(t, r):
        group = groups[lexicon.group_key(t, verb)]
        for form in VERB_FORMS:
            _verb(rules, group.symbol(t, r, form), weight, verb, form)


def _speech_verbs(rules: GrammarBuilder, lexicon: LabLexicon, r: str) -> None:
    for verb, weight in lexicon.speech_verbs(r):
        for number in NUMBERS:
            _verb(rules, symbol("SAY", r, number), weight, verb, f"finite-{number}")


def _verb(rules: GrammarBuilder, parent: str, weight: float, verb: Verb, form: str) -> None:
    german = synonym_templates([(german_verb(word, form),) for word in verb.german], "V")
    english = synonym_templates([english_verb(word, form) for word in verb.english], "V")
    rules.add(parent, weight, {}, german, english, _rule_name(verb))


def german_verb(verb: GermanVerb, form: str) -> str:
    """Return a verb form; finite forms have no particle unless they are `joined`, at the end of a clause."""
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


def english_verb(verb: EnglishVerb, form: str) -> Tokens:
    if form == "participle":
        return verb.participle
    return verb.singular if form.endswith("sg") else verb.base


def _phrases(rules: GrammarBuilder, lexicon: LabLexicon, topic: str, r: str, kind: str, parent: str) -> None:
    for number, (phrase, weight) in enumerate(lexicon.phrases(topic, r, kind)):
        german, english = synonym_templates(phrase.german, "W"), synonym_templates(phrase.english, "W")
        rules.add(parent, weight, {}, german, english, (kind, str(number)))


def _adjectives(rules: GrammarBuilder, lexicon: LabLexicon, r: str) -> None:
    """Add every adjective with every ending (A) and, in the singular, after the indefinite article (AA)."""
    for phrase, weight in lexicon.phrases(GENERAL, r, "adjective"):
        name = ("adjective", phrase.german[0][0])
        for ending in ADJECTIVE_ENDINGS:
            german, english = (
                synonym_templates(_inflect(phrase, ending), "ADJ"),
                synonym_templates(phrase.english, "ADJ"),
            )
            rules.add(symbol("A", r, ending), weight, {}, german, english, name)
        for gender, case in product(GENDERS, CASES):
            inflected = _inflect(phrase, mixed_ending(gender, "sg", case))
            german = synonym_templates(inflected, "ADJ", _german_indefinite(gender, case))
            english = synonym_templates(phrase.english, "ADJ", english_indefinite)
            rules.add(symbol("AA", r, gender, case), weight, {}, german, english, name)


def _inflect(phrase: Phrase, ending: str) -> list[Tokens]:
    return [(stem + ending,) for (stem,) in phrase.german]


def _numbers(rules: GrammarBuilder, lexicon: LabLexicon) -> None:
    """Add numbers as words and in digits, which are the same in both languages."""
    numbers = lexicon.phrases(GENERAL, lexicon.registers[0], "number")
    total = math.fsum(weight for _, weight in numbers)
    for phrase, weight in numbers:
        german, english = synonym_templates(phrase.german, "CARD"), synonym_templates(phrase.english, "CD")
        rules.add("NUM", (1 - DIGIT_SHARE) * weight / total, {}, german, english, ("number", phrase.german[0][0]))
    rules.add("NUM", DIGIT_SHARE, {"d": "DIGITS"}, "{d}", "{d}", ("digits",))
