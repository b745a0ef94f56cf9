"""Who and what sentences are about: nouns with articles, adjectives, numbers, and what is said of them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from dragoman.lab.inflection import (
    CASES,
    DEFINITE,
    GENDERS,
    STRONG,
    agreement,
    mixed_ending,
    strong_ending,
    weak_ending,
)
from dragoman.lab.lexicon import ADJECTIVE_ENDINGS
from dragoman.lab.synchronous import Builder, Ways, symbol
from dragoman.lab.words import NUMBERS, PEOPLE, ROLES, Words

PRONOUNS = {  # of people: nominative, accusative
    "man": (("er", "he"), ("ihn", "him")),
    "woman": (("sie", "she"), ("sie", "her")),
    "people": (("sie", "they"), ("sie", "them")),
}


class Determiner(NamedTuple):
    """How a noun phrase begins."""

    name: str
    weight: float
    german: str
    english: str
    ending: str  # that an adjective takes after it
    child: str = ""  # a number in its place


INDEFINITE_SHARE = 0.3  # the weight of "a" and "an" among determiners
ADJECTIVES = 0.3  # how often a noun phrase has an adjective
MORE_ADJECTIVES = 0.1  # how often another one follows


def noun_phrases(b: Builder, words: Words) -> None:
    """All rules of noun phrases."""
    for topic, register in words.scenes():
        for kind in ROLES:
            for number in NUMBERS:
                _subject(b, words, topic, register, kind, number)
            _noun_phrase(b, words, topic, register, kind)
            _object(b, topic, register, kind)
        _subject_of_people(b, words, topic, register)
        _object_of_people(b, topic, register)
        _with(b, words, topic, register)
        for role in ("person", "beast", "thing"):
            _relative_clauses(b, words, topic, register, role)
    for register in words.registers:
        _adjective_phrases(b, register)


# -- subjects and objects ---------------------------------------------------------------------------------------------


def _subject(b: Builder, words: Words, t: str, r: str, kind: str, number: str) -> None:
    """One kind of subject: a noun phrase; of single persons also a name, or "he" and "she", perhaps one who ..."""
    for end in ("", "end"):
        parent, phrase = symbol("SUBJ", t, r, kind, number, end), symbol("NP", t, r, kind, number, "nom", end)
        b.add(parent, 0.6, {"x": phrase}, "{x}", "{x}", ("phrase",))
        if kind in PEOPLE and number == "sg":
            (he, he_en), _ = PRONOUNS[kind]
            gender = {"man": "m", "woman": "f"}[kind]
            rc = symbol("RC", t, r, "person", gender, "sg", end)
            b.add(parent, 0.22, {"x": symbol("NAME", kind)}, "{x}", "{x}", ("name",))
            b.add(parent, 0.15, {}, f"{he}/PPER=", f"{he_en}/PRP=", ("pronoun",))
            b.add(parent, 0.3 * words.nesting, {"rc": rc}, f"{he}/PPER=p {{rc}}", f"{he_en}/PRP=p {{rc}}", ("who",))


def _subject_of_people(b: Builder, words: Words, t: str, r: str) -> None:
    """Men or women; several of them may be joined by "and"."""
    for number, end in product(NUMBERS, ("", "end")):
        parent = symbol("SUBJ", t, r, "person", number, end)
        for kind, weight in PEOPLE.items():
            b.add(parent, weight, {"x": symbol("SUBJ", t, r, kind, number, end)}, "{x}", "{x}", (kind,))
        if number == "pl":
            (they, they_en), _ = PRONOUNS["people"]
            b.add(parent, 0.2, {}, f"{they}/PPER=", f"{they_en}/PRP=", ("pronoun",))
            for one, other in product(words.genders_of_people(t, r), repeat=2):
                _joined(b, parent, symbol("BASE", t, r, *one, "sg", "nom"), symbol("BASE", t, r, *other, "sg", "nom"))


def _joined(b: Builder, parent: str, one: str, other: str) -> None:
    b.add(parent, 0.04, {"x": one, "y": other}, "{x} und/KON=a {y}", "{x} and/CC=a {y}", ("joined",))


def _object(b: Builder, t: str, r: str, kind: str) -> None:
    for end in ("", "end"):
        for number, weight in (("sg", 0.6), ("pl", 0.4)):
            phrase = symbol("NP", t, r, kind, number, "acc", end)
            b.add(symbol("OBJ", t, r, kind, end), weight, {"x": phrase}, "{x}", "{x}", (number,))


def _object_of_people(b: Builder, t: str, r: str) -> None:
    """Men, women, names and pronouns; `full` ones are no pronouns, which German wants before an adverbial."""
    for full, end in product(("", "full"), ("", "end")):
        parent = symbol("OBJ", t, r, "person", full, end)
        for kind, weight in PEOPLE.items():
            b.add(parent, weight, {"x": symbol("OBJ", t, r, kind, end)}, "{x}", "{x}", (kind,))
            b.add(parent, 0.25 * weight, {"x": symbol("NAME", kind)}, "{x}", "{x}", ("name", kind))
        for whom, (_, (him, him_en)) in PRONOUNS.items():
            b.add(parent, 0.0 if full else 0.08, {}, f"{him}/PPER=", f"{him_en}/PRP=", ("pronoun", whom))


# -- noun phrases -----------------------------------------------------------------------------------------------------


def _noun_phrase(b: Builder, words: Words, t: str, r: str, kind: str) -> None:
    """A noun phrase, alone, with a relative clause or with another thing."""
    role = ROLES[kind]
    plain = 1 - words.nesting - words.company
    for number, case, end in product(NUMBERS, CASES, ("", "end")):
        parent = symbol("NP", t, r, kind, number, case, end)
        for gender, mass in words.noun_masses(t, r, kind).items():
            base = {"x": symbol("BASE", t, r, kind, gender, number, case)}
            clause = symbol("RC", t, r, role, gender, number, end)
            b.add(parent, plain * mass, base, "{x}", "{x}", ("plain", gender))
            b.add(parent, words.nesting * mass, {**base, "rc": clause}, "{x} {rc}", "{x} {rc}", ("clause", gender))
            b.add(
                parent, words.company * mass, {**base, "w": symbol("PP", t, r)}, "{x} {w}", "{x} {w}", ("with", gender)
            )
    for gender, number, case in product(words.noun_masses(t, r, kind), NUMBERS, CASES):
        _base(b, (t, r, kind, gender, number, case))


def _base(b: Builder, features: tuple[str, str, str, str, str, str]) -> None:
    """Article, perhaps adjectives, and the noun."""
    _, r, _, gender, number, case = features
    parent, noun = symbol("BASE", *features), {"n": symbol("N", *features)}
    for det in _determiners(gender, number, case):
        begin = {"k": det.child} if det.child else {}
        adjectives = {"a": symbol("AP", r, det.ending)}
        plain, with_adjectives = _said(det, "{n}"), _said(det, "{a} {n}")
        b.add(parent, (1 - ADJECTIVES) * det.weight, {**begin, **noun}, *plain, (det.name, "noun"))
        b.add(
            parent, ADJECTIVES * det.weight, {**begin, **adjectives, **noun}, *with_adjectives, (det.name, "adjective")
        )
    if number == "sg":
        _indefinite(b, parent, features)


def _indefinite(b: Builder, parent: str, features: tuple[str, str, str, str, str, str]) -> None:
    """ "a" or "an": English decides by the next word, so that the article is said together with that word."""
    _, r, _, gender, number, case = features
    noun, adjective = {"n": symbol("N", *features)}, {"a": symbol("AA", r, gender, case)}
    more = {"b": symbol("AP", r, mixed_ending(gender, number, case))}
    with_adjective = INDEFINITE_SHARE * ADJECTIVES
    alone = {"n": symbol("AN", *features)}
    b.add(parent, INDEFINITE_SHARE * (1 - ADJECTIVES), alone, "{n}", "{n}", ("a", "noun"))
    b.add(
        parent,
        with_adjective * (1 - MORE_ADJECTIVES),
        {**adjective, **noun},
        "{a} {n}",
        "{a} {n}",
        ("a", "adjective"),
    )
    several = {**adjective, **more, **noun}
    b.add(parent, with_adjective * MORE_ADJECTIVES, several, "{a} {b} {n}", "{a} {b} {n}", ("a", "adjectives"))


def _said(det: Determiner, rest: str) -> tuple[str, str]:
    return f"{det.german} {rest}".strip(), f"{det.english} {rest}".strip()


def _determiners(gender: str, number: str, case: str) -> Iterator[Determiner]:
    agree = agreement(gender, number)
    weak, strong = weak_ending(gender, number, case), strong_ending(gender, number, case)
    this, this_en = "dies" + STRONG[agree][case], "this" if number == "sg" else "these"
    yield Determiner("the", 0.5, f"{DEFINITE[agree][case]}/ART=d", "the/DT=d", weak)
    yield Determiner("this", 0.1, f"{this}/ART=d", f"{this_en}/DT=d", weak)
    if number == "sg":
        yield Determiner("every", 0.06, f"jed{STRONG[agree][case]}/ART=d", "every/DT=d", weak)
    else:
        yield Determiner("bare", 0.2, "", "", strong)
        yield Determiner("number", 0.14, "{k}", "{k}", strong, child="NUM")


def _adjective_phrases(b: Builder, r: str) -> None:
    """One adjective or more."""
    for ending in ADJECTIVE_ENDINGS:
        parent, first = symbol("AP", r, ending), {"a": symbol("A", r, ending)}
        b.add(parent, 1 - MORE_ADJECTIVES, first, "{a}", "{a}")
        b.add(parent, MORE_ADJECTIVES, {**first, "b": parent}, "{a} {b}", "{a} {b}")


def _with(b: Builder, words: Words, t: str, r: str) -> None:
    for gender, mass in words.noun_masses(t, r, "thing").items():
        for number, weight in (("sg", 0.6), ("pl", 0.4)):
            base = {"p": symbol("P", r), "x": symbol("BASE", t, r, "thing", gender, number, "dat")}
            b.add(symbol("PP", t, r), mass * weight, base, "{p} {x}", "{p} {x}")


# -- relative clauses -------------------------------------------------------------------------------------------------


def _relative_clauses(b: Builder, words: Words, t: str, r: str, role: str) -> None:
    """German puts the verb last and the clause between commas; at the end of a sentence the second one is missing."""
    for gender, number, end in product(GENDERS, NUMBERS, ("", "end")):
        parent = symbol("RC", t, r, role, gender, number, end)
        close = "" if end else " ,/$,"
        if role != "thing":
            for weight, children, german, english in _of_the_subject(words, t, r, role, number):
                who = DEFINITE[agreement(gender, number)]["nom"]
                begin = f",/$, {who}/PRELS=r "
                b.add(parent, weight, children, begin + german + close, _relative(role, english, False), ("subject",))
        if role == "thing" or (gender, number) == ("m", "sg"):  # "den" cannot be taken for a subject, "die" could
            for weight, children, german, english in _of_the_object(words, t, r, role):
                whom = DEFINITE[agreement(gender, number)]["acc"]
                begin = f",/$, {whom}/PRELS=r "
                b.add(parent, weight, children, begin + german + close, _relative(role, english, True), ("object",))


def _relative(role: str, english: str, is_object: bool) -> Ways:
    """The ways to begin a relative clause in English."""
    if role != "person":
        return {f"that/WDT=r {english}": 0.6, f"which/WDT=r {english}": 0.4}
    if is_object:
        return {f"whom/WP=r {english}": 0.3, f"that/WDT=r {english}": 0.7}
    return {f"who/WP=r {english}": 0.75, f"that/WDT=r {english}": 0.25}


Clause = tuple[float, dict[str, str], str, str]


def _of_the_subject(words: Words, t: str, r: str, role: str, number: str) -> Iterator[Clause]:
    """... who buys the bread; ... who has bought it."""
    has = {"sg": ("hat", "has"), "pl": ("haben", "have")}[number]
    for group in words.verb_groups(t, r, role):
        if group.object == "self":
            continue
        objects = {"o": symbol("OBJ", t, r, group.object, "")} if group.object else {}
        o = "{o} " if objects else ""
        sich = "sich/PRF={v} " if group.sich else ""
        now = {"v": group.symbol(t, r, f"joined-{number}"), **objects}
        yield 0.75 * group.weight, now, f"{sich}{o}{{v}}", f"{{v}} {o}".strip()
        if not group.sein:
            done = {"v": group.symbol(t, r, "participle"), **objects}
            german = f"{sich}{o}{{v}} {has[0]}/VAFIN=h"
            yield 0.25 * group.weight, done, german, f"{has[1]}/AUX=h {{v}} {o}".strip()


def _of_the_object(words: Words, t: str, r: str, role: str) -> Iterator[Clause]:
    """... whom the woman sees."""
    for group in words.verb_groups(t, r):
        if group.object == role:
            for number, weight in (("sg", 0.6), ("pl", 0.4)):
                subject = symbol("SUBJ", t, r, group.subject, number, "")
                children = {"s": subject, "v": group.symbol(t, r, f"joined-{number}")}
                yield 0.5 * weight * group.weight, children, "{s} {v}", "{s} {v}"
