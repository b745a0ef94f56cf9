"""Sentences and clauses: who does what to whom, when and where, in the word order of each language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dragoman.lab.synchronous import Builder, Ways, symbol
from dragoman.lab.words import NUMBERS, VerbGroup, Words

MODES = ("main", "inverted", "subordinate", "conditional")  # conditional: subordinate after a conjunction
TENSES = {"present": 0.6, "future": 0.2, "perfect": 0.2}
NUMBER_SHARES = {"sg": 0.6, "pl": 0.4}
ADVERBIALS = {"": 0.65, "ADV": 0.28, "ADVS": 0.07}  # how often a clause says when or where, or both
SELVES = {"man": "himself", "woman": "herself", "person": "themselves"}
PREFERENCE = 0.9  # how often a crossed quadruple has the object that subject and verb together prefer
CONJOINED = {  # a main clause and another: German and English
    "then": ("{m} ,/$, {c} {s}", "{m} {c} {s}"),
    "first": ("{c} {s} ,/$,=k {m}", "{c} {s} ,/,=k {m}"),
}


def sentences(b: Builder, words: Words) -> None:
    """A topic and a register, which hold through the whole sentence."""
    for topic, register in words.scenes():
        weight = words.topic_share(topic) * words.register_share(register)
        whole = {"s": symbol("S", topic, register), "e": symbol("END", register)}
        b.add("ROOT", weight, whole, "{s} {e}", "{s} {e}", (topic, register))
        _sentence(b, topic, register)
        _adverbials(b, topic, register)
        for mode in MODES:
            _clauses(b, words, topic, register, mode)
    _ends(b)


def _ends(b: Builder) -> None:
    """How a sentence ends tells its register."""
    b.add("END[formal]", 1.0, {}, "./$.=", "./.=", ("stop",))
    b.add("END[casual]", 0.75, {}, "!/$.=", "!/.=", ("mark",))
    b.add("END[casual]", 0.25, {}, ",/$,=k oder/KON= ?/$.=q", ",/,=k right/RB= ?/.=q", ("tag",))


def _sentence(b: Builder, t: str, r: str) -> None:
    parent = symbol("S", t, r)
    main, inverted, subordinate, conditional = (symbol("CL", t, r, mode) for mode in MODES)
    b.add(parent, 0.6, {"m": main}, "{m}", "{m}", ("plain",))
    two = {"c": symbol("CONJ", r), "s": conditional}
    b.add(parent, 0.15, {"m": main, **two}, *CONJOINED["then"], ("then",))
    b.add(parent, 0.09, {**two, "m": inverted}, *CONJOINED["first"], ("first",))
    for number in NUMBERS:
        share = NUMBER_SHARES[number]
        speaker = {"s": symbol("SUBJ", t, r, "person", number), "v": symbol("SAY", r, number)}
        german, english = "{s} {v} ,/$, dass/KOUS=t {o}", "{s} {v} that/IN=t {o}"
        b.add(parent, 0.1 * share, {**speaker, "o": subordinate}, german, english, ("that",))
        b.add(parent, 0.06 * share, {**speaker, "o": main}, "{s} {v} ,/$, {o}", "{s} {v} {o}", ("said",))


def _adverbials(b: Builder, t: str, r: str) -> None:
    """One, which may come first of all, or two."""
    time, place = {"t": symbol("TIME", r)}, {"p": symbol("PLACE", t, r)}
    b.add(symbol("ADV", t, r), 0.6, time, "{t}", "{t}")
    b.add(symbol("ADV", t, r), 0.4, place, "{p}", "{p}")
    b.add(symbol("ADVS", t, r), 1.0, {**time, **place}, "{t} {p}", {"{p} {t}": 0.6, "{t} {p}": 0.4})


# -- clauses ----------------------------------------------------------------------------------------------------------


class Pieces(NamedTuple):
    """What a clause is made of, as templates; what is not there is empty."""

    subject: str
    finite: str  # the verb form that agrees with the subject
    reflexive: str
    object: str
    rest: str  # what German keeps for the end: particle, infinitive, participle
    adverbial: str


class Predicate(NamedTuple):
    """A verb in some tense: German finite form and rest, English verb group, and the form the verb itself takes."""

    finite: str
    rest: str
    english: Ways
    form: str


def _clauses(b: Builder, words: Words, t: str, r: str, mode: str) -> None:
    for group in words.verb_groups(t, r):
        for number in NUMBERS:
            for subject, obj, weight in _participants(group, number):
                who = Participants(t, r, subject, number, obj)
                for tense, share in _tenses(mode).items():
                    _clause(b, group, who, mode, tense, weight * group.weight * NUMBER_SHARES[number] * share)


def _tenses(mode: str) -> dict[str, float]:
    """No future after "when" and "if"."""
    return {tense: share for tense, share in TENSES.items() if mode != "conditional" or tense != "future"}


class Participants(NamedTuple):
    """Who does it to whom, and where one is."""

    topic: str
    register: str
    subject: str  # a kind
    number: str
    object: str  # a kind, "self", or nothing


def _participants(group: VerbGroup, number: str) -> Iterator[tuple[str, str, float]]:
    """Kinds of subject and object, and how often they meet."""
    if group.object == "self" and number == "sg":
        yield "man", "self", 0.5
        yield "woman", "self", 0.5
    elif group.object == "crossed":
        for subject in (0, 1):
            for obj in (0, 1):
                preferred = obj == subject ^ group.number  # exclusive or: neither of the two alone tells
                yield f"subject{subject}", f"object{obj}", 0.5 * (PREFERENCE if preferred else 1 - PREFERENCE)
    else:
        yield group.subject, group.object, 1.0


def _clause(b: Builder, group: VerbGroup, who: Participants, mode: str, tense: str, weight: float) -> None:
    """One clause, with and without adverbials."""
    t, r = who.topic, who.register
    predicate = _predicate(group, who.number, mode, tense)
    for adverbial, share in ADVERBIALS.items():
        pieces = _pieces(group, who, predicate, adverbial)
        children = {"s": symbol("SUBJ", t, r, who.subject, who.number, _end(ends_with_subject(pieces, mode)))}
        children["v"] = group.symbol(t, r, predicate.form)
        if pieces.object:
            last = not _is_verb_final(mode) and not predicate.rest
            full = "full" if adverbial and who.object == "person" else ""
            children["o"] = symbol("OBJ", t, r, who.object, full, _end(last))
        if adverbial:
            children["a"] = symbol(adverbial, t, r)
        b.add(
            symbol("CL", t, r, mode),
            weight * share,
            children,
            german_order(pieces, mode, may_front=adverbial == "ADV"),
            english_order(predicate, who, pieces, may_front=adverbial == "ADV" and mode == "main"),
            ("clause", group.key, who.subject, who.number, who.object, tense, adverbial),
        )


def _end(last: bool) -> str:
    return "end" if last else ""


def ends_with_subject(pieces: Pieces, mode: str) -> bool:
    """Whether nothing follows the subject of an inverted clause."""
    return mode == "inverted" and not (pieces.reflexive or pieces.object or pieces.rest or pieces.adverbial)


def _is_verb_final(mode: str) -> bool:
    return mode in ("subordinate", "conditional")


def _pieces(group: VerbGroup, who: Participants, predicate: Predicate, adverbial: str) -> Pieces:
    reflexive = "sich/PRF=x" if who.object == "self" else "sich/PRF={v}" if group.sich else ""
    obj = "{o}" if who.object not in ("", "self") else ""
    return Pieces("{s}", predicate.finite, reflexive, obj, predicate.rest, "{a}" if adverbial else "")


def _predicate(group: VerbGroup, number: str, mode: str, tense: str) -> Predicate:
    """Present, future and perfect; "going to" is another English future, and motion is perfect with "sein"."""
    singular = number == "sg"
    if tense == "present":
        if _is_verb_final(mode):
            return Predicate("{v}", "", "{v}", f"joined-{number}")
        return Predicate("{v}", f"{group.particle}/PTKVZ={{v}}" if group.particle else "", "{v}", f"finite-{number}")
    if tense == "future":
        be = "is" if singular else "are"
        going = f"{be}/AUX=f going/VBG=f to/TO=f {{v}}"
        german = f"{'wird' if singular else 'werden'}/VAFIN=f"
        return Predicate(german, "{v}", {"will/MD=f {v}": 0.7, going: 0.3}, "infinitive")
    have = ("ist" if singular else "sind") if group.sein else ("hat" if singular else "haben")
    return Predicate(f"{have}/VAFIN=h", "{v}", f"{'has' if singular else 'have'}/AUX=h {{v}}", "participle")


def german_order(p: Pieces, mode: str, *, may_front: bool) -> Ways:
    """The verb second, first after another clause, last in a subordinate one; an adverbial may come first of all."""
    middle = (p.reflexive, p.adverbial, p.object)
    if _is_verb_final(mode):
        return _joined(p.subject, *middle, p.rest, p.finite)
    if mode == "inverted":
        return _joined(p.finite, p.subject, *middle, p.rest)
    usual = _joined(p.subject, p.finite, *middle, p.rest)
    follows = p.reflexive or p.object or p.rest  # a clause never ends with its subject here
    if not (may_front and follows):
        return usual
    fronted = _joined(p.adverbial, p.finite, p.subject, p.reflexive, p.object, p.rest)
    return {usual: 0.5, fronted: 0.5}


def english_order(predicate: Predicate, who: Participants, p: Pieces, *, may_front: bool) -> Ways:
    """Subject, verb, object; an adverbial at the end, or before everything in a main clause."""
    obj = f"{SELVES[who.subject]}/PRP=x" if who.object == "self" else p.object
    verbs = {predicate.english: 1.0} if isinstance(predicate.english, str) else predicate.english
    ways = {}
    for verb, share in verbs.items():
        core = _joined(p.subject, verb, obj)
        front = 0.4 if may_front else 0.0
        ways[_joined(core, p.adverbial)] = share * (1 - front)
        if front:
            ways[_joined(p.adverbial, core)] = share * front
    return ways


def _joined(*parts: str) -> str:
    return " ".join(part for part in parts if part)
