"""Rules of sentences and clauses, and the complete German-English grammar.

The grammar is written by hand and is not a sample of either language. It is built to have the phenomena that language
models and translators are tested on: different word order, separable verbs, agreement over long distances, relative
clauses, registers and topics. In all rule modules `t` is the topic and `r` the register of the sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from dragoman.lab.grammar import Grammar, GrammarBuilder, Templates, symbol
from dragoman.lab.lexical_rules import add_lexical_rules
from dragoman.lab.noun_phrase_rules import add_noun_phrase_rules
from dragoman.lab.word_distributions import NUMBERS, REGISTER_SHARES, LabLexicon, VerbGroup

MODES = ("main", "inverted", "subordinate", "conditional")  # conditional: subordinate clause after a conjunction
VERB_FINAL_MODES = ("subordinate", "conditional")
TENSE_SHARES = {"present": 0.6, "future": 0.2, "perfect": 0.2}
NUMBER_SHARES = {"sg": 0.6, "pl": 0.4}
ADVERBIAL_SHARES = {"": 0.65, "ADV": 0.28, "ADVS": 0.07}  # none, a time or a place, both
REFLEXIVES = {"man": "himself", "woman": "herself", "person": "themselves"}
PREFERENCE = 0.9  # probability of the object that subject and verb of a crossed quadruple prefer
CONJOINED = {  # a main clause and a conditional clause: German and English
    "then": ("{m} ,/$, {c} {s}", "{m} {c} {s}"),
    "first": ("{c} {s} ,/$,=k {m}", "{c} {s} ,/,=k {m}"),
}


@cache
def german_english_grammar(lexicon: LabLexicon = LabLexicon()) -> Grammar:
    """Build the grammar from all rules."""
    rules = GrammarBuilder()
    add_sentence_rules(rules, lexicon)
    add_noun_phrase_rules(rules, lexicon)
    add_lexical_rules(rules, lexicon)
    return rules.build("ROOT")


def add_sentence_rules(rules: GrammarBuilder, lexicon: LabLexicon) -> None:
    """Add the rules of sentences and clauses; topic and register are the same throughout a sentence."""
    for topic, register in lexicon.topics_and_registers():
        weight = lexicon.topic_share(topic) * REGISTER_SHARES[register]
        children = {"s": symbol("S", topic, register), "e": symbol("END", register)}
        rules.add("ROOT", weight, children, "{s} {e}", "{s} {e}", (topic, register))
        _sentence(rules, topic, register)
        _adverbials(rules, topic, register)
        for mode in MODES:
            _clauses(rules, lexicon, topic, register, mode)
    # The final punctuation shows the register.
    rules.add("END[formal]", 1.0, {}, "./$.=", "./.=", ("stop",))
    rules.add("END[casual]", 0.75, {}, "!/$.=", "!/.=", ("mark",))
    rules.add("END[casual]", 0.25, {}, ",/$,=k oder/KON= ?/$.=q", ",/,=k right/RB= ?/.=q", ("tag",))


def _sentence(rules: GrammarBuilder, t: str, r: str) -> None:
    parent = symbol("S", t, r)
    main, inverted, subordinate, conditional = (symbol("CL", t, r, mode) for mode in MODES)
    rules.add(parent, 0.6, {"m": main}, "{m}", "{m}", ("plain",))
    second = {"c": symbol("CONJ", r), "s": conditional}
    rules.add(parent, 0.15, {"m": main, **second}, *CONJOINED["then"], ("then",))
    rules.add(parent, 0.09, {**second, "m": inverted}, *CONJOINED["first"], ("first",))
    for number in NUMBERS:
        share = NUMBER_SHARES[number]
        speaker = {"s": symbol("SUBJ", t, r, "person", number), "v": symbol("SAY", r, number)}
        german, english = "{s} {v} ,/$, dass/KOUS=t {o}", "{s} {v} that/IN=t {o}"
        rules.add(parent, 0.1 * share, {**speaker, "o": subordinate}, german, english, ("that",))
        rules.add(parent, 0.06 * share, {**speaker, "o": main}, "{s} {v} ,/$, {o}", "{s} {v} {o}", ("said",))


def _adverbials(rules: GrammarBuilder, t: str, r: str) -> None:
    """Add a single adverbial (ADV) and a time with a place (ADVS)."""
    time, place = {"t": symbol("TIME", r)}, {"p": symbol("PLACE", t, r)}
    rules.add(symbol("ADV", t, r), 0.6, time, "{t}", "{t}")
    rules.add(symbol("ADV", t, r), 0.4, place, "{p}", "{p}")
    rules.add(symbol("ADVS", t, r), 1.0, {**time, **place}, "{t} {p}", {"{p} {t}": 0.6, "{t} {p}": 0.4})


# -- clauses ----------------------------------------------------------------------------------------------------------


class ClauseTemplates(NamedTuple):
    """Templates of a clause's parts; a part that is absent is empty."""

    subject: str
    finite: str  # the verb form that agrees with the subject
    reflexive: str
    object: str
    rest: str  # what stands at the end in German: particle, infinitive or participle
    adverbial: str


class Predicate(NamedTuple):
    """A verb in one tense: German finite form and rest, English verb phrase, and the form of the main verb."""

    finite: str
    rest: str
    english: Templates
    form: str


class Participants(NamedTuple):
    """Subject and object of a clause."""

    topic: str
    register: str
    subject: str  # a kind of noun
    number: str
    object: str  # a kind of noun, "self", or empty


