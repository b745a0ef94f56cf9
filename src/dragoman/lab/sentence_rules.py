"""Rules of sentences and clauses, and the complete German-English grammar.

The grammar is written by hand and is not a sample of either language. It is built to have the phenomena that language
models and translators are tested on: different word order, separable verbs, agreement over long distances, relative
clauses, registers and topics.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

from dragoman.lab.grammar import Grammar, GrammarBuilder, Templates, symbol
from dragoman.lab.lexical_rules import TopicLexicon, VerbGroup, add_lexical_rules, topic_lexicons, zipf_shares
from dragoman.lab.lexicon import TOPICS
from dragoman.lab.noun_phrase_rules import NUMBER_SHARES, add_noun_phrase_rules

MODES = ("main", "inverted", "subordinate", "conditional")  # conditional: subordinate clause after a conjunction
VERB_FINAL_MODES = ("subordinate", "conditional")
REGISTER_SHARES = {"formal": 0.45, "casual": 0.55}
TENSE_SHARES = {"present": 0.6, "future": 0.2, "perfect": 0.2}
ADVERBIAL_SHARES = {"": 0.65, "ADV": 0.28, "ADVS": 0.07}  # none, a time or a place, both
REFLEXIVES = {"man": "himself", "woman": "herself", "person": "themselves"}
AUXILIARIES = {"sg": ("wird", "hat", "ist", "has", "is"), "pl": ("werden", "haben", "sind", "have", "are")}
PREFERENCE = 0.9  # probability of the object that subject and verb of a crossed quadruple prefer


@cache
def german_english_grammar(relative_clause_share: float = 0.1) -> Grammar:
    """Build the grammar from all rules; a share of the noun phrases has a relative clause."""
    rules = GrammarBuilder()
    add_sentence_rules(rules)
    add_noun_phrase_rules(rules, relative_clause_share)
    add_lexical_rules(rules)
    return rules.build("ROOT")


def add_sentence_rules(rules: GrammarBuilder) -> None:
    """Add the rules of sentences and clauses; topic and register are the same throughout a sentence."""
    topic_shares = zipf_shares(TOPICS)
    for words in topic_lexicons():
        weight = topic_shares[words.topic] * REGISTER_SHARES[words.register]
        children = [words.symbol("S"), symbol("END", words.register)]
        rules.add_sequence("ROOT", weight, children, words.topic, words.register)
        _add_sentence(rules, words)
        time, place = symbol("TIME", words.register), words.symbol("PLACE")
        rules.add_sequence(words.symbol("ADV"), 0.6, [time])
        rules.add_sequence(words.symbol("ADV"), 0.4, [place])
        english = {"{p} {t}": 0.6, "{t} {p}": 0.4}
        rules.add(words.symbol("ADVS"), 1.0, {"t": time, "p": place}, "{t} {p}", english)
        for mode in MODES:
            _add_clauses(rules, words, mode)
    # The final punctuation shows the register.
    rules.add("END[formal]", 1.0, {}, "./$.=", "./.=", ("stop",))
    rules.add("END[casual]", 0.75, {}, "!/$.=", "!/.=", ("mark",))
    rules.add("END[casual]", 0.25, {}, ",/$,=k oder/KON= ?/$.=q", ",/,=k right/RB= ?/.=q", ("tag",))


def _add_sentence(rules: GrammarBuilder, words: TopicLexicon) -> None:
    parent = words.symbol("S")
    main, inverted, subordinate, conditional = (words.symbol("CL", mode) for mode in MODES)
    rules.add_sequence(parent, 0.6, [main], "plain")
    second = {"c": symbol("CONJ", words.register), "s": conditional}
    rules.add(parent, 0.15, {"m": main, **second}, "{m} ,/$, {c} {s}", "{m} {c} {s}", ("then",))
    rules.add(parent, 0.09, {**second, "m": inverted}, "{c} {s} ,/$,=k {m}", "{c} {s} ,/,=k {m}", ("first",))
    for number, share in NUMBER_SHARES.items():
        speaker = {"s": words.symbol("SUBJ", "person", number), "v": symbol("SAY", words.register, number)}
        german, english = "{s} {v} ,/$, dass/KOUS=t {o}", "{s} {v} that/IN=t {o}"
        rules.add(parent, 0.1 * share, {**speaker, "o": subordinate}, german, english, ("that",))
        rules.add(parent, 0.06 * share, {**speaker, "o": main}, "{s} {v} ,/$, {o}", "{s} {v} {o}", ("said",))


class Predicate(NamedTuple):
    """A verb in one tense, as templates."""

    form: str  # of the main verb
    finite: str  # the German form that agrees with the subject
    rest: str  # what stands at the end in German: particle, infinitive, participle or nothing
    english: dict[str, float]  # verb phrases with their probabilities


def _add_clauses(rules: GrammarBuilder, words: TopicLexicon, mode: str) -> None:
    """Add a clause for every group of verbs and every subject, object, tense and adverbial."""
    for (group, group_weight), (number, number_share) in product(words.verb_groups.items(), NUMBER_SHARES.items()):
        for (subject, obj, weight), (tense, tense_share) in product(_participants(group, number), TENSE_SHARES.items()):
            if mode == "conditional" and tense == "future":  # no future after "when" and "if"
                continue
            verb = _predicate(group, number, mode, tense)
            german_object = english_object = "{o}" if obj else ""
            reflexive = "sich/PRF={v}" if group.is_german_reflexive else ""
            if obj == "self":
                german_object, english_object, reflexive = "", f"{REFLEXIVES[subject]}/PRP=x", "sich/PRF=x"
            for adverbial, share in ADVERBIAL_SHARES.items():
                ends_with_subject = mode == "inverted" and not (reflexive or german_object or verb.rest or adverbial)
                children = {"s": words.symbol("SUBJ", subject, number, "end" if ends_with_subject else "")}
                children["v"] = words.symbol("V", group.key, verb.form)
                if german_object:
                    ends_with_object = mode not in VERB_FINAL_MODES and not verb.rest
                    full = "full" if adverbial and obj == "person" else ""
                    children["o"] = words.symbol("OBJ", obj, full, "end" if ends_with_object else "")
                if adverbial:
                    children["a"] = words.symbol(adverbial)
                rules.add(
                    words.symbol("CL", mode),
                    weight * group_weight * number_share * tense_share * share,
                    children,
                    _german_order(mode, verb, reflexive, german_object, adverbial),
                    _english_order(mode, verb, english_object, adverbial),
                    ("clause", group.key, subject, number, obj, tense, adverbial),
                )


def _participants(group: VerbGroup, number: str) -> Iterator[tuple[str, str, float]]:
    """Yield kinds of subject and object with their joint probability."""
    if group.object == "self" and number == "sg":
        yield "man", "self", 0.5
        yield "woman", "self", 0.5
    elif group.object == "crossed":
        for subject, obj in product((0, 1), repeat=2):
            preferred = obj == subject ^ group.number  # depends on both, like exclusive or
            yield f"subject{subject}", f"object{obj}", 0.5 * (PREFERENCE if preferred else 1 - PREFERENCE)
    else:
        yield group.subject, group.object, 1.0


def _predicate(group: VerbGroup, number: str, mode: str, tense: str) -> Predicate:
    """Return the verb forms of a tense; "going to" is a second English future, and some perfects take "sein"."""
    werden, haben, sein, have, be = AUXILIARIES[number]
    if tense == "future":
        english = {"will/MD=f {v}": 0.7, f"{be}/AUX=f going/VBG=f to/TO=f {{v}}": 0.3}
        return Predicate("infinitive", f"{werden}/VAFIN=f", "{v}", english)
    if tense == "perfect":
        auxiliary = sein if group.perfect_with_sein else haben
        return Predicate("participle", f"{auxiliary}/VAFIN=h", "{v}", {f"{have}/AUX=h {{v}}": 1.0})
    if mode in VERB_FINAL_MODES:
        return Predicate(f"joined-{number}", "{v}", "", {"{v}": 1.0})
    particle = f"{group.particle}/PTKVZ={{v}}" if group.particle else ""
    return Predicate(f"finite-{number}", "{v}", particle, {"{v}": 1.0})


def _german_order(mode: str, verb: Predicate, reflexive: str, obj: str, adverbial: str) -> Templates:
    """Order a German clause: verb second, first when inverted, last when subordinate; an adverbial may be fronted."""
    middle = f"{reflexive} {'{a}' if adverbial else ''} {obj}"
    if mode in VERB_FINAL_MODES:
        return f"{{s}} {middle} {verb.rest} {verb.finite}"
    if mode == "inverted":
        return f"{verb.finite} {{s}} {middle} {verb.rest}"
    usual = f"{{s}} {verb.finite} {middle} {verb.rest}"
    follows_subject = reflexive or obj or verb.rest  # a main clause never ends with its subject
    if adverbial == "ADV" and follows_subject:
        return {usual: 0.5, f"{{a}} {verb.finite} {{s}} {reflexive} {obj} {verb.rest}": 0.5}
    return usual


def _english_order(mode: str, verb: Predicate, obj: str, adverbial: str) -> Templates:
    """Order an English clause: subject, verb, object; an adverbial at the end or, in a main clause, in front."""
    front = 0.4 if adverbial == "ADV" and mode == "main" else 0.0
    templates = {}
    for phrase, share in verb.english.items():
        core = f"{{s}} {phrase} {obj}"
        templates[f"{core} {{a}}" if adverbial else core] = share * (1 - front)
        if front:
            templates[f"{{a}} {core}"] = share * front
    return templates
