"""Rules of noun phrases: subjects and objects, determiners, adjectives, relative clauses.

German relative clauses stand between commas. At the end of a clause (feature `end`) the second comma is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from dragoman.lab.grammar import GrammarBuilder, Templates, symbol
from dragoman.lab.lexicon import (
    ADJECTIVE_ENDINGS,
    CASES,
    DEFINITE,
    GENDERS,
    STRONG,
    agreement_class,
    mixed_ending,
    strong_ending,
    weak_ending,
)
from dragoman.lab.word_distributions import NUMBERS, PERSON_SHARES, ROLES, LabLexicon

PRONOUNS = {  # nominative and accusative, in German and English
    "man": (("er", "he"), ("ihn", "him")),
    "woman": (("sie", "she"), ("sie", "her")),
    "people": (("sie", "they"), ("sie", "them")),
}
INDEFINITE_SHARE = 0.3  # weight of "a" and "an" among determiners
ADJECTIVE_SHARE = 0.3  # of noun phrases
SECOND_ADJECTIVE_SHARE = 0.1  # of adjectives: followed by another one

Features = tuple[str, str, str, str, str, str]  # topic, register, kind, gender, number, case


def add_noun_phrase_rules(rules: GrammarBuilder, lexicon: LabLexicon) -> None:
    """Add all rules of noun phrases."""
    for topic, register in lexicon.topics_and_registers():
        for kind in ROLES:
            for number in NUMBERS:
                _subject(rules, lexicon, topic, register, kind, number)
            _noun_phrase(rules, lexicon, topic, register, kind)
            _object(rules, topic, register, kind)
        _person_subject(rules, lexicon, topic, register)
        _person_object(rules, topic, register)
        _prepositional_phrases(rules, lexicon, topic, register)
        for role in ("person", "animal", "thing"):
            _relative_clauses(rules, lexicon, topic, register, role)
    for register in lexicon.registers:
        _adjective_phrases(rules, register)


# -- subjects and objects ---------------------------------------------------------------------------------------------


def _subject(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str, kind: str, number: str) -> None:
    """Add a subject of one kind: a noun phrase or, for a single person, a name or a pronoun."""
    for end in ("", "end"):
        parent, phrase = symbol("SUBJ", t, r, kind, number, end), symbol("NP", t, r, kind, number, "nom", end)
        rules.add(parent, 0.6, {"x": phrase}, "{x}", "{x}", ("phrase",))
        if kind in PERSON_SHARES and number == "sg":
            (he, he_en), _ = PRONOUNS[kind]
            gender = {"man": "m", "woman": "f"}[kind]
            clause = {"rc": symbol("RC", t, r, "person", gender, "sg", end)}
            german, english = f"{he}/PPER=p {{rc}}", f"{he_en}/PRP=p {{rc}}"
            rules.add(parent, 0.22, {"x": symbol("NAME", kind)}, "{x}", "{x}", ("name",))
            rules.add(parent, 0.15, {}, f"{he}/PPER=", f"{he_en}/PRP=", ("pronoun",))
            rules.add(parent, 0.3 * lexicon.relative_clause_share, clause, german, english, ("who",))


def _person_subject(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str) -> None:
    """Add a person as subject: a man or a woman, or several people, who may be joined by "and"."""
    for number, end in product(NUMBERS, ("", "end")):
        parent = symbol("SUBJ", t, r, "person", number, end)
        for kind, weight in PERSON_SHARES.items():
            rules.add(parent, weight, {"x": symbol("SUBJ", t, r, kind, number, end)}, "{x}", "{x}", (kind,))
        if number == "pl":
            (they, they_en), _ = PRONOUNS["people"]
            rules.add(parent, 0.2, {}, f"{they}/PPER=", f"{they_en}/PRP=", ("pronoun",))
            for left, right in product(lexicon.person_genders(t, r), repeat=2):
                both = {"x": symbol("BASE", t, r, *left, "sg", "nom"), "y": symbol("BASE", t, r, *right, "sg", "nom")}
                rules.add(parent, 0.04, both, "{x} und/KON=a {y}", "{x} and/CC=a {y}", ("joined",))


def _object(rules: GrammarBuilder, t: str, r: str, kind: str) -> None:
    for end in ("", "end"):
        for number, weight in (("sg", 0.6), ("pl", 0.4)):
            phrase = symbol("NP", t, r, kind, number, "acc", end)
            rules.add(symbol("OBJ", t, r, kind, end), weight, {"x": phrase}, "{x}", "{x}", (number,))


def _person_object(rules: GrammarBuilder, t: str, r: str) -> None:
    """Add a person as object. A `full` object is not a pronoun: a German pronoun precedes adverbials."""
    for full, end in product(("", "full"), ("", "end")):
        parent = symbol("OBJ", t, r, "person", full, end)
        for kind, weight in PERSON_SHARES.items():
            rules.add(parent, weight, {"x": symbol("OBJ", t, r, kind, end)}, "{x}", "{x}", (kind,))
            rules.add(parent, 0.25 * weight, {"x": symbol("NAME", kind)}, "{x}", "{x}", ("name", kind))
        for whom, (_, (him, him_en)) in PRONOUNS.items():
            rules.add(parent, 0.0 if full else 0.08, {}, f"{him}/PPER=", f"{him_en}/PRP=", ("pronoun", whom))


# -- noun phrases -----------------------------------------------------------------------------------------------------


def _noun_phrase(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str, kind: str) -> None:
    """Add a noun phrase: plain, with a relative clause, or with a prepositional phrase."""
    plain_share = 1 - lexicon.relative_clause_share - lexicon.companion_share
    gender_shares = lexicon.gender_shares(t, r, kind)
    for number, case, end in product(NUMBERS, CASES, ("", "end")):
        parent = symbol("NP", t, r, kind, number, case, end)
        for gender, share in gender_shares.items():
            base = {"x": symbol("BASE", t, r, kind, gender, number, case)}
            clause = {**base, "rc": symbol("RC", t, r, ROLES[kind], gender, number, end)}
            company = {**base, "w": symbol("PP", t, r)}
            clause_weight, company_weight = lexicon.relative_clause_share * share, lexicon.companion_share * share
            rules.add(parent, plain_share * share, base, "{x}", "{x}", ("plain", gender))
            rules.add(parent, clause_weight, clause, "{x} {rc}", "{x} {rc}", ("clause", gender))
            rules.add(parent, company_weight, company, "{x} {w}", "{x} {w}", ("with", gender))
    for gender, number, case in product(gender_shares, NUMBERS, CASES):
        _base(rules, (t, r, kind, gender, number, case))


class Determiner(NamedTuple):
    """The beginning of a noun phrase."""

    name: str
    weight: float
    german: str
    english: str
    ending: str  # of a following adjective
    child: str = ""  # the symbol of a number used as determiner


def _determiners(gender: str, number: str, case: str) -> Iterator[Determiner]:
    agree = agreement_class(gender, number)
    weak, strong = weak_ending(gender, number, case), strong_ending(gender, number, case)
    this, this_en = "dies" + STRONG[agree][case], "this" if number == "sg" else "these"
    yield Determiner("the", 0.5, f"{DEFINITE[agree][case]}/ART=d", "the/DT=d", weak)
    yield Determiner("this", 0.1, f"{this}/ART=d", f"{this_en}/DT=d", weak)
    if number == "sg":
        yield Determiner("every", 0.06, f"jed{STRONG[agree][case]}/ART=d", "every/DT=d", weak)
    else:
        yield Determiner("bare", 0.2, "", "", strong)
        yield Determiner("number", 0.14, "{k}", "{k}", strong, child="NUM")


def _base(rules: GrammarBuilder, features: Features) -> None:
    """Add a determiner, optional adjectives and the noun."""
    _, r, _, gender, number, case = features
    parent, noun = symbol("BASE", *features), {"n": symbol("N", *features)}
    for det in _determiners(gender, number, case):
        first = {"k": det.child} if det.child else {}
        adjectives = {"a": symbol("AP", r, det.ending)}
        for share, children, rest, name in (
            (1 - ADJECTIVE_SHARE, {**first, **noun}, "{n}", "noun"),
            (ADJECTIVE_SHARE, {**first, **adjectives, **noun}, "{a} {n}", "adjective"),
        ):
            german, english = f"{det.german} {rest}", f"{det.english} {rest}"
            rules.add(parent, share * det.weight, children, german, english, (det.name, name))
    if number == "sg":
        _indefinite(rules, parent, features)


def _indefinite(rules: GrammarBuilder, parent: str, features: Features) -> None:
    """Add noun phrases with "a" or "an". The next word decides which, so a single rule adds article and word."""
    _, r, _, gender, number, case = features
    noun, adjective = {"n": symbol("N", *features)}, {"a": symbol("AA", r, gender, case)}
    more = {"b": symbol("AP", r, mixed_ending(gender, number, case))}
    plain, weight = {"n": symbol("AN", *features)}, INDEFINITE_SHARE * ADJECTIVE_SHARE
    one_adjective, several_adjectives = {**adjective, **noun}, {**adjective, **more, **noun}
    rules.add(parent, INDEFINITE_SHARE * (1 - ADJECTIVE_SHARE), plain, "{n}", "{n}", ("a", "noun"))
    rules.add(parent, weight * (1 - SECOND_ADJECTIVE_SHARE), one_adjective, "{a} {n}", "{a} {n}", ("a", "adjective"))
    rules.add(
        parent, weight * SECOND_ADJECTIVE_SHARE, several_adjectives, "{a} {b} {n}", "{a} {b} {n}", ("a", "adjectives")
    )


def _adjective_phrases(rules: GrammarBuilder, r: str) -> None:
    """Add phrases of one or more adjectives."""
    for ending in ADJECTIVE_ENDINGS:
        parent, first = symbol("AP", r, ending), {"a": symbol("A", r, ending)}
        rules.add(parent, 1 - SECOND_ADJECTIVE_SHARE, first, "{a}", "{a}")
        rules.add(parent, SECOND_ADJECTIVE_SHARE, {**first, "b": parent}, "{a} {b}", "{a} {b}")


def _prepositional_phrases(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str) -> None:
    for gender, share in lexicon.gender_shares(t, r, "thing").items():
        for number, weight in (("sg", 0.6), ("pl", 0.4)):
            children = {"p": symbol("P", r), "x": symbol("BASE", t, r, "thing", gender, number, "dat")}
            rules.add(symbol("PP", t, r), share * weight, children, "{p} {x}", "{p} {x}")


# -- relative clauses -------------------------------------------------------------------------------------------------

ClauseRule = tuple[float, dict[str, str], str, str]  # weight, children, German and English without the pronoun


def _relative_clauses(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str, role: str) -> None:
    """Add relative clauses; in German the verb is last."""
    for gender, number, end in product(GENDERS, NUMBERS, ("", "end")):
        parent = symbol("RC", t, r, role, gender, number, end)
        forms, comma = DEFINITE[agreement_class(gender, number)], "" if end else " ,/$,"
        if role != "thing":
            for weight, children, german, english in _subject_relative_clauses(lexicon, t, r, role, number):
                german = f",/$, {forms['nom']}/PRELS=r {german}{comma}"
                rules.add(parent, weight, children, german, _english_relative(role, english, False), ("subject",))
        # Only "den" is unambiguous: "die" could be the subject. Things are never subjects.
        if role == "thing" or (gender, number) == ("m", "sg"):
            for weight, children, german, english in _object_relative_clauses(lexicon, t, r, role):
                german = f",/$, {forms['acc']}/PRELS=r {german}{comma}"
                rules.add(parent, weight, children, german, _english_relative(role, english, True), ("object",))


def _english_relative(role: str, english: str, is_object: bool) -> Templates:
    """Return a relative clause with each possible pronoun."""
    if role != "person":
        return {f"that/WDT=r {english}": 0.6, f"which/WDT=r {english}": 0.4}
    if is_object:
        return {f"whom/WP=r {english}": 0.3, f"that/WDT=r {english}": 0.7}
    return {f"who/WP=r {english}": 0.75, f"that/WDT=r {english}": 0.25}


def _subject_relative_clauses(lexicon: LabLexicon, t: str, r: str, role: str, number: str) -> Iterator[ClauseRule]:
    """Yield "... who buys the bread" and "... who has bought the bread"."""
    german_have, english_have = {"sg": ("hat", "has"), "pl": ("haben", "have")}[number]
    for group in lexicon.verb_groups(t, r, role):
        if group.object == "self":
            continue
        objects = {"o": symbol("OBJ", t, r, group.object, "")} if group.object else {}
        o = "{o} " if objects else ""
        reflexive = "sich/PRF={v} " if group.is_german_reflexive else ""
        present = {"v": group.symbol(t, r, f"joined-{number}"), **objects}
        yield 0.75 * group.weight, present, f"{reflexive}{o}{{v}}", f"{{v}} {o}"
        if not group.perfect_with_sein:
            perfect = {"v": group.symbol(t, r, "participle"), **objects}
            german = f"{reflexive}{o}{{v}} {german_have}/VAFIN=h"
            yield 0.25 * group.weight, perfect, german, f"{english_have}/AUX=h {{v}} {o}"


def _object_relative_clauses(lexicon: LabLexicon, t: str, r: str, role: str) -> Iterator[ClauseRule]:
    """Yield "... whom the woman sees"."""
    for group in lexicon.verb_groups(t, r):
        if group.object == role:
            for number, weight in (("sg", 0.6), ("pl", 0.4)):
                subject = symbol("SUBJ", t, r, group.subject, number, "")
                children = {"s": subject, "v": group.symbol(t, r, f"joined-{number}")}
                yield 0.5 * weight * group.weight, children, "{s} {v}", "{s} {v}"