def _clauses(rules: GrammarBuilder, lexicon: LabLexicon, t: str, r: str, mode: str) -> None:
    for group in lexicon.verb_groups(t, r):
        for number in NUMBERS:
            for subject, obj, weight in _participants(group, number):
                participants = Participants(t, r, subject, number, obj)
                for tense, share in TENSE_SHARES.items():
                    if mode == "conditional" and tense == "future":  # no future after "when" and "if"
                        continue
                    clause_weight = weight * group.weight * NUMBER_SHARES[number] * share
                    _clause(rules, group, participants, mode, tense, clause_weight)


def _participants(group: VerbGroup, number: str) -> Iterator[tuple[str, str, float]]:
    """Yield kinds of subject and object with their joint probability."""
    if group.object == "self" and number == "sg":
        yield "man", "self", 0.5
        yield "woman", "self", 0.5
    elif group.object == "crossed":
        for subject in (0, 1):
            for obj in (0, 1):
                preferred = obj == subject ^ group.number  # depends on both, like exclusive or
                yield f"subject{subject}", f"object{obj}", 0.5 * (PREFERENCE if preferred else 1 - PREFERENCE)
    else:
        yield group.subject, group.object, 1.0


def _clause(
    rules: GrammarBuilder, group: VerbGroup, participants: Participants, mode: str, tense: str, weight: float
) -> None:
    """Add a clause with and without adverbials."""
    t, r, subject, number, obj = participants
    predicate = _predicate(group, number, mode, tense)
    for adverbial, share in ADVERBIAL_SHARES.items():
        parts = _clause_templates(group, participants, predicate, adverbial)
        ends_with_subject = mode == "inverted" and not (
            parts.reflexive or parts.object or parts.rest or parts.adverbial
        )
        children = {"s": symbol("SUBJ", t, r, subject, number, "end" if ends_with_subject else "")}
        children["v"] = group.symbol(t, r, predicate.form)
        if parts.object:
            ends_with_object = mode not in VERB_FINAL_MODES and not predicate.rest
            full = "full" if adverbial and obj == "person" else ""
            children["o"] = symbol("OBJ", t, r, obj, full, "end" if ends_with_object else "")
        if adverbial:
            children["a"] = symbol(adverbial, t, r)
        rules.add(
            symbol("CL", t, r, mode),
            weight * share,
            children,
            german_order(parts, mode, may_front=adverbial == "ADV"),
            english_order(predicate, participants, parts, may_front=adverbial == "ADV" and mode == "main"),
            ("clause", group.key, subject, number, obj, tense, adverbial),
        )


def _clause_templates(
    group: VerbGroup, participants: Participants, predicate: Predicate, adverbial: str
) -> ClauseTemplates:
    reflexive = ""
    if participants.object == "self":
        reflexive = "sich/PRF=x"
    elif group.is_german_reflexive:
        reflexive = "sich/PRF={v}"
    obj = "{o}" if participants.object not in ("", "self") else ""
    return ClauseTemplates("{s}", predicate.finite, reflexive, obj, predicate.rest, "{a}" if adverbial else "")


def _predicate(group: VerbGroup, number: str, mode: str, tense: str) -> Predicate:
    """Return the verb forms of a tense; "going to" is a second English future, and some perfects take "sein"."""
    singular = number == "sg"
    if tense == "present":
        if mode in VERB_FINAL_MODES:
            return Predicate("{v}", "", "{v}", f"joined-{number}")
        return Predicate("{v}", f"{group.particle}/PTKVZ={{v}}" if group.particle else "", "{v}", f"finite-{number}")
    if tense == "future":
        be = "is" if singular else "are"
        going = f"{be}/AUX=f going/VBG=f to/TO=f {{v}}"
        german = f"{'wird' if singular else 'werden'}/VAFIN=f"
        return Predicate(german, "{v}", {"will/MD=f {v}": 0.7, going: 0.3}, "infinitive")
    have = ("ist" if singular else "sind") if group.perfect_with_sein else ("hat" if singular else "haben")
    return Predicate(f"{have}/VAFIN=h", "{v}", f"{'has' if singular else 'have'}/AUX=h {{v}}", "participle")


# -- word order -------------------------------------------------------------------------------------------------------


def german_order(parts: ClauseTemplates, mode: str, *, may_front: bool) -> Templates:
    """Order a German clause: verb second, first when inverted, last when subordinate; an adverbial may be fronted."""
    middle = (parts.reflexive, parts.adverbial, parts.object)
    if mode in VERB_FINAL_MODES:
        return _join(parts.subject, *middle, parts.rest, parts.finite)
    if mode == "inverted":
        return _join(parts.finite, parts.subject, *middle, parts.rest)
    usual = _join(parts.subject, parts.finite, *middle, parts.rest)
    follows_subject = parts.reflexive or parts.object or parts.rest  # a main clause never ends with its subject
    if not (may_front and follows_subject):
        return usual
    fronted = _join(parts.adverbial, parts.finite, parts.subject, parts.reflexive, parts.object, parts.rest)
    return {usual: 0.5, fronted: 0.5}


def english_order(
    predicate: Predicate, participants: Participants, parts: ClauseTemplates, *, may_front: bool
) -> Templates:
    """Order an English clause: subject, verb, object; an adverbial at the end or, in a main clause, in front."""
    obj = f"{REFLEXIVES[participants.subject]}/PRP=x" if participants.object == "self" else parts.object
    verbs = {predicate.english: 1.0} if isinstance(predicate.english, str) else predicate.english
    templates = {}
    for verb, share in verbs.items():
        core = _join(parts.subject, verb, obj)
        front = 0.4 if may_front else 0.0
        templates[_join(core, parts.adverbial)] = share * (1 - front)
        if front:
            templates[_join(parts.adverbial, core)] = share * front
    return templates


def _join(*parts: str) -> str:
    return " ".join(filter(None, parts))
