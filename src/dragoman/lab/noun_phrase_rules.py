"""Rules of noun phrases: subjects and objects, determiners, adjectives, relative clauses.

German relative clauses stand between commas. At the end of a clause (feature `end`) the second comma is absent.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from dragoman.lab.grammar import GrammarBuilder, symbol
from dragoman.lab.lexical_rules import PERSON_SHARES, ROLES, TopicLexicon, topic_lexicons
from dragoman.lab.lexicon import (
    ADJECTIVE_ENDINGS,
    CASES,
    DEFINITE,
    GENDERS,
    MIXED,
    NUMBERS,
    REGISTERS,
    STRONG,
    WEAK,
    agreement_class,
)

NUMBER_SHARES = {"sg": 0.6, "pl": 0.4}
PRONOUNS = {  # nominative and accusative, in German and English
    "man": (("er", "he"), ("ihn", "him")),
    "woman": (("sie", "she"), ("sie", "her")),
    "people": (("sie", "they"), ("sie", "them")),
}
INDEFINITE_SHARE = 0.3  # weight of "a" and "an" among determiners
ADJECTIVE_SHARE = 0.3  # of noun phrases
SECOND_ADJECTIVE_SHARE = 0.1  # of adjectives: followed by another one
COMPANION_SHARE = 0.07  # of noun phrases: with a prepositional phrase
RELATIVE_PRONOUNS = {  # of a person that is the subject or the object of the clause, and of others
    "subject": {"who/WP=r": 0.75, "that/WDT=r": 0.25},
    "object": {"whom/WP=r": 0.3, "that/WDT=r": 0.7},
    "other": {"that/WDT=r": 0.6, "which/WDT=r": 0.4},
}
ENDS = ("", "end")


def add_noun_phrase_rules(rules: GrammarBuilder, relative_clause_share: float) -> None:
    """Add all rules of noun phrases; a share of them has a relative clause."""
    for words in topic_lexicons():
        for kind in ROLES:
            for number in NUMBERS:
                _add_subject(rules, words, kind, number, relative_clause_share)
            _add_noun_phrase(rules, words, kind, relative_clause_share)
            for end, (number, weight) in product(ENDS, NUMBER_SHARES.items()):
                phrase = words.symbol("NP", kind, number, "acc", end)
                rules.add_sequence(words.symbol("OBJ", kind, end), weight, [phrase], number)
        _add_person_subject(rules, words)
        _add_person_object(rules, words)
        for (gender, share), (number, weight) in product(words.gender_shares("thing").items(), NUMBER_SHARES.items()):
            children = [symbol("P", words.register), words.symbol("BASE", "thing", gender, number, "dat")]
            rules.add_sequence(words.symbol("PP"), share * weight, children)
        for role in ("person", "animal", "thing"):
            _add_relative_clauses(rules, words, role)
    for register, ending in product(REGISTERS, ADJECTIVE_ENDINGS):
        parent, adjective = symbol("AP", register, ending), symbol("A", register, ending)
        rules.add_sequence(parent, 1 - SECOND_ADJECTIVE_SHARE, [adjective])
        rules.add_sequence(parent, SECOND_ADJECTIVE_SHARE, [adjective, parent])


def _add_subject(rules: GrammarBuilder, words: TopicLexicon, kind: str, number: str, clause_share: float) -> None:
    """Add a subject of one kind: a noun phrase or, for a single person, a name or a pronoun."""
    for end in ENDS:
        parent = words.symbol("SUBJ", kind, number, end)
        rules.add_sequence(parent, 0.6, [words.symbol("NP", kind, number, "nom", end)], "phrase")
        if kind in PERSON_SHARES and number == "sg":
            (he, he_en), _ = PRONOUNS[kind]
            clause = {"rc": words.symbol("RC", "person", {"man": "m", "woman": "f"}[kind], "sg", end)}
            rules.add_sequence(parent, 0.22, [symbol("NAME", kind)], "name")
            rules.add(parent, 0.15, {}, f"{he}/PPER=", f"{he_en}/PRP=", ("pronoun",))
            rules.add(parent, 0.3 * clause_share, clause, f"{he}/PPER=p {{rc}}", f"{he_en}/PRP=p {{rc}}", ("who",))


def _add_person_subject(rules: GrammarBuilder, words: TopicLexicon) -> None:
    """Add a person as subject: a man or a woman, or several people, who may be joined by "and"."""
    people = [(kind, gender) for kind in PERSON_SHARES for gender in words.gender_shares(kind)]
    for number, end in product(NUMBERS, ENDS):
        parent = words.symbol("SUBJ", "person", number, end)
        for kind, weight in PERSON_SHARES.items():
            rules.add_sequence(parent, weight, [words.symbol("SUBJ", kind, number, end)], kind)
        if number == "pl":
            (they, they_en), _ = PRONOUNS["people"]
            rules.add(parent, 0.2, {}, f"{they}/PPER=", f"{they_en}/PRP=", ("pronoun",))
            for left, right in product(people, repeat=2):
                both = {"x": words.symbol("BASE", *left, "sg", "nom"), "y": words.symbol("BASE", *right, "sg", "nom")}
                rules.add(parent, 0.04, both, "{x} und/KON=a {y}", "{x} and/CC=a {y}", ("joined",))


def _add_person_object(rules: GrammarBuilder, words: TopicLexicon) -> None:
    """Add a person as object. A `full` object is not a pronoun: a German pronoun precedes adverbials."""
    for full, end in product(("", "full"), ENDS):
        parent = words.symbol("OBJ", "person", full, end)
        for kind, weight in PERSON_SHARES.items():
            rules.add_sequence(parent, weight, [words.symbol("OBJ", kind, end)], kind)
            rules.add_sequence(parent, 0.25 * weight, [symbol("NAME", kind)], "name", kind)
        for whom, (_, (him, him_en)) in PRONOUNS.items():
            rules.add(parent, 0.0 if full else 0.08, {}, f"{him}/PPER=", f"{him_en}/PRP=", ("pronoun", whom))


def _add_noun_phrase(rules: GrammarBuilder, words: TopicLexicon, kind: str, clause_share: float) -> None:
    """Add a noun phrase: plain, with a relative clause, or with a prepositional phrase."""
    gender_shares = words.gender_shares(kind)
    for number, case, end in product(NUMBERS, CASES, ENDS):
        parent = words.symbol("NP", kind, number, case, end)
        for gender, share in gender_shares.items():
            base = words.symbol("BASE", kind, gender, number, case)
            clause = words.symbol("RC", ROLES[kind], gender, number, end)
            rules.add_sequence(parent, (1 - clause_share - COMPANION_SHARE) * share, [base], "plain", gender)
            rules.add_sequence(parent, clause_share * share, [base, clause], "clause", gender)
            rules.add_sequence(parent, COMPANION_SHARE * share, [base, words.symbol("PP")], "with", gender)
    for gender, number, case in product(gender_shares, NUMBERS, CASES):
        _add_base(rules, words, kind, gender, number, case)


def _add_base(rules: GrammarBuilder, words: TopicLexicon, kind: str, gender: str, number: str, case: str) -> None:
    """Add a determiner, optional adjectives and the noun."""
    features = (kind, gender, number, case)
    parent, noun = words.symbol("BASE", *features), words.symbol("N", *features)
    agree = agreement_class(gender, number)
    weak, strong = WEAK[agree][case], STRONG[agree][case]
    determiners = [  # name, weight, German, English, and the ending of a following adjective
        ("the", 0.5, f"{DEFINITE[agree][case]}/ART=d", "the/DT=d", weak),
        ("this", 0.1, f"dies{strong}/ART=d", "this/DT=d" if number == "sg" else "these/DT=d", weak),
    ]
    if number == "sg":
        determiners += [("every", 0.06, f"jed{strong}/ART=d", "every/DT=d", weak)]
    else:
        determiners += [("bare", 0.2, "", "", strong), ("number", 0.14, "{k}", "{k}", strong)]
    for determiner, weight, german, english, ending in determiners:
        first = {"k": "NUM"} if determiner == "number" else {}
        adjectives = {"a": symbol("AP", words.register, ending)}
        for share, children, rest, name in (
            (1 - ADJECTIVE_SHARE, {**first, "n": noun}, "{n}", "noun"),
            (ADJECTIVE_SHARE, {**first, **adjectives, "n": noun}, "{a} {n}", "adjective"),
        ):
            rules.add(parent, share * weight, children, f"{german} {rest}", f"{english} {rest}", (determiner, name))
    if number == "sg":  # "a" or "an" depends on the next word, so a single rule adds article and word
        adjective = symbol("AA", words.register, gender, case)
        more = symbol("AP", words.register, MIXED[gender][case])
        weight = INDEFINITE_SHARE * ADJECTIVE_SHARE
        rules.add_sequence(
            parent, INDEFINITE_SHARE * (1 - ADJECTIVE_SHARE), [words.symbol("AN", *features)], "a", "noun"
        )
        rules.add_sequence(parent, weight * (1 - SECOND_ADJECTIVE_SHARE), [adjective, noun], "a", "adjective")
        rules.add_sequence(parent, weight * SECOND_ADJECTIVE_SHARE, [adjective, more, noun], "a", "adjectives")


ClauseRule = tuple[float, dict[str, str], str, str]  # weight, children, German and English without the pronoun


def _add_relative_clauses(rules: GrammarBuilder, words: TopicLexicon, role: str) -> None:
    """Add relative clauses; in German the verb is last."""
    for gender, number, end in product(GENDERS, NUMBERS, ENDS):
        forms, comma = DEFINITE[agreement_class(gender, number)], "" if end else " ,/$,"
        clauses = []
        if role != "thing":  # things are never subjects
            clauses += [("subject", forms["nom"], rule) for rule in _subject_clauses(words, role, number)]
        if role == "thing" or (gender, number) == ("m", "sg"):  # only "den" is unambiguous: "die" could be the subject
            clauses += [("object", forms["acc"], rule) for rule in _object_clauses(words, role)]
        for function, pronoun, (weight, children, german, english) in clauses:
            english_pronouns = RELATIVE_PRONOUNS[function if role == "person" else "other"]
            rules.add(
                words.symbol("RC", role, gender, number, end),
                weight,
                children,
                f",/$, {pronoun}/PRELS=r {german}{comma}",
                {f"{english_pronoun} {english}": share for english_pronoun, share in english_pronouns.items()},
                (function,),
            )


def _subject_clauses(words: TopicLexicon, role: str, number: str) -> Iterator[ClauseRule]:
    """Yield "... who buys the bread" and "... who has bought the bread"."""
    german_have, english_have = {"sg": ("hat", "has"), "pl": ("haben", "have")}[number]
    for group, weight in words.verb_groups.items():
        if group.subject != role or group.object == "self":
            continue
        objects = {"o": words.symbol("OBJ", group.object)} if group.object else {}
        o = "{o} " if objects else ""
        reflexive = "sich/PRF={v} " if group.is_german_reflexive else ""
        present = {"v": words.symbol("V", group.key, f"joined-{number}"), **objects}
        yield 0.75 * weight, present, f"{reflexive}{o}{{v}}", f"{{v}} {o}"
        if not group.perfect_with_sein:
            perfect = {"v": words.symbol("V", group.key, "participle"), **objects}
            german = f"{reflexive}{o}{{v}} {german_have}/VAFIN=h"
            yield 0.25 * weight, perfect, german, f"{english_have}/AUX=h {{v}} {o}"


def _object_clauses(words: TopicLexicon, role: str) -> Iterator[ClauseRule]:
    """Yield "... whom the woman sees"."""
    for group, weight in words.verb_groups.items():
        if group.object == role:
            for number, share in NUMBER_SHARES.items():
                subject = words.symbol("SUBJ", group.subject, number)
                children = {"s": subject, "v": words.symbol("V", group.key, f"joined-{number}")}
                yield 0.5 * share * weight, children, "{s} {v}", "{s} {v}"
