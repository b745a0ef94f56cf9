"""The lab's lexicon: its size, the properties that the grammar relies on, and the parser."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest

from dragoman.lab.lexical_rules import FEMALE, MALE, VERB_FORMS, MadeUpNames
from dragoman.lab.lexicon import (
    ADJECTIVE_ENDINGS,
    CASES,
    NUMBERS,
    TOPICS,
    VERB_KINDS,
    CrossedQuadruple,
    EnglishNoun,
    EnglishVerb,
    Entry,
    GermanNoun,
    GermanVerb,
    Noun,
    Phrase,
    Tokens,
    Verb,
    entries,
    parse,
)

TABLES = (*TOPICS, "general")
MADE_UP_NAMES = (MadeUpNames.ending_in(FEMALE), MadeUpNames.ending_in(MALE))
GERMAN_WORD = re.compile(r"[A-ZÄÖÜ]?[a-zäöüßé]+")  # nouns within phrases are written with a capital
ENGLISH_WORD = re.compile(r"[A-Z]?[a-zé]+")
# Function words of the two languages, which must not be confused with nouns or verbs.
FUNCTION_WORDS = {
    "german": "der die das den dem des ein eine einen einem einer er sie es ihn ihm ihr sich selbst und oder aber "
    "nicht hat haben ist sind wird werden dass ob wer was kein keine keinen keinem keiner in im an am auf vor hinter",
    "english": "the a an he she it they him her them himself herself itself themselves and or but not has have is are "
    "will that whether who which whom no does do did in on at behind front of to",
}
# Minimal number of entries per topic; a pair of formal and casual words counts once.
NEEDED = {
    ("man", False): 5,
    ("woman", False): 4,
    ("animal", False): 5,
    ("thing", False): 14,
    ("man", True): 1,
    ("woman", True): 1,
    ("place", False): 6,
}
VERBS_NEEDED = {
    "person": 3,
    "animal": 3,
    "person>thing": 7,
    "person>animal": 2,
    "person>person": 3,
    "animal>thing": 2,
    "animal>animal": 1,
    "person>self": 2,
    "person~": 2,
    "quad": 2,
}


# -- access -------------------------------------------------------------------------------------


def nouns(topic: str) -> list[Noun]:
    return [entry for entry in entries(topic) if isinstance(entry, Noun)]


def verbs(topic: str) -> list[Verb]:
    return [entry for entry in entries(topic) if isinstance(entry, Verb)]


def nouns_and_verbs(topic: str) -> list[Noun | Verb]:
    return [entry for entry in entries(topic) if isinstance(entry, Noun | Verb)]


def phrases(topic: str) -> list[Phrase]:
    return [entry for entry in entries(topic) if isinstance(entry, Phrase)]


def crossed(topic: str) -> CrossedQuadruple:
    (quadruple,) = (entry for entry in entries(topic) if isinstance(entry, CrossedQuadruple))
    return quadruple


def german_forms(word: GermanNoun | GermanVerb) -> set[Tokens]:
    """Return every form of a noun or verb, with and without the particle."""
    if isinstance(word, GermanNoun):
        return {(word.inflected(number, case),) for number in NUMBERS for case in CASES}
    return {(word.inflected(form),) for form in VERB_FORMS}


def english_forms(word: EnglishNoun | EnglishVerb) -> set[Tokens]:
    """Return every form of a noun or verb, and for `picks up` also `picks`."""
    if isinstance(word, EnglishNoun):
        return {word.singular, word.plural}
    forms = {word.singular, word.base, word.participle}
    return forms | {form[:1] for form in forms}


def forms(entry: Noun | Verb, side: str) -> set[Tokens]:
    if side == "german":
        return {form for word in entry.german for form in german_forms(word)}
    return {form for word in entry.english for form in english_forms(word)}


def entries_by_form(side: str) -> dict[Tokens, list[tuple[str, Noun | Verb]]]:
    """Return, for each form of a noun or verb, the entries that have it."""
    by_form = defaultdict(list)
    for topic in TABLES:
        for entry in nouns_and_verbs(topic):
            for form in forms(entry, side):
                by_form[form].append((topic, entry))
    return by_form


def phrase_words(side: str) -> Iterator[str]:
    """Yield the words of phrases, and adjectives with all endings."""
    for topic in TABLES:
        for phrase in phrases(topic):
            for words in phrase.german if side == "german" else phrase.english:
                yield from words
                if side == "german" and phrase.kind == "adjective":
                    yield from (words[0] + ending for ending in ADJECTIVE_ENDINGS)


def all_words(side: str) -> set[str]:
    return {word for form in entries_by_form(side) for word in form} | set(phrase_words(side))


def pairs(topic: str) -> list[tuple[Noun | Verb, Noun | Verb]]:
    """Return neighbouring entries of which the first is formal and the second casual."""
    words = nouns_and_verbs(topic)
    return [(a, b) for a, b in pairwise(words) if (a.register, b.register) == ("formal", "casual")]


# -- size -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_entries_of_every_kind(topic: str) -> None:
    listed = [entry for entry in entries(topic) if isinstance(entry, Noun | Phrase) and entry.register != "casual"]
    counts = Counter((entry.kind, entry.rare) for entry in listed)
    assert {key: number for key, number in NEEDED.items() if counts[key] < number} == {}
    assert counts["thing", True] + counts["animal", True] >= 7
    frames = Counter(verb.kind for verb in verbs(topic) if verb.register != "casual" and not verb.rare)
    assert {kind: number for kind, number in VERBS_NEEDED.items() if frames[kind] < number} == {}
    assert sum(verb.rare for verb in verbs(topic)) >= 2


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_the_words_that_the_phenomena_need(topic: str) -> None:
    genders = Counter(noun.gender for noun in nouns(topic) if noun.kind == "thing" and not noun.rare)
    assert min(genders[gender] for gender in ("m", "f", "n")) >= 3
    separable = Counter(verb.kind for verb in verbs(topic) if any(word.particle for word in verb.german))
    assert separable["person>thing"] >= 3
    assert separable["person>person"] >= 1
    assert separable["person~"] >= 1
    assert {"person", "animal"} <= {verb.kind for verb in verbs(topic) if verb.sein}
    compounds = [noun for noun in nouns(topic) if noun.kind == "thing" and len(noun.english[0].singular) == 2]
    assert len(compounds) >= 2
    words = nouns_and_verbs(topic)
    assert 0.2 <= 2 * len(pairs(topic)) / len(words) <= 0.35
    assert 0.15 <= sum(len(entry.german) > 1 or len(entry.english) > 1 for entry in words) / len(words) <= 0.4


def test_general_list_has_entries_of_every_kind() -> None:
    counts = Counter(entry.kind for entry in [*phrases("general"), *verbs("general")])
    assert counts["time"] >= 25
    assert counts["adjective"] >= 45
    assert counts["conjunction"] >= 10
    assert counts["number"] >= 40
    assert counts["say"] >= 12
    fertility = {
        (len(phrase.german[0]), len(phrase.english[0])) for phrase in phrases("general") if phrase.kind == "time"
    }
    assert {(2, 1), (1, 2)} <= fertility


@pytest.mark.parametrize("side", ["german", "english"])
def test_each_language_has_at_least_600_words(side: str) -> None:
    assert len(all_words(side)) >= 600


# -- ambiguity -------------------------------------------------------------------------------------------


def is_intended_ambiguity(side: str, a: Noun | Verb, b: Noun | Verb) -> bool:
    """Nouns of the same kind with all forms of one number in common, or verbs that differ by their particle."""
    if (a.kind, a.register, a.rare) != (b.kind, b.register, b.rare):
        return False
    if isinstance(a, Noun) and isinstance(b, Noun):
        singulars = [{word.singular for word in (noun.german if side == "german" else noun.english)} for noun in (a, b)]
        return a.gender == b.gender and singulars[0] == singulars[1]
    if isinstance(a, Verb) and isinstance(b, Verb) and side == "german":
        particles = [{word.particle for word in verb.german} for verb in (a, b)]
        return particles[0].isdisjoint(particles[1]) and "" not in particles[0] | particles[1]
    return False


@pytest.mark.parametrize("side", ["german", "english"])
def test_forms_are_shared_only_by_intended_ambiguities(side: str) -> None:
    unintended = [
        (form, topic_a, topic_b)
        for form, owners in entries_by_form(side).items()
        for (topic_a, a), (topic_b, b) in combinations(owners, 2)
        if topic_a != topic_b or not is_intended_ambiguity(side, a, b)
    ]
    assert unintended == []


@pytest.mark.parametrize("topic", TOPICS)
def test_every_topic_has_an_ambiguous_german_noun(topic: str) -> None:
    meanings = Counter(noun.german[0].singular for noun in nouns(topic))
    assert max(meanings.values()) == 2


def test_some_topics_have_an_ambiguous_english_noun() -> None:
    ambiguous = [
        topic for topic in TOPICS if max(Counter(noun.english[0].singular for noun in nouns(topic)).values()) == 2
    ]
    assert 2 <= len(ambiguous) <= 3


@pytest.mark.parametrize("side", ["german", "english"])
def test_parts_of_expressions_are_not_words_of_other_topics(side: str) -> None:
    met = entries_by_form(side)
    shared = [
        (form, word)
        for form, owners in met.items()
        for word in form
        if len(form) > 1 and {topic for topic, _ in met.get((word,), [])} - {topic for topic, _ in owners}
    ]
    assert shared == []


@pytest.mark.parametrize("side", ["german", "english"])
def test_nouns_and_verbs_differ_from_all_other_words(side: str) -> None:
    single = {form[0] for form in entries_by_form(side) if len(form) == 1}
    assert single & {*phrase_words(side), *FUNCTION_WORDS[side].split()} == set()


@pytest.mark.parametrize("side", ["german", "english"])
def test_no_word_is_a_possible_generated_name(side: str) -> None:
    assert [word for word in all_words(side) if any(names.prob(word.lower()) for names in MADE_UP_NAMES)] == []


@pytest.mark.parametrize(("side", "shape"), [("german", GERMAN_WORD), ("english", ENGLISH_WORD)])
def test_words_have_only_letters(side: str, shape: re.Pattern[str]) -> None:
    assert [word for word in all_words(side) if not shape.fullmatch(word)] == []


# -- inflection ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", TABLES)
def test_english_forms_of_number_and_tense_differ(topic: str) -> None:
    assert [noun for noun in nouns(topic) if any(word.singular == word.plural for word in noun.english)] == []
    words = [word for verb in verbs(topic) for word in verb.english]
    assert [word for word in words if len({word.singular, word.base, word.participle}) < 3] == []


def test_first_letter_decides_between_a_and_an() -> None:
    first = {word.singular[0] for topic in TABLES for noun in nouns(topic) for word in noun.english}
    first |= {words[0] for phrase in phrases("general") if phrase.kind == "adjective" for words in phrase.english}
    assert [word for word in first if word.startswith(("u", "eu", "one", "hour", "heir", "hon"))] == []


@pytest.mark.parametrize("topic", TABLES)
def test_german_verb_forms_differ(topic: str) -> None:
    words = [word for verb in verbs(topic) for word in verb.german]
    assert [word for word in words if len({word.singular, word.plural, word.participle}) < 3] == []
    assert [word for word in words if not (word.singular.endswith("t") or word.singular == "weiß")] == []
    assert [word for word in words if not word.plural.endswith("n")] == []
    assert [word for word in words if not word.participle.endswith(("t", "n"))] == []


@pytest.mark.parametrize("topic", TABLES)
def test_register_specific_words_are_pairs_without_common_forms(topic: str) -> None:
    register_pairs = pairs(topic)
    marked = [entry for entry in nouns_and_verbs(topic) if entry.register]
    assert sorted(entry.line for pair in register_pairs for entry in pair) == sorted(entry.line for entry in marked)
    for formal, casual in register_pairs:
        assert formal.kind == casual.kind
        for side in ("german", "english"):
            assert forms(formal, side).isdisjoint(forms(casual, side))


@pytest.mark.parametrize("topic", TABLES)
def test_synonyms_have_no_common_form(topic: str) -> None:
    for entry in nouns_and_verbs(topic):
        for left, right in combinations(entry.german, 2):
            assert german_forms(left).isdisjoint(german_forms(right))
        for left, right in combinations(entry.english, 2):
            assert english_forms(left).isdisjoint(english_forms(right))


@pytest.mark.parametrize("topic", TABLES)
def test_weak_nouns_are_masculine_and_end_in_n(topic: str) -> None:
    weak = [(noun, word) for noun in nouns(topic) for word in noun.german if word.oblique != word.singular]
    assert [word for noun, word in weak if noun.gender != "m" or not word.oblique.endswith("n")] == []


# -- crossed quadruples ----------------------------------------------------------------------------------------------


def by_name(topic: str, name: str) -> Noun | Verb:
    """Return the entry with this German base form."""
    (match,) = (
        entry
        for entry in nouns_and_verbs(topic)
        if name in ((entry.german[0].singular,) if isinstance(entry, Noun) else (entry.german[0].plural,))
    )
    return match


@pytest.mark.parametrize("topic", TOPICS)
def test_crossed_quadruple_has_ordinary_words_of_its_topic(topic: str) -> None:
    quadruple = crossed(topic)
    named = [by_name(topic, name) for name in (*quadruple.verbs, *quadruple.subjects, *quadruple.objects)]
    assert len({entry.line for entry in named}) == 6
    assert all(entry.register is None and not entry.rare for entry in named)
    assert sorted(verb.line for verb in verbs(topic) if verb.kind == "quad") == sorted(verb.line for verb in named[:2])
    for verb in named[:2]:
        assert isinstance(verb, Verb)
        assert not verb.sein
        assert not any(word.particle for word in verb.german)
    assert [(noun.kind, noun.gender) for noun in named[2:4] if isinstance(noun, Noun)] == [("man", "m")] * 2
    things = [noun for noun in named[4:] if isinstance(noun, Noun)]
    assert [noun.kind for noun in things] == ["thing", "thing"]
    assert things[0].gender == things[1].gender


# -- the parser ------------------------------------------------------------------------------------------------------


def parsed(line: str) -> Entry:
    (entry,) = parse(line)
    return entry


def test_parse_noun_with_weak_form_and_synonyms() -> None:
    assert parsed("casual rare man m typ/mensch typen/menschen typ/menschen = guy guys  # either") == Noun(
        kind="man",
        register="casual",
        rare=True,
        line=1,
        gender="m",
        german=(GermanNoun("typ", "typen", "typ"), GermanNoun("mensch", "menschen", "menschen")),
        english=(EnglishNoun(("guy",), ("guys",)),),
    )


def test_parse_verb_with_particle() -> None:
    assert parsed("sein person auf+steht auf+stehen auf+gestanden = gets_up get_up got_up") == Verb(
        kind="person",
        register=None,
        rare=False,
        line=1,
        sein=True,
        german=(GermanVerb("auf", "steht", "stehen", "gestanden"),),
        english=(EnglishVerb(("gets", "up"), ("get", "up"), ("got", "up")),),
    )


def test_line_numbers_count_empty_lines() -> None:
    assert [entry.line for entry in parse("\n# a comment\n\ntime oft = often\ntime jetzt = now\n")] == [4, 5]


def test_animal_is_both_a_noun_kind_and_a_frame() -> None:
    assert isinstance(parsed("animal f kuh kühe = cow cows"), Noun)
    assert isinstance(parsed("animal grast grasen gegrast = grazes graze grazed"), Verb)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("man m typ typen guy guys", "no = between"),
        ("formal", "kind is missing"),
        ("plant f blume blumen = flower flowers", "not a kind of entry"),
        ("man typ typen = guy guys", "gender of a noun is missing"),
        ("man m typ = guy guys", "1 columns instead of 2 or 3"),
        ("man m typ typen = guy", "1 columns instead of 2"),
        ("man m typ/kerl typen = guy guys", "different numbers of synonyms"),
        ("man m typ/typ typen/typen = guy guys", "synonym is given twice"),
        ("man m netter_typ nette_typen = guy guys", "has several words"),
        ("time am__montag = on_monday", "empty word"),
        ("time oft/ = often", "empty word"),
        ("formal casual time oft = often", "two registers"),
        ("rare rare time oft = often", "given twice"),
        ("sein time oft = often", "flag sein"),
        ("sein quad kauft kaufen gekauft = buys buy bought", "flag sein"),
        ("person auf+steht stehen auf+gestanden = gets_up get_up got_up", "particle"),
        ("person auf+isst/speist auf+essen/speisen auf+gegessen/gespeist = eats eat eaten", "different particles"),
        ("crossed kaufen liefern bauer händler pflug", "six German names"),
        ("rare crossed kaufen liefern bauer händler pflug sack", "six German names"),
    ],
)
def test_malformed_line_is_an_error_with_its_number(line: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as refused:
        parse(f"\n{line}")
    assert f"line 2, {line!r}" in str(refused.value)


def test_every_verb_frame_is_used() -> None:
    assert {verb.kind for topic in TABLES for verb in verbs(topic)} == set(VERB_KINDS)
